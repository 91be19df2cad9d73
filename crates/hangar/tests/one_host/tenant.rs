//! What people expect of a cluster, whatever the way to its API server: nodes, logs, commands, forwarded ports, webhooks
//! and aggregated APIs that its own pods serve.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Instant;

use hangar_parts::images::Upstream;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::extension::{self, PORT};
use crate::kubectl::{Kubectl, Running};
use crate::waiting::{eventually, is};

/// A cluster with at least one node.
pub(crate) struct Tenant<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) name: &'a str,
    pub(crate) kubectl: &'a Kubectl,
}

type Check<'a> = fn(&Tenant<'a>);

impl<'a> Tenant<'a> {
    /// Everything, in this order.
    pub(crate) fn works(&self) {
        let checks: [(&str, Check<'a>); 8] = [
            ("nodes", Self::nodes_are_ready),
            ("a pod", Self::a_pod_runs),
            ("logs", Self::logs),
            ("exec", Self::exec),
            ("port-forward", Self::port_forward),
            ("the API from a pod", Self::pods_reach_the_api_server),
            ("a webhook", Self::a_pod_is_asked_before_a_change),
            ("an aggregated API", Self::a_pod_serves_an_api),
        ];
        for (what, check) in checks {
            let start = Instant::now();
            check(self);
            println!("{:>7.2} s  {}: {what}", start.elapsed().as_secs_f64(), self.name);
        }
    }

    fn nodes_are_ready(&self) {
        eventually("a Node is Ready", || {
            let nodes = self.kubectl.attempt(&["get", "nodes", "--no-headers"])?;
            is(nodes.contains(" Ready "), || format!("{}: {nodes}", self.name))
        });
    }

    /// It serves a page, and what the next checks ask for.
    fn a_pod_runs(&self) {
        let directory = format!("/www/{}", self.name);
        let script = format!(
            "mkdir -p {directory}; echo served > {directory}/index.html; echo started; exec httpd -f -p 8080 -h {directory}"
        );
        let labels = json!({"app": "web"});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default", "labels": labels},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "web",
                    "image": Upstream::Flannel.reference(),
                    "command": ["/bin/sh", "-c", script],
                }],
            },
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": PORT}]},
        });
        // The tenant's controllers may not have made the account of its namespace yet.
        eventually("the pod is accepted", || {
            self.kubectl.try_apply(&manifest(&[pod.clone(), service.clone()]))
        });
        self.kubectl.succeed(&["wait", "--for=condition=Ready", "pod/web", "--timeout=10m"]);
        self.serve_extension();
    }

    /// In the pod's network, as if its container did it.
    fn serve_extension(&self) {
        let directory = format!("/www/{}", self.name);
        let words = ["httpd", "-f", "-p", "8080", "-h", &directory];
        // The container is started, and its shell may not have got that far.
        let mut found = None;
        eventually("the pod's process runs", || {
            found = self.environment.process(&words);
            is(found.is_some(), || format!("{}: no process", self.name))
        });
        let pod = found.expect("it was found").network();
        extension::serve_in(&pod, &extension::register(self.kubectl, "web"));
    }

    fn logs(&self) {
        self.says(&["logs", "web"], "started");
    }

    fn exec(&self) {
        self.says(&["exec", "web", "--", "cat", &format!("/www/{}/index.html", self.name)], "served");
    }

    /// Agents may come a moment after the node.
    fn says(&self, arguments: &[&str], expected: &str) {
        eventually("kubectl says what the pod does", || {
            let said = self.kubectl.attempt(arguments)?;
            is(said.trim() == expected, || format!("{}: {said}", self.name))
        });
    }

    fn port_forward(&self) {
        eventually("a port of the pod is forwarded", || {
            let page = self.forwarded().map_err(|error| format!("{}: {error}", self.name))?;
            is(page.trim().ends_with("served"), || format!("{}: {page}", self.name))
        });
    }

    /// The page of the pod, through a forwarded port.
    fn forwarded(&self) -> std::io::Result<String> {
        let mut command = self.kubectl.command(&["port-forward", "pod/web", ":8080"]);
        let mut forward = Running(command.stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        BufReader::new(forward.0.stdout.as_mut().unwrap()).read_line(&mut line)?;
        let address = line.split(' ').nth(2).and_then(|address| address.parse::<SocketAddr>().ok());
        let address = address.ok_or_else(|| std::io::Error::other(format!("no address: {line}")))?;
        let mut stream = self.kubectl.seat().connect(address).map_err(std::io::Error::other)?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    }

    /// Through the Service that every pod knows, by its name.
    fn pods_reach_the_api_server(&self) {
        let ask = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 kubernetes.default.svc 443";
        eventually("the API server answers a pod", || {
            let said = self.kubectl.attempt(&["exec", "web", "--", "sh", "-c", ask])?;
            is(said.contains("to an HTTPS server"), || format!("{}: {said}", self.name))
        });
    }

    fn a_pod_is_asked_before_a_change(&self) {
        extension::is_asked(self.kubectl);
    }

    fn a_pod_serves_an_api(&self) {
        extension::is_served(self.kubectl);
    }
}

/// Several objects as one file.
pub(crate) fn manifest(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

//! What a tenant with three of everything loses, one after the other, and what is seen to work after each loss.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Instant;

use hangar_parts::images::Upstream;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::kubectl::{Kubectl, Seat};
use crate::recorder::Recorder;
use crate::tenant::manifest;
use crate::waiting::{PATIENCE, eventually, is};

const SYSTEM: &str = "hangar-system";
/// Where members of etcd tell how they are.
const METRICS_PORT: u16 = 2381;

/// A tenant whose clients go on.
pub(crate) struct Losses<'a> {
    environment: &'a Environment,
    cluster: &'a str,
    management: &'a Kubectl,
    tenant: &'a Kubectl,
    /// The tenant, from where the addresses of its API servers' pods are known.
    inside: Kubectl,
    recorder: &'a Recorder,
    start: Instant,
}

/// A pod of the management cluster.
struct Pod {
    name: String,
    uid: String,
    node: String,
    address: String,
    is_ready: bool,
    /// Of each of its containers.
    restarts: Vec<u64>,
}

impl<'a> Losses<'a> {
    pub(crate) fn new(
        environment: &'a Environment,
        cluster: &'a str,
        (management, tenant): (&'a Kubectl, &'a Kubectl),
        recorder: &'a Recorder,
        start: Instant,
    ) -> Self {
        let seat = Seat::Inside(environment.network("machine.management"));
        let inside = Kubectl::new(environment.cluster_kubeconfig(cluster)).from(seat);
        Self { environment, cluster, management, tenant, inside, recorder, start }
    }

    /// Those that lead, because that is worse. What they did is done by others.
    pub(crate) fn pods_are_killed(&self) {
        self.kill("default", &self.leading_member());
        self.goes_on("etcd's leader is killed");
        self.kill("default", &self.pods("default", &self.selector("api-server")).remove(0));
        self.every_tunnel_works();
        self.goes_on("an API server is killed, and its end of the tunnel");
        for (component, lease) in
            [("controller-manager", "kube-controller-manager"), ("scheduler", "kube-scheduler")]
        {
            let leader =
                self.leader(self.tenant, ("kube-system", lease), ("default", &self.selector(component)));
            self.kill("default", &leader);
            self.controllers_work();
            self.goes_on(&format!("the {component} that leads is killed"));
        }
    }

    /// As far as etcd has a majority, what runs on a node may be asked to leave it. Where each pod has a host of its own,
    /// it waits for that one, and is named.
    pub(crate) fn a_node_is_drained(&self, node: &str) {
        let options = ["--ignore-daemonsets", "--delete-emptydir-data", "--timeout=10m"];
        self.management.succeed(&[&["drain", node][..], &options].concat());
        eventually("those that wait are named", || {
            let pods = self.pods("default", &self.selector_of_all());
            let waiting: Vec<&Pod> = pods.iter().filter(|pod| pod.node.is_empty()).collect();
            let said = self.environment.describe(self.cluster);
            let is_named = |component: &str| {
                waiting.iter().any(|pod| pod.name.contains(component) && said.contains(&pod.name))
            };
            let all = is_named("etcd") && is_named("apiserver") && said.contains("Unschedulable");
            is(all && waiting.iter().all(|pod| !pod.is_ready), || said)
        });
        self.is_available();
        self.every_tunnel_works();
        self.controllers_work();
        self.goes_on("a node is drained");
        self.management.succeed(&["uncordon", node]);
        self.is_whole();
        self.every_tunnel_works();
        self.goes_on("it takes pods again");
    }

    /// Kubernetes is told nothing. Returns when everything that can is done by others.
    pub(crate) fn a_node_is_lost(&self, node: &str) {
        assert_eq!(self.managers_node(), node, "the manager that leads is on it");
        self.environment.node("stop", node);
        self.managers_carry_out("lost-node");
        self.is_available();
        self.every_tunnel_works();
        self.controllers_work();
        self.goes_on("a node is lost, and the manager that leads with it");
    }

    pub(crate) fn a_node_is_back(&self, node: &str) {
        self.environment.node("start", node);
        self.is_whole();
        self.every_tunnel_works();
        self.goes_on("it is back");
    }

    /// Another one leads afterwards.
    pub(crate) fn a_manager_is_killed(&self) {
        let leader = self.leading_manager();
        self.kill(SYSTEM, &leader);
        self.managers_carry_out("killed-manager");
        self.goes_on("the manager that leads is killed");
    }

    /// The manager that leads is not on the first node, which cannot be lost; its node.
    pub(crate) fn managers_node_that_can_be_lost(&self, first: &str) -> String {
        let node = self.managers_node();
        if node != first {
            return node;
        }
        let leader = self.leading_manager().name;
        self.management.succeed(&["-n", SYSTEM, "delete", "pod", &leader, "--wait=false"]);
        eventually("the other manager leads", || {
            let now = self.leading_manager();
            is(now.name != leader && now.node != first, || now.name)
        });
        self.managers_node()
    }

    fn managers_node(&self) -> String {
        self.leading_manager().node
    }

    fn leading_manager(&self) -> Pod {
        let pods = (SYSTEM, "app.kubernetes.io/name=hangar");
        self.leader(self.management, (SYSTEM, "hangar-manager"), pods)
    }

    /// The one of these pods that holds the lease. Between two leaders nobody does.
    fn leader(&self, cluster: &Kubectl, lease: (&str, &str), pods: (&str, &str)) -> Pod {
        let mut found = None;
        eventually("one of them leads", || {
            let holder = holder(cluster, lease.0, lease.1);
            found = self.pods(pods.0, pods.1).into_iter().find(|pod| pod.name == holder);
            is(found.is_some(), || format!("{}: {holder}", lease.1))
        });
        found.expect("it was found")
    }

    /// Ends all processes of a pod at once, as the kernel does when memory is short; kubelet starts it again.
    fn kill(&self, namespace: &str, pod: &Pod) {
        let mut kill = Command::new("kill");
        kill.arg("-9").args(processes(&pod.uid));
        assert!(kill.status().unwrap().success(), "{}", pod.name);
        eventually("the pod is back", || {
            let pods = self.pods(namespace, "");
            let now = pods.iter().find(|now| now.uid == pod.uid).ok_or("the pod is gone")?;
            let is_restarted = now.restarts.iter().zip(&pod.restarts).all(|(now, before)| now > before);
            is(is_restarted && now.is_ready, || format!("{}: {:?}", now.name, now.restarts))
        });
        self.is_whole();
    }

    /// Clients are served.
    pub(crate) fn goes_on(&self, chapter: &str) {
        self.recorder.goes_on();
        println!("{:>7.2} s  {chapter}", self.start.elapsed().as_secs_f64());
        self.recorder.close(chapter);
    }

    fn is_available(&self) {
        assert_eq!(
            self.condition("Available").unwrap(),
            "True",
            "{}",
            self.environment.describe(self.cluster)
        );
    }

    /// All pods are ready, and Hangar says so.
    fn is_whole(&self) {
        eventually("everything is ready", || {
            let pods = self.pods("default", &self.selector_of_all());
            let ready = self.condition("Ready")?;
            let missing: Vec<&str> = pods.iter().filter(|pod| !pod.is_ready).map(|pod| &*pod.name).collect();
            is(missing.is_empty() && ready == "True", || {
                format!("{missing:?}\n{}", self.environment.describe(self.cluster))
            })
        });
    }

    /// Through each API server that runs, and so through each server of the tunnel: logs and commands.
    fn every_tunnel_works(&self) {
        let path = format!("/www/{}/index.html", self.cluster);
        for pod in self.pods("default", &self.selector("api-server")) {
            if !pod.is_ready {
                continue;
            }
            let server = format!("--server=https://{}:6443", pod.address);
            let name = format!("--tls-server-name=api-{}.default.svc", self.cluster);
            for (words, expected) in
                [(&["logs", "web"][..], "started"), (&["exec", "web", "--", "cat", &path], "served")]
            {
                eventually("the tunnel works", || {
                    let timeout = "--request-timeout=10s";
                    let said = self.inside.attempt(&[&[&*server, &name, timeout][..], words].concat());
                    // A node that is lost has pods that count as ready for a while.
                    let is_there = |now: &Pod| now.uid == pod.uid && now.is_ready;
                    if said.is_err()
                        && !self.pods("default", &self.selector("api-server")).iter().any(is_there)
                    {
                        return Ok(());
                    }
                    is(said.as_ref().is_ok_and(|said| said.trim() == expected), || {
                        format!("{}: {said:?}", pod.name)
                    })
                });
            }
        }
    }

    /// A pod needs the controller manager, the scheduler and a kubelet.
    fn controllers_work(&self) {
        let labels = json!({"app": "probe"});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "probe", "namespace": "default"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "probe",
                        "image": Upstream::Flannel.reference(),
                        "command": ["/bin/sh", "-c", "while :; do sleep 1; done"],
                    }],
                }},
            },
        });
        eventually("the tenant takes a Deployment", || {
            self.tenant.try_apply(&manifest(std::slice::from_ref(&deployment)))
        });
        eventually("a pod runs that did not", || {
            let path = "jsonpath={.status.availableReplicas}";
            let said = self.tenant.attempt(&["get", "deployment", "probe", "-o", path])?;
            is(said == "1", || said)
        });
        eventually("it goes", || {
            self.tenant.attempt(&["delete", "deployment", "probe", "--ignore-not-found"]).map(drop)
        });
    }

    /// A change that only a manager that leads can carry out, and that restarts nothing: another name in the certificate.
    fn managers_carry_out(&self, name: &str) {
        let start = Instant::now();
        let secret = format!("{}-apiserver", self.cluster);
        let path = r"jsonpath={.metadata.annotations.hangar\.cluster\.x-k8s\.io/fingerprint}";
        let read = ["get", "secret", &secret, "-o", path];
        let before = self.management.succeed(&read);
        let patch = json!({"spec": {"certSANs": [format!("{name}.hangar.test")]}}).to_string();
        eventually("the change is accepted", || {
            let words = ["patch", "hostedcontrolplane", self.cluster, "--type=merge", "-p", &patch];
            self.management.attempt(&words).map(drop)
        });
        eventually("the change is carried out", || {
            let now = self.management.attempt(&read)?;
            is(now != before, || holder(self.management, SYSTEM, "hangar-manager"))
        });
        println!("    {name}: a manager carried out a change after {:.1} s", start.elapsed().as_secs_f64());
    }

    fn leading_member(&self) -> Pod {
        let leads = |pod: &Pod| {
            let address: SocketAddr = format!("{}:{METRICS_PORT}", pod.address).parse().unwrap();
            let mut stream = self.inside.seat().connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).unwrap();
            said.contains("\netcd_server_is_leader 1\n")
        };
        let mut found = None;
        eventually("a member leads", || {
            found = self.pods("default", &self.selector("etcd")).into_iter().find(leads);
            is(found.is_some(), || "none does".to_owned())
        });
        found.expect("it was found")
    }

    fn condition(&self, kind: &str) -> Result<String, String> {
        let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")].status}}");
        self.management.attempt(&["get", "hostedcontrolplane", self.cluster, "-o", &path])
    }

    fn selector_of_all(&self) -> String {
        format!("cluster.x-k8s.io/cluster-name={}", self.cluster)
    }

    fn selector(&self, component: &str) -> String {
        format!("{},app.kubernetes.io/component={component}", self.selector_of_all())
    }

    /// Those that nobody has asked to go.
    fn pods(&self, namespace: &str, selector: &str) -> Vec<Pod> {
        let said = self.management.succeed(&["-n", namespace, "get", "pods", "-l", selector, "-o", "json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        let pods = said["items"].as_array().unwrap().iter();
        pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).map(Pod::read).collect()
    }
}

impl Pod {
    fn read(pod: &Value) -> Self {
        let text =
            |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let containers = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
        Self {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            node: text("/spec/nodeName"),
            address: text("/status/podIP"),
            is_ready: conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True"),
            restarts: containers.filter_map(|one| one["restartCount"].as_u64()).collect(),
        }
    }
}

/// Of a pod: kubelet names its control groups by its uid.
fn processes(uid: &str) -> Vec<String> {
    let group = format!("pod{uid}");
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        fs::read_to_string(entry.path().join("cgroup")).is_ok_and(|groups| groups.contains(&group))
    });
    processes.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The pod that holds a lease; empty while nobody does.
fn holder(cluster: &Kubectl, namespace: &str, lease: &str) -> String {
    let path = "jsonpath={.spec.holderIdentity}";
    let holder = cluster.succeed(&["-n", namespace, "get", "lease", lease, "-o", path]);
    holder.split('_').next().unwrap_or_default().to_owned()
}

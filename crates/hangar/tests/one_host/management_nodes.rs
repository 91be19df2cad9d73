//! A management cluster of three nodes: pods are spread and reach each other, and a tenant with three of everything
//! serves whatever is lost of it.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_host::addresses::POD_RANGE;
use hangar_host::sample::flannel::{self, ApiServer};
use hangar_host::sample::manifests;
use hangar_parts::Set;
use hangar_parts::images::Upstream;
use serde_json::json;

use crate::environment::Environment;
use crate::kubectl::Kubectl;
use crate::losses::Losses;
use crate::recorder::Recorder;
use crate::tenant::{Tenant, manifest};
use crate::turn;
use crate::waiting::{eventually, is};

/// The first is not lost: it has the only control plane of the management cluster.
const NODES: [&str; 3] = ["management", "management-2", "management-3"];
const CLUSTER: &str = "three";

struct Trial {
    environment: Environment,
    kubectl: Kubectl,
}

#[test]
fn three_of_everything_survive_whatever_happens_to_one() {
    let _turn = turn();
    let limits = concat!("--limits=", env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/three-nodes.yaml");
    let environment = Environment::new("nodes").with_arguments(&["--management-nodes=3", limits]);
    let start = Instant::now();
    let tell = |what: &str| println!("{:>7.2} s  {what}", start.elapsed().as_secs_f64());
    environment.succeed("up");
    tell("up");
    let trial = Trial { kubectl: Kubectl::new(environment.kubeconfig()), environment };
    trial.each_node_is_in_a_zone_of_its_own();
    // It becomes ready beside the next checks.
    trial.make_cluster();
    trial.pods_reach_pods_of_other_nodes();
    tell("pods reach each other");
    let tenant = trial.tenant();
    trial.each_pod_is_on_a_node_of_its_own();
    tell("three members of a tenant are on three nodes");
    Tenant { environment: &trial.environment, name: CLUSTER, kubectl: &tenant }.works();

    let recorder = Recorder::start(&trial.environment.cluster_kubeconfig(CLUSTER));
    let losses = Losses::new(&trial.environment, CLUSTER, (&trial.kubectl, &tenant), &recorder, start);
    losses.goes_on("nothing happens");
    losses.pods_are_killed();
    losses.a_manager_is_killed();
    losses.a_node_is_drained(NODES[1]);
    let lost = losses.managers_node_that_can_be_lost(NODES[0]);
    losses.a_node_is_lost(&lost);
    let shown = trial.environment.run("status");
    let words = String::from_utf8_lossy(&shown.stdout);
    assert!(!shown.status.success() && words.contains(&format!("machine     {lost}: stopped")), "{words}");
    losses.a_node_is_back(&lost);
    recorder.finish(&tenant);
    eventually("everything runs again", || {
        let shown = trial.environment.run("status");
        is(shown.status.success(), || String::from_utf8_lossy(&shown.stdout).into_owned())
    });
    let again = trial.environment.succeed("up");
    for line in
        ["  machine: running", "  further machines: running", "  add-ons: complete", "  hangar: unchanged"]
    {
        assert!(again.contains(line), "{line}: {again}");
    }
    trial.environment.succeed("down");
    trial.environment.assert_gone();
    tell("down");
}

impl Trial {
    fn each_node_is_in_a_zone_of_its_own(&self) {
        let path =
            r"{range .items[*]}{.metadata.name} {.metadata.labels.topology\.kubernetes\.io/zone};{end}";
        let nodes = self.kubectl.succeed(&["get", "nodes", "-o", &format!("jsonpath={path}")]);
        assert_eq!(nodes, "management zone-a;management-2 zone-b;management-3 zone-c;");
        self.kubectl.succeed(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=10m"]);
    }

    /// By address, through a Service and by its name; and who is reached sees who asks.
    fn pods_reach_pods_of_other_nodes(&self) {
        let pod = |name: &str, node: &str, command: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
                "spec": {
                    "nodeName": node,
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": name,
                        "image": Upstream::Flannel.reference(),
                        "command": ["/bin/sh", "-c", command],
                    }],
                },
            })
        };
        let serve = "mkdir /www; echo served > /www/index.html; exec httpd -f -vv -p 8080 -h /www";
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "server", "namespace": "default"},
            "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
        });
        let [_, second, third] = NODES;
        let client = pod("client", second, "while :; do sleep 1; done");
        self.kubectl.apply(&manifest(&[service, pod("server", third, serve), client]));
        self.kubectl.succeed(&["wait", "--for=condition=Ready", "pod/server", "pod/client", "--timeout=10m"]);
        let read =
            |what: &str, path: &str| self.kubectl.succeed(&["get", what, "-o", &format!("jsonpath={path}")]);
        let address = read("pod/server", "{.status.podIP}");
        let service = read("service/server", "{.spec.clusterIP}");
        for (host, port) in [(address.as_str(), 8080), (&service, 80), ("server.default.svc", 80)] {
            let fetch = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {host} {port}");
            eventually("a pod on another node answers", || {
                let said = self.kubectl.attempt(&["exec", "client", "--", "sh", "-c", &fetch])?;
                is(said.trim().ends_with("served"), || format!("{host}: {said}"))
            });
        }
        let log = self.kubectl.succeed(&["logs", "server"]);
        assert!(log.contains(&read("pod/client", "{.status.podIP}")), "somebody else asked: {log}");
        self.kubectl.succeed(&["delete", "pod", "server", "client"]);
    }

    /// With one worker: what it is about is in the management cluster.
    fn make_cluster(&self) {
        let sample = self.environment.sample(CLUSTER, Set::Kubernetes134.version());
        let mut objects = manifests(&sample).unwrap();
        for object in objects.iter_mut().filter(|object| object["kind"] == "HostedControlPlane") {
            object["spec"]["replicas"] = json!(3);
            object["spec"]["etcd"]["replicas"] = json!(3);
            object["spec"]["deployment"] =
                json!({"controllerManager": {"replicas": 2}, "scheduler": {"replicas": 2}});
        }
        self.kubectl.apply(&manifest(&objects));
    }

    /// Once all of it runs, with a network for its pods.
    fn tenant(&self) -> Kubectl {
        let path = "jsonpath={.status.readyReplicas}";
        eventually("all API servers are ready", || {
            let ready = self.kubectl.attempt(&["get", "hostedcontrolplane", CLUSTER, "-o", path])?;
            is(ready == "3", || self.environment.describe(CLUSTER))
        });
        let secret = format!("{CLUSTER}-kubeconfig");
        let file = self.environment.cluster_kubeconfig(CLUSTER);
        eventually("there is a kubeconfig", || {
            let text = self.kubectl.attempt(&["get", "secret", &secret, "-o", "jsonpath={.data.value}"])?;
            fs::write(&file, STANDARD.decode(text).unwrap()).map_err(|error| error.to_string())
        });
        let tenant = Kubectl::new(file);
        let (host, port) = tenant.server();
        let network = flannel::objects(&ApiServer { host: &host, port }, &POD_RANGE.to_string());
        eventually("the tenant takes its network", || tenant.try_apply(&manifest(&network)));
        tenant
    }

    /// And so in a zone of its own.
    fn each_pod_is_on_a_node_of_its_own(&self) {
        assert_eq!(self.nodes_of("hangar-system", "app.kubernetes.io/name=hangar").len(), 2, "managers");
        for (component, count) in
            [("etcd", 3), ("api-server", 3), ("controller-manager", 2), ("scheduler", 2)]
        {
            let selector =
                format!("cluster.x-k8s.io/cluster-name={CLUSTER},app.kubernetes.io/component={component}");
            eventually("each pod has a node", || {
                let nodes = self.nodes_of("default", &selector);
                is(nodes.len() == count, || format!("{component}: {nodes:?}"))
            });
        }
    }

    fn nodes_of(&self, namespace: &str, selector: &str) -> BTreeSet<String> {
        let path = "jsonpath={range .items[*]}{.spec.nodeName} {end}";
        let said = self.kubectl.succeed(&["-n", namespace, "get", "pods", "-l", selector, "-o", path]);
        said.split_whitespace().map(str::to_owned).collect()
    }
}

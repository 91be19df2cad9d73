//! One Cluster from `hangar up` to a Ready worker, what its owner does with it, and its deletion; then again while the
//! manager is killed repeatedly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use hangar_parts::images::Upstream;

use crate::egress::webhooks_by_url_leave_from_the_nodes;
use crate::environment::Environment;
use crate::kubectl::{Kubectl, Running};
use crate::turn;
use crate::waiting::{eventually, is, soon};

/// The sample's name.
const CLUSTER: &str = "demo";

/// What belongs to a cluster in the management cluster.
const KINDS: &str = "clusters,hostedcontrolplanes,openstackclusters,openstackmachines,machines,machinesets,\
                     machinedeployments,kubeadmconfigs,statefulsets,deployments,services,pods,secrets,configmaps,\
                     poddisruptionbudgets,networkpolicies,persistentvolumeclaims";

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: web
          image: IMAGE
          command: ["/bin/sh", "-c", "mkdir /www; echo served > /www/index.html; echo started; exec httpd -f -p 8080 -h /www"]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: client
      image: IMAGE
      command: ["/bin/sh", "-c", "while :; do sleep 1; done"]
"#;

/// A workload is reached through its Service and its name; logs and exec work although nothing leads to the worker.
fn owners_workload(tenant: &Kubectl) {
    tenant.apply(&WEB.replace("IMAGE", &Upstream::Flannel.reference()));
    tenant.succeed(&["rollout", "status", "deployment/web", "--timeout=10m"]);
    tenant.succeed(&["wait", "--for=condition=Ready", "pod/client", "--timeout=10m"]);
    let address = tenant.succeed(&["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"]);
    for host in [address.as_str(), "web", "web.default.svc.cluster.local"] {
        let fetch = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {host} 80");
        eventually("the Service answers", || {
            let output = tenant.run(&["exec", "client", "--", "sh", "-c", &fetch]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            is(text.trim().ends_with("served"), || {
                format!("{host}: {text}{}", String::from_utf8_lossy(&output.stderr))
            })
        });
    }
    assert!(tenant.succeed(&["logs", "deployment/web"]).contains("started"));
}

/// The management cluster has no way to the worker: what works does so through the tunnel. Asked of the routes of its
/// machine and of the private network: a packet to an address that neither knows would leave the host.
fn nothing_leads_to_the_worker(environment: &Environment, tenant: &Kubectl) {
    let path = "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}";
    let address = tenant.succeed(&["get", "nodes", "-o", path]);
    let (network, _) = address.rsplit_once('.').unwrap();
    for namespace in ["machine.management", "fabric.private"] {
        let routes = environment.routes(namespace);
        assert!(routes.contains("100.72."), "{namespace}: {routes}");
        assert!(!routes.contains(network), "{namespace} knows the way to {address}: {routes}");
    }
}

/// How many there are of each kind: in the management cluster, and in the cloud beyond what it begins with.
fn census(environment: &Environment, management: &Kubectl) -> BTreeMap<String, usize> {
    let mut census = BTreeMap::new();
    let selector = format!("cluster.x-k8s.io/cluster-name={CLUSTER}");
    for name in management.succeed(&["get", KINDS, "-l", &selector, "-o", "name"]).lines() {
        let kind = name.split('/').next().unwrap_or_default();
        *census.entry(kind.to_owned()).or_default() += 1;
    }
    let state = fs::read(environment.state.join(&environment.name).join("cloud/state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let begins_with = ["public", "default"];
    for kind in ["networks", "subnets", "routers", "ports", "security_groups", "floating_ips", "servers"] {
        let things = state["model"][kind].as_object().unwrap();
        let is_made =
            |thing: &&serde_json::Value| !begins_with.contains(&thing["name"].as_str().unwrap_or(""));
        let count = things.values().filter(is_made).count();
        if count > 0 {
            census.insert(format!("cloud's {kind}"), count);
        }
    }
    census
}

/// Deletes the Cluster; nothing of it is left anywhere.
fn delete(environment: &Environment, management: &Kubectl) {
    management.succeed(&["delete", "cluster", CLUSTER, "--timeout=10m"]);
    nothing_is_left(environment, management);
}

fn nothing_is_left(environment: &Environment, management: &Kubectl) {
    eventually("nothing is left", || {
        let left = census(environment, management);
        is(left.is_empty(), || format!("{left:?}"))
    });
    let templates =
        management.succeed(&["get", "openstackmachinetemplates,kubeadmconfigtemplates", "-o", "name"]);
    assert_eq!(templates, "", "templates go with the Cluster that uses them");
}

#[test]
fn a_cluster_from_apply_to_a_ready_worker_and_back() {
    let _turn = turn();
    let environment = Environment::new("thin").with_cluster();
    let output = environment.succeed("up");
    let kubeconfig = environment.cluster_kubeconfig(CLUSTER);
    assert_eq!(output.lines().last().map(Path::new), Some(kubeconfig.as_path()), "{output}");
    let tenant = Kubectl::new(kubeconfig);
    let management = Kubectl::new(environment.kubeconfig());
    let nodes = tenant.succeed(&["get", "nodes", "--no-headers"]);
    assert!(nodes.lines().count() == 1 && nodes.contains(" Ready "), "{nodes}");
    owners_workload(&tenant);
    nothing_leads_to_the_worker(&environment, &tenant);
    webhooks_by_url_leave_from_the_nodes(&environment, &tenant);
    let described = environment.describe(CLUSTER);
    assert!(described.starts_with("Cluster/demo") && !described.contains("not ready"), "{described}");
    let undisturbed = census(&environment, &management);
    assert_eq!(undisturbed.get("cloud's servers"), Some(&1), "{undisturbed:?}");
    delete(&environment, &management);

    killed_again_and_again(&environment, &management, &undisturbed);
    environment.succeed("down");
    environment.assert_gone();
}

/// The same once more, while the manager is killed in the middle of making the control plane, of making the worker, and
/// of deleting: nothing is doubled, nothing is left.
fn killed_again_and_again(
    environment: &Environment,
    management: &Kubectl,
    undisturbed: &BTreeMap<String, usize>,
) {
    let up = environment.command("up").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut up = Running(up);
    let count = |kind: &str| census(environment, management).get(kind).copied().unwrap_or_default();
    // Not counted: a census takes longer than etcd may take to be ready.
    let names = |kind: &str| management.succeed(&["get", kind, "-o", "name"]);
    soon("etcd is there", || !names("statefulsets").is_empty());
    environment.kill_manager();
    assert_eq!(names("deployments"), "", "the kill came in the middle of making the control plane");
    soon("the worker's server is there", || count("cloud's servers") == 1);
    environment.kill_manager();
    let ready = "jsonpath={.status.readyReplicas}";
    let ready = management.succeed(&["get", "machinedeployment", "demo-workers", "-o", ready]);
    assert!(ready.is_empty() || ready == "0", "the kill came in the middle of making the worker: {ready}");
    assert!(up.0.wait().unwrap().success(), "{}", environment.describe(CLUSTER));
    eventually("all is as without the kills", || {
        let found = census(environment, management);
        is(found == *undisturbed, || format!("{found:?}\nnot {undisturbed:?}"))
    });

    management.succeed(&["delete", "cluster", CLUSTER, "--wait=false"]);
    soon("the machine is going", || {
        management
            .succeed(&["get", "machines", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"])
            .contains('T')
    });
    environment.kill_manager();
    let left = management.succeed(&["get", "clusters", "-o", "name"]);
    assert!(left.contains(CLUSTER), "the kill came in the middle of deleting");
    eventually("the Cluster is gone", || {
        let left = management.succeed(&["get", "clusters", "-o", "name"]);
        is(left.is_empty(), || left)
    });
    nothing_is_left(environment, management);
}

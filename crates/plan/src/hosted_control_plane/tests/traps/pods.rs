//! Traps about where pods run, where their images come from, and what comes first on a full node.

use std::sync::Arc;

use super::*;
use crate::limits::Limits;

/// Everything that is rendered, in the management cluster and in the tenant.
fn all_pods(observed: &Observed) -> Vec<(String, Value)> {
    let plan = checked(observed);
    let all = plan.objects.iter().cloned().chain(tenant_objects(observed));
    let pods = all.filter_map(|object| {
        let pod = object.data.pointer("/spec/template/spec")?.clone();
        Some((ObjectIdentity::of(&object).name, pod))
    });
    pods.collect()
}

fn with_limits(mut observed: Observed, file: &str) -> Observed {
    observed.limits = Arc::new(Limits::parse(file).unwrap());
    observed
}

const HOSTED: [&str; 4] = ["demo-etcd", "demo-apiserver", "demo-controller-manager", "demo-scheduler"];

fn pod_of(observed: &Observed, name: &str) -> Value {
    all_pods(observed).into_iter().find(|(found, _)| found == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn one_registry_is_for_all_images_and_a_registry_of_its_own_wins() {
    let spec = json!({
        "imageRegistry": "registry.example.org/mirror",
        "deployment": {"scheduler": {"image": {"registry": "registry.k8s.io"}}},
    });
    let observed = all_ready(&spec);
    let mut images: Vec<String> = all_pods(&observed)
        .iter()
        .flat_map(|(_, pod)| pod["containers"].as_array().unwrap().clone())
        .map(|container| container["image"].as_str().unwrap().rsplit_once(':').unwrap().0.to_owned())
        .collect();
    images.sort();
    let mirrored = [
        "coredns/coredns",
        "etcd",
        "kas-network-proxy/proxy-agent",
        "kas-network-proxy/proxy-server",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
    ];
    let mut expected = mirrored.map(|path| format!("registry.example.org/mirror/{path}")).to_vec();
    expected.push("registry.k8s.io/kube-scheduler".to_owned());
    assert_eq!(images, expected);
    let kubeadm = tenant_object(&observed, "ConfigMap", "kubeadm-config").unwrap();
    let kubeadm = kubeadm["data"]["ClusterConfiguration"].as_str().unwrap().to_owned();
    assert!(kubeadm.contains("imageRepository: registry.example.org/mirror\n"), "{kubeadm}");
}

/// They are names of Secrets in the control plane's namespace, which mean nothing in the tenant.
#[test]
fn pull_secrets_and_placement_are_for_pods_of_the_management_cluster_alone() {
    let spec = json!({
        "imagePullSecrets": [{"name": "mirror"}],
        "placement": {
            "nodeSelector": {"topology.kubernetes.io/zone": "a"},
            "tolerations": [{"key": "tenants", "operator": "Exists"}],
        },
        "etcd": {"replicas": 1, "placement": {"nodeSelector": {"topology.kubernetes.io/zone": "b"}}},
    });
    let observed = all_ready(&spec);
    for (name, pod) in all_pods(&observed) {
        let is_hosted = HOSTED.contains(&name.as_str());
        assert_eq!(pod.get("imagePullSecrets").is_some(), is_hosted, "{name}");
        let zone = match name.as_str() {
            "demo-etcd" => json!("b"),
            _ if is_hosted => json!("a"),
            _ => Value::Null,
        };
        assert_eq!(pod["nodeSelector"]["topology.kubernetes.io/zone"], zone, "{name}");
        // etcd's own placement stands for all of the other.
        let tolerates = pod["tolerations"].as_array().into_iter().flatten();
        let tolerates = tolerates.filter(|found| found["key"] == "tenants").count();
        assert_eq!(tolerates, usize::from(is_hosted && name != "demo-etcd"), "{name}");
        if !is_hosted {
            assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}), "{name}");
        }
    }
}

#[test]
fn pods_have_hosts_of_their_own_where_the_operator_says_that_there_are_enough() {
    let spec = json!({"replicas": 3, "etcd": {"replicas": 3}});
    let constraint = |nodes: &str, name: &str, index: usize| {
        let observed = with_limits(all_ready(&spec), nodes);
        pod_of(&observed, name)["topologySpreadConstraints"][index].clone()
    };
    for (nodes, expected) in
        [("", "ScheduleAnyway"), ("nodes: 2", "ScheduleAnyway"), ("nodes: 3", "DoNotSchedule")]
    {
        for name in ["demo-etcd", "demo-apiserver"] {
            let hosts = constraint(nodes, name, 0);
            assert_eq!(hosts["topologyKey"], "kubernetes.io/hostname");
            assert_eq!((hosts["maxSkew"].as_i64(), &hosts["whenUnsatisfiable"]), (Some(1), &json!(expected)));
            let zones = constraint(nodes, name, 1);
            assert_eq!(zones["whenUnsatisfiable"], "ScheduleAnyway", "{nodes}");
        }
    }
    // One pod fits wherever there is a node.
    assert_eq!(constraint("nodes: 1", "demo-scheduler", 0)["whenUnsatisfiable"], "DoNotSchedule");
    // Pods that are replaced do not count, except etcd's, which are not replaced by others.
    assert_eq!(constraint("", "demo-apiserver", 0)["matchLabelKeys"], json!(["pod-template-hash"]));
    assert_eq!(constraint("", "demo-etcd", 0)["matchLabelKeys"], Value::Null);
}

#[test]
fn a_given_spread_replaces_the_default_of_its_key() {
    let spread = json!([
        {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"},
        {"topologyKey": "example.org/rack", "maxSkew": 2},
    ]);
    let observed = all_ready(&json!({"placement": {"topologySpread": spread}}));
    let pod = pod_of(&observed, "demo-apiserver");
    let found: Vec<String> = pod["topologySpreadConstraints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |field: &str| one[field].as_str().unwrap().to_owned();
            format!("{} {} {}", text("topologyKey"), one["maxSkew"], text("whenUnsatisfiable"))
        })
        .collect();
    let expected = [
        "kubernetes.io/hostname 1 ScheduleAnyway",
        "topology.kubernetes.io/zone 1 DoNotSchedule",
        "example.org/rack 2 ScheduleAnyway",
    ];
    assert_eq!(found, expected);
}

/// A class that does not exist keeps every pod from being made.
#[test]
fn the_priority_classes_of_the_installation_are_used_only_where_they_were_made() {
    let spec = json!({"deployment": {"apiServer": {"priorityClassName": "high"}, "scheduler": {"priorityClassName": ""}}});
    let mut observed = all_ready(&spec);
    let classes =
        |observed: &Observed| HOSTED.map(|name| pod_of(observed, name)["priorityClassName"].clone());
    assert_eq!(classes(&observed), [Value::Null, json!("high"), Value::Null, Value::Null]);
    observed.limits = Arc::new(Limits { has_priority_classes: true, ..Limits::clone(&observed.limits) });
    let ours = json!("hangar-control-plane");
    assert_eq!(classes(&observed), [json!("hangar-etcd"), json!("high"), ours.clone(), ours]);
}

#[test]
fn both_families_reach_all_that_has_addresses() {
    let mut observed = all_ready(&json!({}));
    if let Read::One(cluster) = &mut observed.cluster {
        cluster.service_ranges = vec!["10.96.0.0/16".to_owned(), "fd00:96::/112".to_owned()];
        cluster.pod_ranges = vec!["10.244.0.0/16".to_owned(), "fd00:244::/40".to_owned()];
    }
    // The certificate has both addresses of the `kubernetes` Service.
    let step = checked(&observed).steps.iter().find_map(|step| match step {
        Step::Own(OwnStep::Mint(mint)) if mint.material == Material::ApiServer => Some(mint.content.clone()),
        _ => None,
    });
    let intent = step.as_ref().and_then(Content::intent).unwrap();
    for address in ["10.96.0.1", "fd00:96::1"] {
        assert!(intent.ip_addresses.contains(&address.parse::<IpAddr>().unwrap()), "{intent:?}");
    }
    settle(&mut observed);
    let plan = checked(&observed);
    let flags = arguments(&plan, "demo-controller-manager");
    for flag in [
        "--allocate-node-cidrs=true",
        "--cluster-cidr=10.244.0.0/16,fd00:244::/40",
        "--node-cidr-mask-size-ipv6=56",
        "--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112",
    ] {
        assert!(flags.contains(flag), "{flag}: {flags:?}");
    }
    let service = &tenant_object(&observed, "Service", "kube-dns").unwrap()["spec"];
    assert_eq!(service["clusterIP"], "10.96.0.10");
    assert_eq!(service["clusterIPs"], json!(["10.96.0.10", "fd00:96::a"]));
    assert_eq!(service["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(service["ipFamilyPolicy"], "RequireDualStack");
    let document = |name: &str, key: &str| -> Value {
        let found = tenant_object(&observed, "ConfigMap", name).unwrap();
        serde_saphyr::from_str(found["data"][key].as_str().unwrap()).unwrap()
    };
    assert_eq!(document("kubelet-config", "kubelet")["clusterDNS"], json!(["10.96.0.10", "fd00:96::a"]));
    let networking = &document("kubeadm-config", "ClusterConfiguration")["networking"];
    assert_eq!(networking["podSubnet"], "10.244.0.0/16,fd00:244::/40");
    assert_eq!(networking["serviceSubnet"], "10.96.0.0/16,fd00:96::/112");
    assert_eq!(document("kube-proxy", "config.conf")["clusterCIDR"], "10.244.0.0/16,fd00:244::/40");
}

fn message(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// A drained node leaves pods that find no other host: the others serve, and who looks after nodes is told why one waits.
#[test]
fn a_pod_that_finds_no_node_is_named_while_the_others_serve() {
    let mut observed = all_ready(&json!({
        "replicas": 3,
        "etcd": {"replicas": 3},
        "deployment": {"controllerManager": {"replicas": 3}, "scheduler": {"replicas": 3}},
    }));
    let version = observed.api_server.iter().next().unwrap().version.clone().unwrap();
    let two_of_three = |name: &str| Read::One(workload(name, 3, 2, &version));
    let trouble = Some("Unschedulable: 0/3 nodes are available".to_owned());
    let unscheduled =
        |name: &str| Read::One(PodFacts { is_ready: false, trouble: trouble.clone(), ..pod(name, &version) });
    let conditions = ["APIServerReady", "ControllersReady"];
    let says = |observed: &Observed| {
        let plan = checked(observed);
        assert_eq!(condition_status(&plan, "Available"), "True Available");
        conditions.map(|kind| condition_status(&plan, kind))
    };

    observed.api_server = two_of_three("api-server");
    assert_eq!(says(&observed), ["True SomeReady", "True Ready"], "it may only be starting");
    observed.api_server_pods = unscheduled("demo-apiserver-c");
    assert_eq!(says(&observed), ["False PodFailing", "True Ready"]);
    observed.scheduler = two_of_three("scheduler");
    observed.controller_pods = unscheduled("demo-scheduler-c");
    assert_eq!(says(&observed), ["False PodFailing", "False PodFailing"]);
    let plan = checked(&observed);
    for (kind, text) in [
        (conditions[0], "API servers, 2 of 3 are ready"),
        (conditions[0], "demo-apiserver-c: Unschedulable: 0/3 nodes are available"),
        (conditions[1], "the scheduler's pods, 2 of 3 are ready"),
        (conditions[1], "demo-scheduler-c: Unschedulable"),
    ] {
        assert!(message(&plan, kind).contains(text), "{kind}: {}", message(&plan, kind));
    }
    for pods in [&mut observed.api_server_pods, &mut observed.controller_pods] {
        pods.iter_mut().for_each(|pod| pod.is_deleting = true);
    }
    assert_eq!(says(&observed), ["True SomeReady", "True Ready"], "it goes");
}

//! Traps about flags, settings and versions.

use super::*;

#[test]
fn a_file_has_durations_in_nanoseconds() {
    let spec = json!({"etcd": {"replicas": 1, "args": {"heartbeat-interval": "200", "corrupt-check-time": "1m", "pre-vote": "false"}}});
    let plan = checked(&etcd_started(&spec));
    let text =
        object(&plan, "ConfigMap", "demo-etcd")["data"]["demo-etcd-0.yaml"].as_str().unwrap().to_owned();
    let file: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(file["watch-progress-notify-interval"], 5_000_000_000_u64);
    assert_eq!(file["corrupt-check-time"], 60_000_000_000_u64);
    assert_eq!(file["heartbeat-interval"], 200);
    assert_eq!(file["pre-vote"], false);
    assert_eq!(file["quota-backend-bytes"], 6_442_450_944_u64);
    assert_eq!(file["client-transport-security"]["client-cert-auth"], true);
}

#[test]
fn what_the_control_plane_needs_wins_over_given_flags() {
    let spec =
        json!({"deployment": {"apiServer": {"args": {"etcd-servers": "https://elsewhere", "v": "4"}}}});
    let plan = checked(&etcd_started(&spec));
    let flags = arguments(&plan, "demo-apiserver");
    assert!(flags.contains("--v=4"));
    assert!(flags.contains("--etcd-servers=https://etcd0-demo.team.svc:2379"));
    assert!(plan.report.decisions.iter().any(|decision| decision.what.contains("--etcd-servers")));
}

#[test]
fn one_api_server_sends_nobody_away() {
    let goaway = |replicas: i32| {
        let plan = checked(&etcd_started(&json!({"replicas": replicas})));
        arguments(&plan, "demo-apiserver").contains("--goaway-chance=0.001")
    };
    assert!(!goaway(1) && goaway(2));
}

#[test]
fn workers_read_their_own_paths_and_only_fields_they_know() {
    let observed = all_ready(&json!({}));
    let text = |name: &str, key: &str| {
        let object = tenant_object(&observed, "ConfigMap", name).unwrap();
        serde_saphyr::from_str::<Value>(object["data"][key].as_str().unwrap()).unwrap()
    };
    assert_eq!(text("kubeadm-config", "ClusterConfiguration")["certificatesDir"], "/etc/kubernetes/pki");
    let kubelet = text("kubelet-config", "kubelet");
    assert_eq!(kubelet["failCgroupV1"], false);
    assert_eq!(kubelet["authentication"]["x509"]["clientCAFile"], "/etc/kubernetes/pki/ca.crt");
    assert_eq!(kubelet.as_object().unwrap().len(), 10);
    assert_eq!(
        text("kube-proxy", "config.conf")["conntrack"],
        json!({
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        })
    );
    assert_eq!(
        text("cluster-info", "kubeconfig")["clusters"][0]["cluster"]["server"],
        "https://192.0.2.10:6443"
    );
}

#[test]
fn images_are_those_that_exist() {
    let observed = all_ready(&json!({}));
    let mut images = BTreeSet::new();
    let objects = checked(&observed).objects.into_iter().chain(tenant_objects(&observed));
    for object in objects {
        let containers =
            object.data["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
        images.extend(containers.map(|container| container["image"].as_str().unwrap().to_owned()));
    }
    let expected = [
        "registry.k8s.io/coredns/coredns:v1.14.7",
        "registry.k8s.io/etcd:3.6.16-0",
        "registry.k8s.io/kas-network-proxy/proxy-agent:v0.34.0",
        "registry.k8s.io/kas-network-proxy/proxy-server:v0.34.0",
        "registry.k8s.io/kube-apiserver:v1.34.10",
        "registry.k8s.io/kube-controller-manager:v1.34.10",
        "registry.k8s.io/kube-proxy:v1.34.10",
        "registry.k8s.io/kube-scheduler:v1.34.10",
    ];
    assert_eq!(images.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn two_families_are_two_ranges() {
    let mut observed = etcd_started(&json!({}));
    if let Read::One(cluster) = &mut observed.cluster {
        cluster.service_ranges = vec!["10.96.0.0/16".to_owned(), "fd00:96::/112".to_owned()];
        cluster.pod_ranges = vec!["10.244.0.0/16".to_owned(), "fd00:244::/56".to_owned()];
    }
    settle(&mut observed);
    let flags = arguments(&checked(&observed), "demo-apiserver");
    assert!(flags.contains("--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112"), "{flags:?}");
}

#[test]
fn wrong_input_is_refused_with_its_field() {
    let refused = |spec: Value, change: fn(&mut ClusterFacts)| {
        let mut observed = created(&spec);
        if let Read::One(cluster) = &mut observed.cluster {
            change(cluster);
        }
        let plan = checked(&observed);
        assert!(plan.objects.is_empty() && plan.steps.is_empty());
        let found =
            plan.status.conditions.into_iter().find(|one| one.type_ == conditions::specification_valid::TYPE);
        found.unwrap().message
    };
    let same = |_: &mut ClusterFacts| {};
    assert!(refused(json!({"version": "v1.34"}), same).contains("spec.version"));
    assert!(refused(json!({"version": "v1.30.1"}), same).contains("1.31 to 1.37"));
    assert!(refused(json!({"etcd": {"replicas": 2}}), same).contains("spec.etcd.replicas"));
    assert!(refused(json!({"etcd": {"volumeSize": "much"}}), same).contains("spec.etcd.volumeSize"));
    let message = refused(json!({}), |cluster| cluster.service_ranges = vec!["10.96.0.0/29".to_owned()]);
    assert!(message.contains("services.cidrBlocks") && message.contains("too small"), "{message}");
    let message = refused(json!({}), |cluster| cluster.pod_ranges = vec!["nowhere".to_owned()]);
    assert!(message.contains("pods.cidrBlocks[0]"), "{message}");
    let message = refused(json!({}), |cluster| cluster.pod_ranges = vec!["10.96.128.0/17".to_owned()]);
    assert!(message.contains("overlaps"), "{message}");
    assert!(refused(json!({}), |cluster| cluster.api_server_port = Some(8132)).contains("apiServerPort"));
}

#[test]
fn settings_without_effect_are_said_to_be() {
    let spec =
        json!({"etcd": {"replicas": 1, "backup": {"schedule": "@daily", "secret": {"name": "bucket"}}}});
    let mut observed = etcd_started(&spec);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, conditions::settings_effective::TYPE), "False NotBuilt");
    observed.control_plane.status = Some(plan.status.clone());
    // The same again is the same: no status is written for nothing.
    observed.now = observed.now.checked_add(days(1) / 2).unwrap();
    assert_eq!(checked(&observed).status.conditions, plan.status.conditions);
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().backup = None;
    assert_eq!(condition_status(&checked(&observed), conditions::settings_effective::TYPE), "");
}

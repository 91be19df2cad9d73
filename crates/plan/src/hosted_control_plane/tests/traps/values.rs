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
    let ignored = &plan.report.decisions.iter().find(|decision| decision.what.starts_with("ignore")).unwrap();
    assert_eq!(ignored.what, "ignore spec.deployment.apiServer.args[etcd-servers]");
    assert!(ignored.why.contains("--etcd-servers of kube-apiserver"), "{}", ignored.why);
}

/// Programs take `-` and `_` for the same, and what follows the first `=` for the value.
#[test]
fn no_spelling_gets_past_what_the_control_plane_needs() {
    let args = json!({
        "authorization_mode": "AlwaysAllow", "--authorization-mode": "AlwaysAllow",
        "authorization-mode=AlwaysAllow,": "x", "Authorization-Mode": "AlwaysAllow", " --v": "9", "": "x",
        "max_requests_inflight": "100",
    });
    let plan = checked(&etcd_started(&json!({"deployment": {"apiServer": {"args": args}}})));
    let flags = arguments(&plan, "demo-apiserver");
    assert_eq!(flags.iter().filter(|flag| flag.contains("uthorization")).count(), 1, "{flags:?}");
    assert!(
        flags.contains("--authorization-mode=Node,RBAC") && flags.contains("--max-requests-inflight=100")
    );
    assert!(flags.iter().all(|flag| flag.starts_with("--") && !flag.contains(['_', ' '])), "{flags:?}");
    let ignored = plan.report.decisions.iter().filter(|decision| decision.what.starts_with("ignore"));
    assert_eq!(ignored.count(), 6);
}

/// With one of these the control plane would not start, or would be another's.
#[test]
fn flags_that_break_a_control_plane_are_ignored() {
    let given = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), json!("x"))).collect::<Value>();
    let api_server = [
        "admission-control",
        "anonymous-auth",
        "authorization-config",
        "bind-address",
        "egress-selector-config-file",
        "encryption-provider-config-automatic-reload",
        "etcd-prefix",
        "etcd-servers-overrides",
        "kubelet-client-key",
        "requestheader-uid-headers",
        "service-account-signing-endpoint",
        "tls-cert-file",
    ];
    let controller_manager = [
        "authorization-always-allow-paths",
        "cluster-signing-kubelet-client-key-file",
        "leader-elect-resource-name",
        "master",
    ];
    let scheduler = ["authorization-always-allow-paths", "config", "master", "write-config-to"];
    let etcd = ["force-new-cluster", "data_dir", "initial-cluster-state", "wal-dir", "Listen-Client-URLs"];
    let konnectivity = ["uds-name", "cluster-ca-cert", "server-ca-cert"];
    let spec = json!({
        "deployment": {
            "apiServer": {"args": given(&api_server), "konnectivity": {"args": given(&konnectivity)}},
            "controllerManager": {"args": given(&controller_manager)},
            "scheduler": {"args": given(&scheduler)},
        },
        "etcd": {"replicas": 1, "args": given(&etcd)},
    });
    let (plain, plan) = (checked(&all_ready(&json!({}))), checked(&all_ready(&spec)));
    assert_eq!(golden::objects(&plan), golden::objects(&plain));
    let ignored = plan.report.decisions.iter().filter(|decision| decision.what.starts_with("ignore"));
    let all = api_server.len() + controller_manager.len() + scheduler.len() + etcd.len() + konnectivity.len();
    assert_eq!(ignored.count(), all);
}

#[test]
fn kubelets_stay_restricted_whatever_plugins_are_chosen() {
    let flags = |args: Value| {
        let spec = json!({"deployment": {"apiServer": {"args": args}}});
        let flags = arguments(&checked(&etcd_started(&spec)), "demo-apiserver");
        flags.into_iter().filter(|flag| flag.contains("admission-plugins")).collect::<Vec<_>>()
    };
    assert_eq!(
        flags(json!({"enable-admission-plugins": "AlwaysPullImages, PodNodeSelector"})),
        ["--enable-admission-plugins=NodeRestriction,AlwaysPullImages,PodNodeSelector"]
    );
    assert_eq!(
        flags(json!({"enable_admission_plugins": "EventRateLimit,NodeRestriction"})),
        ["--enable-admission-plugins=EventRateLimit,NodeRestriction"]
    );
    assert_eq!(
        flags(json!({"disable-admission-plugins": "DefaultTolerationSeconds, NodeRestriction"})),
        ["--enable-admission-plugins=NodeRestriction"]
    );
    assert_eq!(
        flags(json!({"disable-admission-plugins": "DefaultTolerationSeconds"})),
        [
            "--disable-admission-plugins=DefaultTolerationSeconds",
            "--enable-admission-plugins=NodeRestriction"
        ]
    );
}

/// Resources of a container, and the memory that its program knows of.
fn memory(plan: &Plan, kind: &str, name: &str, index: usize) -> (Value, Value) {
    let container = &object(plan, kind, name)["spec"]["template"]["spec"]["containers"][index];
    let variable =
        container["env"].as_array().unwrap().iter().find(|one| one["name"] == "GOMEMLIMIT").unwrap();
    (container["resources"].clone(), variable["value"].clone())
}

#[test]
fn every_container_has_a_limit_of_memory_and_none_of_processors() {
    let plan = checked(&all_ready(&json!({})));
    for (kind, name, index, limit, soft) in [
        ("StatefulSet", "demo-etcd", 0, "2Gi", "1932735276"),
        ("Deployment", "demo-apiserver", 1, "2Gi", "1932735276"),
        ("Deployment", "demo-apiserver", 0, "512Mi", "483183819"),
        ("Deployment", "demo-controller-manager", 0, "1Gi", "966367638"),
        ("Deployment", "demo-scheduler", 0, "1Gi", "966367638"),
    ] {
        let (resources, known) = memory(&plan, kind, name, index);
        assert_eq!(
            (&resources["limits"], &known),
            (&json!({"memory": limit}), &json!(soft)),
            "{name} {index}"
        );
    }
}

#[test]
fn given_resources_replace_the_limit_of_memory_and_never_remove_it() {
    let of = |resources: Value| {
        let spec = json!({"deployment": {"apiServer": {"resources": resources}}});
        memory(&checked(&etcd_started(&spec)), "Deployment", "demo-apiserver", 1)
    };
    let (resources, known) = of(json!({"limits": {"memory": "4Gi"}}));
    assert_eq!((resources, known), (json!({"limits": {"memory": "4Gi"}}), json!("3865470561")));
    let (resources, _) = of(json!({"requests": {"cpu": "2"}}));
    assert_eq!(resources, json!({"limits": {"memory": "2Gi"}, "requests": {"cpu": "2"}}));
    // A request above the default would make pods that nobody accepts.
    let (resources, _) = of(json!({"requests": {"memory": "3Gi"}}));
    assert_eq!(resources, json!({"limits": {"memory": "3Gi"}, "requests": {"memory": "3Gi"}}));
}

#[test]
fn what_the_limits_no_longer_allow_is_left_as_it_runs() {
    let spec = json!({"deployment": {"apiServer": {"priorityClassName": "high"}}});
    let mut observed = all_ready(&spec);
    observed.control_plane.status = Some(checked(&observed).status);
    observed.limits = std::sync::Arc::default();
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());
    assert!(tenant_objects(&observed).is_empty() && tenant_leftovers(&observed).is_empty());
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
    assert_eq!(condition_status(&plan, conditions::specification_valid::TYPE), "False NotAllowed");
    let type_ = conditions::specification_valid::TYPE;
    let message = plan.status.conditions.iter().find(|one| one.type_ == type_).unwrap().message.clone();
    assert!(message.contains("spec.deployment.apiServer.priorityClassName"), "{message}");
    assert!(message.contains("setting priorityClasses"), "{message}");
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
    assert!(message.contains("pods.cidrBlocks[0]") && message.contains("overlaps"), "{message}");
    let message = refused(json!({}), |cluster| {
        cluster.pod_ranges = ["10.0.0.0/16", "fd00::/48", "fd01::/48"].map(str::to_owned).into();
    });
    assert!(message.contains("pods.cidrBlocks[2]"), "{message}");
    let message = refused(json!({}), |cluster| {
        cluster.service_ranges = ["10.96.0.0/16", "fd00:96::/112"].map(str::to_owned).into();
    });
    assert!(message.contains("services.cidrBlocks[1]") && message.contains("address family"), "{message}");
    let older = json!({"version": "v1.33.0"});
    let message = refused(older, |cluster| cluster.service_ranges = vec!["11.0.0.0/8".to_owned()]);
    assert!(message.contains("services.cidrBlocks[0]") && message.contains("too large"), "{message}");
    let message = refused(json!({}), |cluster| cluster.pod_ranges = vec!["10.0.0.0/26".to_owned()]);
    assert!(message.contains("pods.cidrBlocks[0]") && message.contains("each node"), "{message}");
    let everything = json!({"placement": {"tolerations": [{"operator": "Exists"}]}});
    assert!(refused(everything, same).contains("spec.placement.tolerations[0].key"));
    assert!(refused(json!({}), |cluster| cluster.api_server_port = Some(8132)).contains("apiServerPort"));
}

#[test]
fn settings_without_effect_are_said_to_be() {
    let spec = json!({"etcd": {"replicas": 1, "autoGrow": true}});
    let mut observed = etcd_started(&spec);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, conditions::settings_effective::TYPE), "False NotBuilt");
    observed.control_plane.status = Some(plan.status.clone());
    // The same again is the same: no status is written for nothing.
    observed.now = observed.now.checked_add(days(1) / 2).unwrap();
    assert_eq!(checked(&observed).status.conditions, plan.status.conditions);
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().auto_grow = None;
    assert_eq!(condition_status(&checked(&observed), conditions::settings_effective::TYPE), "");
}

#[test]
fn every_setting_that_is_ignored_is_named_with_its_reason() {
    let owned = |name: &str| json!({"args": {name: "x"}});
    let spec = json!({
        "etcd": {"replicas": 1, "args": {"data-dir": "/elsewhere"}},
        "konnectivityClient": owned("agent-id"),
        "deployment": {
            "apiServer": {"args": {"etcd-servers": "x", "v": "4"}, "konnectivity": owned("server-port")},
            "controllerManager": owned("cluster-cidr"),
            "scheduler": owned("config"),
        },
    });
    let message = |observed: &Observed, status: &str| {
        let plan = checked(observed);
        let type_ = conditions::settings_effective::TYPE;
        assert_eq!(condition_status(&plan, type_), status);
        plan.status.conditions.into_iter().find(|one| one.type_ == type_).unwrap().message
    };
    let mut observed = all_ready(&spec);
    let said = message(&observed, "False Ignored");
    for field in [
        "spec.etcd.args[data-dir]: --data-dir of etcd is set by Hangar",
        "spec.konnectivityClient.args[agent-id]",
        "spec.deployment.apiServer.args[etcd-servers]",
        "spec.deployment.apiServer.konnectivity.args[server-port]",
        "spec.deployment.controllerManager.args[cluster-cidr]",
        "spec.deployment.scheduler.args[config]",
    ] {
        assert!(said.contains(field), "{field}: {said}");
    }
    assert!(!said.contains("args[v]"), "{said}");

    // What was fixed when the control plane was made.
    let mut settled = all_ready(&json!({}));
    settled.control_plane.spec.settings.etcd =
        serde_json::from_value(json!({"replicas": 5, "autoGrow": true})).unwrap();
    settled.control_plane.spec.settings.certificates = serde_json::from_value(
        json!({"rootCaCertificateDuration": "90000h", "leafCertificateDuration": "100h"}),
    )
    .unwrap();
    let said = message(&settled, "False NotBuilt");
    for field in ["spec.certificates.rootCaCertificateDuration: ", "spec.etcd.autoGrow"] {
        assert!(said.contains(field), "{field}: {said}");
    }
    assert!(
        !said.contains("leafCertificateDuration") && !said.contains("spec.certificates.caCert"),
        "{said}"
    );

    observed.control_plane.spec.settings = all_ready(&json!({})).control_plane.spec.settings;
    assert_eq!(condition_status(&checked(&observed), conditions::settings_effective::TYPE), "");
}

/// Trap: kube-apiserver reads some files only when it starts. Whoever changes them must get other pods.
#[test]
fn another_file_that_is_read_at_the_start_is_another_pod() {
    let template = |observed: &Observed| {
        let plan = checked(observed);
        object(&plan, "Deployment", "demo-apiserver")["spec"]["template"]["metadata"]["annotations"].clone()
    };
    let mut observed = all_ready(&json!({}));
    let before = template(&observed);
    let plan = checked(&observed);
    let files = object(&plan, "ConfigMap", "demo-apiserver")["data"].as_object().unwrap().clone();
    let fingerprint = |material| observed.secret(material).iter().next().unwrap().fingerprint.clone();
    let parts = [Material::KonnectivityServer, Material::EncryptionConfiguration].map(fingerprint);
    let files = files.iter().flat_map(|(name, text)| [name.clone(), text.as_str().unwrap().to_owned()]);
    let all: Vec<String> = parts.into_iter().chain(files).collect();
    assert_eq!(before[names::SETTINGS_ANNOTATION], crate::hash::text(&all.join("\0")), "every file is in it");
    secret(&mut observed, Material::KonnectivityServer).fingerprint = "another".to_owned();
    assert_ne!(template(&observed), before);
}

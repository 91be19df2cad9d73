//! Traps about the endpoint and the objects in the tenant.

use super::*;

#[test]
fn a_published_endpoint_is_never_changed() {
    let mut observed = all_ready(&json!({}));
    if let Read::One(service) = &mut observed.service {
        service.ingress_ips = vec!["192.0.2.99".to_owned()];
    }
    let plan = checked(&observed);
    assert!(!plan.steps.iter().any(|step| is(step, "publish-endpoint", "control-plane")));
    assert_eq!(condition_status(&plan, conditions::endpoint_ready::TYPE), "False AddressChanged");
    // The certificate has both.
    let mint = plan.steps.iter().find_map(|step| match step {
        Step::Own(OwnStep::Mint(mint)) if mint.material == Material::ApiServer => Some(mint),
        _ => None,
    });
    let addresses = &mint.unwrap().content.intent().unwrap().ip_addresses;
    for address in [ADDRESS, "192.0.2.99"] {
        assert!(addresses.contains(&address.parse::<IpAddr>().unwrap()));
    }
}

#[test]
fn an_endpoint_of_the_infrastructures_own_is_a_conflict() {
    let mut observed = all_ready(&json!({}));
    if let Read::One(infrastructure) = &mut observed.infrastructure {
        infrastructure.endpoint = Endpoint { host: "198.51.100.1".to_owned(), port: 6443 };
    }
    let plan = checked(&observed);
    assert!(!plan.steps.iter().any(|step| is(step, "publish-endpoint", "infrastructure")));
    assert_eq!(condition_status(&plan, conditions::endpoint_ready::TYPE), "False Conflict");
}

#[test]
fn a_load_balancer_with_a_name_only_works_but_for_pods() {
    let mut observed = api_server_ready(&json!({}));
    for (read, name) in
        [(&mut observed.service, "lb.example.org"), (&mut observed.tunnel, "other.example.org")]
    {
        if let Read::One(service) = read {
            service.ingress_ips.clear();
            service.ingress_hostnames = vec![name.to_owned()];
        }
    }
    settle(&mut observed);
    reach_tenant(&mut observed);
    settle(&mut observed);
    let plan = checked(&observed);
    let endpoint = observed.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
    assert_eq!(endpoint.to_string(), "lb.example.org:6443");
    assert!(tenant_object(&observed, "EndpointSlice", "kubernetes").is_none());
    assert_eq!(condition_status(&plan, conditions::workload_ready::TYPE), "False NoAddress");
    assert_eq!(exposure::needs(&observed).name.as_deref(), Some("lb.example.org"));
    // Pods go by what the name leads to now.
    observed.ways.resolved = Read::found(["192.0.2.41".parse().unwrap(), "2001:db8::41".parse().unwrap()]);
    for (slice, address) in [("kubernetes", "192.0.2.41"), ("kubernetes-ipv6", "2001:db8::41")] {
        let slice = tenant_object(&observed, "EndpointSlice", slice).unwrap();
        assert_eq!(slice["endpoints"][0]["addresses"][0], address);
    }
    let endpoint = observed.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
    assert_eq!(endpoint.to_string(), "lb.example.org:6443", "nobody else does");
    let agent = tenant_object(&observed, "Deployment", "konnectivity-agent").unwrap();
    assert!(agent["spec"]["template"]["spec"].get("hostAliases").is_none());
    assert!(agent.to_string().contains("--proxy-server-host=other.example.org"));
}

#[test]
fn node_ports_and_cluster_addresses_are_endpoints_too() {
    let endpoint = |spec: Value| {
        let mut observed = created(&spec);
        settle(&mut observed);
        observed.service = Read::One(ServiceFacts {
            cluster_ip: Some("10.0.0.7".to_owned()),
            node_ports: [("https".to_owned(), 31443), ("konnectivity".to_owned(), 31132)].into(),
            ..ServiceFacts::default()
        });
        settle(&mut observed);
        let before = checked(&observed).objects;
        let published = observed.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
        assert_eq!(checked(&observed).objects, before);
        published.to_string()
    };
    assert_eq!(endpoint(json!({"exposure": {"type": "ClusterIP"}})), "10.0.0.7:6443");
    let node_port = json!({"exposure": {"type": "NodePort", "nodePort": {"addresses": ["203.0.113.5"]}}});
    assert_eq!(endpoint(node_port), "203.0.113.5:31443");
}

#[test]
fn the_kubernetes_service_never_loses_its_endpoints() {
    let mut observed = all_ready(&json!({}));
    assert!(arguments(&checked(&observed), "demo-apiserver").contains("--endpoint-reconciler-type=none"));
    // Even while no API server is ready.
    observed.api_server = Read::One(workload("api-server", 1, 0, "v1.34.10"));
    let slice = tenant_object(&observed, "EndpointSlice", "kubernetes").unwrap();
    assert_eq!(slice["endpoints"][0]["addresses"][0], ADDRESS);
    assert_eq!(slice["ports"][0]["port"], 6443);
    assert!(tenant_object(&observed, "Endpoints", "kubernetes").is_some());
}

#[test]
fn addons_are_never_scaled_to_none() {
    let mut observed = all_ready(&json!({}));
    let replicas = |observed: &Observed, nodes: u32| {
        let mut observed = observed.clone();
        if let Read::One(tenant) = &mut observed.tenant {
            tenant.nodes = nodes;
        }
        tenant_object(&observed, "Deployment", "coredns").unwrap()["spec"]["replicas"].as_i64().unwrap()
    };
    assert_eq!((replicas(&observed, 0), replicas(&observed, 1), replicas(&observed, 9)), (1, 1, 2));
    observed.control_plane.spec.settings.coredns = serde_json::from_value(json!({"replicas": 0})).unwrap();
    assert_eq!(replicas(&observed, 9), 1);
}

#[test]
fn drift_is_repaired_and_foreign_objects_are_not_touched() {
    let mut observed = all_ready(&json!({}));
    let Read::One(tenant) = &mut observed.tenant else { panic!() };
    let find = |tenant: &TenantFacts, kind: &str, name: &str| {
        tenant.objects.keys().find(|object| object.kind == kind && object.name == name).cloned().unwrap()
    };
    let drifted = find(tenant, "ConfigMap", "coredns");
    let foreign = find(tenant, "DaemonSet", "kube-proxy");
    if let Some(TenantObject::Ours { is_drifted, .. }) = tenant.objects.get_mut(&drifted) {
        *is_drifted = true;
    }
    tenant.objects.insert(foreign, TenantObject::Foreign);
    let plan = checked(&observed);
    let steps: Vec<String> = plan.steps.iter().map(|step| flow::Identified::id(step).to_string()).collect();
    assert_eq!(steps, ["apply tenant ConfigMap kube-system/coredns"]);
    assert_eq!(condition_status(&plan, conditions::workload_ready::TYPE), "False NameTaken");
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
}

#[test]
fn kube_proxy_goes_when_it_is_left_out() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.spec.settings.kube_proxy =
        serde_json::from_value(json!({"disabled": true})).unwrap();
    let plan = checked(&observed);
    let deleted: Vec<String> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Tenant(TenantStep::Delete { object, .. }) => Some(object.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(deleted, ["DaemonSet kube-system/kube-proxy", "ConfigMap kube-system/kube-proxy"]);
}

#[test]
fn core_dns_goes_when_it_is_left_out() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.spec.settings.coredns = serde_json::from_value(json!({"disabled": true})).unwrap();
    let leftovers: Vec<String> = tenant_leftovers(&observed)
        .iter()
        .map(ToString::to_string)
        .filter(|name| name.contains("dns"))
        .collect();
    let expected =
        ["Deployment kube-system/coredns", "ConfigMap kube-system/coredns", "Service kube-system/kube-dns"];
    assert_eq!(leftovers, expected);
    assert!(tenant_object(&observed, "Deployment", "coredns").is_none());
}

/// kube-proxy ignores flags beside its file.
#[test]
fn what_is_set_on_kube_proxy_is_in_its_file() {
    let arguments =
        json!({"args": {"proxy-mode": "iptables", "conntrack-min": "9", "v": "4", "config": "/x"}});
    let observed = all_ready(&json!({"kubeProxy": arguments}));
    let map = tenant_object(&observed, "ConfigMap", "kube-proxy").unwrap();
    let file: Value = serde_saphyr::from_str(map["data"]["config.conf"].as_str().unwrap()).unwrap();
    assert_eq!((&file["mode"], &file["conntrack"]["min"]), (&json!("iptables"), &json!(9)));
    let set = tenant_object(&observed, "DaemonSet", "kube-proxy").unwrap();
    let flags = &set["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(
        flags,
        &json!(["--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)", "--v=4"])
    );
    let plan = checked(&observed);
    let said =
        plan.status.conditions.iter().find(|condition| condition.type_ == "SettingsEffective").unwrap();
    assert!(said.message.contains("spec.kubeProxy.args[config]"), "{}", said.message);
}

#[test]
fn agents_restart_for_another_authority() {
    let mut observed = all_ready(&json!({}));
    let template = |observed: &Observed| {
        tenant_object(observed, "Deployment", "konnectivity-agent").unwrap()["spec"]["template"].clone()
    };
    let before = template(&observed);
    secret(&mut observed, Material::ClusterAuthority).certificate = Some("another\n".to_owned());
    assert_ne!(template(&observed), before);
}

/// A name server that tolerates everything lands on nodes that are broken, and stays there.
#[test]
fn only_what_makes_a_node_ready_tolerates_one_that_is_not() {
    let observed = all_ready(&json!({}));
    let tolerates = |name: &str| {
        let object = tenant_object(&observed, "Deployment", name).unwrap();
        let tolerations = object["spec"]["template"]["spec"]["tolerations"].clone();
        let tolerations = tolerations.as_array().unwrap().clone();
        assert!(tolerations.iter().all(|toleration| toleration.get("key").is_some()), "{name}");
        tolerations.iter().any(|toleration| toleration["key"] == "node.kubernetes.io/not-ready")
    };
    assert!(tolerates("konnectivity-agent"));
    assert!(!tolerates("coredns"));
}

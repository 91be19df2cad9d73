//! Traps about who connects where: users, nodes, agents of the tunnel, pods of the tenant, the manager.

use super::*;

fn agents(observed: &Observed) -> Option<(BTreeSet<String>, Value)> {
    let spec =
        tenant_object(observed, "Deployment", "konnectivity-agent")?["spec"]["template"]["spec"].clone();
    let flags = spec["containers"][0]["args"].as_array().unwrap();
    Some((flags.iter().map(|flag| flag.as_str().unwrap().to_owned()).collect(), spec["hostAliases"].clone()))
}

fn server(observed: &Observed, map: &str, key: &str) -> String {
    let map = tenant_object(observed, "ConfigMap", map).unwrap();
    let document: Value = serde_saphyr::from_str(map["data"][key].as_str().unwrap()).unwrap();
    document["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned()
}

fn intent(observed: &mut Observed, material: Material) -> CertificateIntent {
    observed.secrets.insert(material, Read::Absent);
    let found = checked(observed).steps.iter().find_map(|step| match step {
        Step::Own(OwnStep::Mint(mint)) if mint.material == material => mint.content.intent().cloned(),
        _ => None,
    });
    found.unwrap()
}

/// Else requests through a new API server fail until agents have found it, and with a webhook writes fail with them.
#[test]
fn agents_reach_a_pod_before_it_is_ready_and_nobody_else_does() {
    for exposure in [
        json!({"loadBalancer": {"class": "example.org/lb", "annotations": {"share": "yes"}}}),
        json!({"type": "NodePort", "nodePort": {"addresses": ["192.0.2.1"], "port": 31000}}),
        json!({"type": "ClusterIP"}),
    ] {
        let plan = checked(&etcd_started(&json!({"exposure": exposure})));
        let (api, tunnel) =
            (object(&plan, "Service", "api-demo"), object(&plan, "Service", "konnectivity-demo"));
        assert_eq!(tunnel["spec"]["publishNotReadyAddresses"], true);
        assert_eq!(api["spec"].get("publishNotReadyAddresses"), None);
        for field in ["type", "selector", "loadBalancerClass"] {
            assert_eq!(api["spec"].get(field), tunnel["spec"].get(field), "{field}");
        }
        assert_eq!(tunnel["spec"]["ports"].as_array().unwrap().len(), 1);
        assert_eq!(tunnel["spec"]["ports"][0]["port"], 8132);
        assert_eq!(tunnel["spec"]["ports"][0].get("nodePort"), None, "the chosen port is the API server's");
        assert_eq!(api["spec"]["ports"].as_array().unwrap().len(), 1);
    }
    let plan = checked(&all_ready(&json!({})));
    let pod = &object(&plan, "Deployment", "demo-apiserver")["spec"]["template"]["spec"];
    let tunnel = &pod["containers"][0];
    assert_eq!(tunnel["name"], "konnectivity-server", "it starts first, and agents come meanwhile");
    assert_eq!(tunnel.get("readinessProbe"), None, "it would wait for agents, which need nodes");
}

#[test]
fn nobody_but_agents_waits_for_the_tunnels_address() {
    let mut observed = all_ready(&json!({}));
    let address = |observed: &mut Observed, addresses: &[&str]| {
        if let Read::One(tunnel) = &mut observed.tunnel {
            tunnel.ingress_ips = addresses.iter().map(|&address| address.to_owned()).collect();
        }
    };
    address(&mut observed, &[]);
    let plan = checked(&observed);
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
    assert_eq!(condition_status(&plan, conditions::endpoint_ready::TYPE), "True Published");
    assert_eq!(condition_status(&plan, conditions::workload_ready::TYPE), "False NoAddress");
    assert_eq!(agents(&observed), None);
    address(&mut observed, &[TUNNEL_ADDRESS]);
    let (flags, aliases) = agents(&observed).unwrap();
    assert!(flags.contains("--proxy-server-host=konnectivity-demo.team.svc"), "{flags:?}");
    assert_eq!(aliases[0]["ip"], TUNNEL_ADDRESS);
    // A Service that could not be read takes no name from a certificate, and no agent away.
    observed.tunnel = Read::unknown("the watch is not synced");
    assert_eq!(mints(&checked(&observed)), []);
}

#[test]
fn a_name_leads_agents_only_where_the_address_is_shared() {
    let spec = json!({"controlPlaneEndpoint": {"host": "api.example.org", "port": 6443}});
    let mut observed = all_ready(&spec);
    assert_eq!(agents(&observed).unwrap().1[0]["ip"], TUNNEL_ADDRESS);
    if let Read::One(tunnel) = &mut observed.tunnel {
        tunnel.ingress_ips = vec![ADDRESS.to_owned()];
    }
    let (flags, aliases) = agents(&observed).unwrap();
    assert!(flags.contains("--proxy-server-host=api.example.org") && aliases.is_null(), "{flags:?}");
    // The name was in the certificate from the start: nobody is replaced for it.
    assert_eq!(mints(&checked(&observed)), []);
}

#[test]
fn nodes_may_have_a_host_of_their_own() {
    let exposure = json!({
        "type": "NodePort", "nodeHost": "nodes.example.org",
        "nodePort": {"addresses": ["192.0.2.1"], "port": 31000},
    });
    let mut observed = api_server_ready(&json!({"exposure": exposure}));
    for (read, name, port) in
        [(&mut observed.service, "https", 31000), (&mut observed.tunnel, "konnectivity", 31001)]
    {
        if let Read::One(service) = read {
            service.node_ports.insert(name.to_owned(), port);
        }
    }
    let server_of_people = |observed: &Observed| {
        checked(observed).steps.iter().find_map(|step| match step {
            Step::Own(OwnStep::Mint(mint)) if mint.material == Material::Kubeconfig => match &mint.content {
                Content::Kubeconfig { server, .. } => Some(server.clone()),
                _ => None,
            },
            _ => None,
        })
    };
    // The administrator gets a kubeconfig once he has rights.
    reach_tenant(&mut observed);
    assert_eq!(server_of_people(&observed), None);
    let binds = |step: &&Step| flow::Identified::id(*step).name.ends_with("hangar:administrator");
    let bind = checked(&observed).steps.iter().find(binds).unwrap().clone();
    observed.fold(&bind, &super::super::fixture::outcome(&bind));
    assert_eq!(server_of_people(&observed).as_deref(), Some("https://192.0.2.1:31000"));
    settle(&mut observed);
    let nodes = "https://nodes.example.org:31000";
    for (map, key) in [
        ("cluster-info", "kubeconfig"),
        ("kube-proxy", "kubeconfig.conf"),
        ("konnectivity-agent", "kubeconfig"),
    ] {
        assert_eq!(server(&observed, map, key), nodes, "{map}");
    }
    let (flags, _) = agents(&observed).unwrap();
    assert!(flags.contains("--proxy-server-host=nodes.example.org"), "{flags:?}");
    assert!(flags.contains("--proxy-server-port=31001"), "{flags:?}");
    let endpoint = observed.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
    assert_eq!(endpoint.to_string(), "192.0.2.1:31000", "people's stays people's");
    for material in [Material::ApiServer, Material::KonnectivityServer] {
        assert!(intent(&mut observed, material).dns_names.contains("nodes.example.org"), "{material}");
    }
    assert!(intent(&mut observed, Material::ApiServer).ip_addresses.contains(&"192.0.2.1".parse().unwrap()));
}

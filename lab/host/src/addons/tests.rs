//! Goldens, and checks for any options.

use super::*;

fn options(gateway: bool) -> AddonOptions {
    AddonOptions {
        api_server: ApiServer { host: Ipv4Addr::new(100, 72, 0, 10), port: 6443 },
        pod_range: "10.244.0.0/16".parse().unwrap(),
        dns_address: Ipv4Addr::new(10, 96, 0, 10),
        resolver: Ipv4Addr::new(100, 72, 0, 10),
        load_balancer: LoadBalancerOptions {
            link: "eth0".to_owned(),
            first: Ipv4Addr::new(100, 72, 0, 201),
            last: Ipv4Addr::new(100, 72, 0, 250),
        },
        images: Images::default(),
        nodes: 1,
        gateway: gateway.then(|| GatewayOptions {
            address: Ipv4Addr::new(100, 72, 0, 200),
            domain: gateway::DOMAIN.to_owned(),
        }),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Pod templates, with their workload's name.
fn templates(objects: &[Value]) -> Vec<(&str, &Value)> {
    let template = |object: &'_ Value| object.pointer("/spec/template/spec").is_some();
    objects
        .iter()
        .filter(|object| template(object))
        .map(|object| (text(object, "/metadata/name"), object.pointer("/spec/template/spec").unwrap()))
        .collect()
}

#[test]
fn without_gateway() {
    insta::assert_snapshot!(to_yaml(&objects(&options(false))).unwrap());
}

#[test]
fn with_gateway() {
    let all = objects(&options(true));
    let base = objects(&options(false));
    assert_eq!(all[..base.len()], base[..], "a gateway only adds");
    insta::assert_snapshot!(to_yaml(&all[base.len()..]).unwrap());
}

#[test]
fn what_is_referred_to_comes_first() {
    let objects = objects(&options(true));
    let position = |kind: &str, namespace: &str, name: &str| {
        objects.iter().position(|object| {
            text(object, "/kind") == kind
                && text(object, "/metadata/namespace") == namespace
                && text(object, "/metadata/name") == name
        })
    };
    for (index, object) in objects.iter().enumerate() {
        let namespace = text(object, "/metadata/namespace");
        if namespace == gateway::NAMESPACE {
            assert!(position("Namespace", "", namespace) < Some(index), "{object}");
        }
        if let Some(spec) = object.pointer("/spec/template/spec") {
            let account = text(spec, "/serviceAccountName");
            let found = position("ServiceAccount", namespace, account);
            assert!(found.is_some_and(|found| found < index), "{account} comes after its user");
            for volume in spec["volumes"].as_array().into_iter().flatten() {
                let found = position("ConfigMap", namespace, text(volume, "/configMap/name"));
                assert!(found.is_some_and(|found| found < index), "{volume} comes after its user");
            }
        }
        if text(object, "/kind") == "ClusterRoleBinding" {
            let role = text(object, "/roleRef/name");
            let is_built_in = role.starts_with("system:");
            assert!(is_built_in || position("ClusterRole", "", role) < Some(index), "{role}");
        }
    }
}

#[test]
fn nothing_waits_for_a_taint_a_registry_or_kube_proxy() {
    let objects = objects(&options(true));
    let templates = templates(&objects);
    assert_eq!(templates.len(), 5);
    for (name, spec) in templates {
        assert_eq!(spec["tolerations"], serde_json::json!([{"operator": "Exists"}]), "{name}");
        let container = &spec["containers"][0];
        assert_eq!(container["imagePullPolicy"], "IfNotPresent", "{name}");
        let image = text(container, "/image");
        assert!(image.rsplit_once(':').is_some_and(|(_, tag)| tag.starts_with('v')), "{image}");
        let address = container["env"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|variable| variable["name"] == "KUBERNETES_SERVICE_HOST")
            .map(|variable| text(variable, "/value"));
        // kube-proxy has its kubeconfig.
        assert_eq!(address.is_none(), name == "kube-proxy", "{name}");
    }
}

#[test]
fn with_several_nodes_a_lost_one_is_left_and_volumes_are_where_pods_are() {
    let objects = objects(&AddonOptions { nodes: 3, ..options(true) });
    for object in &objects {
        let spec = object.pointer("/spec/template/spec");
        let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
        let stays =
            spec.is_some_and(|spec| spec["tolerations"] == serde_json::json!([{"operator": "Exists"}]));
        assert_eq!(stays, kind == "DaemonSet", "{name}");
        if let ("Deployment", Some(replicas)) = (kind, object.pointer("/spec/replicas")) {
            // One chooses addresses, and need not be there all the time.
            let expected = if name == "kube-vip-cloud-provider" { 1 } else { 2 };
            assert_eq!(replicas, expected, "{name}");
        }
        if kind == "StorageClass" {
            let is_default =
                text(object, "/metadata/annotations/storageclass.kubernetes.io~1is-default-class");
            let waits = text(object, "/volumeBindingMode") == "WaitForFirstConsumer";
            assert_eq!(is_default, waits.to_string(), "{name}");
        }
    }
}

#[test]
fn nobody_is_granted_everything() {
    for object in objects(&options(true)) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            assert!(!rule.to_string().contains("\"*\""), "{rule}");
        }
    }
}

#[test]
fn a_changed_setting_rolls_kube_proxy() {
    let annotations = |options: &AddonOptions| {
        let objects = objects(options);
        let daemon_set = objects.iter().find(|object| text(object, "/kind") == "DaemonSet").unwrap();
        daemon_set.pointer("/spec/template/metadata/annotations").unwrap().clone()
    };
    let changed = AddonOptions { pod_range: "10.8.0.0/16".parse().unwrap(), ..options(false) };
    assert_ne!(annotations(&options(false)), annotations(&changed));
    assert_eq!(annotations(&options(false)), annotations(&options(true)));
}

#[test]
fn the_gateways_address_is_not_handed_out() {
    let options = options(true);
    let address = options.gateway.unwrap().address;
    assert!(!(options.load_balancer.first..=options.load_balancer.last).contains(&address));
}

#[test]
fn custom_resources_are_read_sorted_and_checked() {
    let files = tempfile::tempdir().unwrap();
    assert!(matches!(gateway_api(files.path()), Err(CustomResourcesError::File { .. })));
    let directory = files.path().join("experimental");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("kustomization.yaml"), "kind: Kustomization\n").unwrap();
    assert!(matches!(gateway_api(files.path()), Err(CustomResourcesError::None { .. })));
    let definition = "kind: CustomResourceDefinition\nmetadata: {name: NAME, creationTimestamp: null}\nstatus: {conditions: null}\n";
    for name in ["b", "a"] {
        let path = directory.join(format!("gateway.networking.k8s.io_{name}.yaml"));
        std::fs::write(path, definition.replace("NAME", name)).unwrap();
    }
    let found = gateway_api(files.path()).unwrap();
    let expected = ["a", "b"]
        .map(|name| serde_json::json!({"kind": "CustomResourceDefinition", "metadata": {"name": name}}));
    assert_eq!(found, expected);
    std::fs::write(directory.join("gateway.networking.k8s.io_c.yaml"), "kind: Secret\n").unwrap();
    assert!(matches!(gateway_api(files.path()), Err(CustomResourcesError::Content { .. })));
}

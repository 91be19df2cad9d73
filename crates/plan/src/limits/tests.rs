//! One setting a test: what it refuses by default, with its name, and what a file allows.

use hangar_api::controlplane::v1alpha1::HostedControlPlaneSpec;
use serde_json::{Value, json};

use super::*;

fn spec(more: &Value) -> HostedControlPlaneSpec {
    let mut spec = json!({"version": "v1.34.10"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn refused(file: &str, more: &Value) -> Vec<String> {
    excess(&Limits::parse(file).unwrap(), &spec(more)).iter().map(ToString::to_string).collect()
}

/// By default it is refused at the field, with the name of the setting; with the file it is not.
fn check(more: &Value, field: &str, setting: &str, file: &str) {
    let complaints = refused("", more);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].starts_with(&format!("{field}: Invalid value")), "{complaints:?}");
    assert!(complaints[0].contains(&format!("(setting {setting}, ")), "{complaints:?}");
    assert_eq!(refused(file, more), [""; 0]);
}

#[test]
fn annotations_of_services_are_allowed_by_key_or_prefix() {
    let annotated = |key: &str| json!({"exposure": {"loadBalancer": {"annotations": {(key): "192.0.2.1"}}}});
    let field = "spec.exposure.loadBalancer.annotations[kube-vip.io/loadbalancerIPs]";
    let address = annotated("kube-vip.io/loadbalancerIPs");
    check(&address, field, "serviceAnnotations", "serviceAnnotations: [kube-vip.io/loadbalancerIPs]");
    check(&address, field, "serviceAnnotations", "serviceAnnotations: [kube-vip.io/*]");
    let file = "serviceAnnotations: [kube-vip.io/*]";
    assert_eq!(refused(file, &annotated("external-dns.alpha.kubernetes.io/hostname")).len(), 1);
    assert_eq!(
        refused(file, &annotated("a")),
        [
            "spec.exposure.loadBalancer.annotations[a]: Invalid value: \"192.0.2.1\": the limits of the manager do not \
             allow it (setting serviceAnnotations, allowed: kube-vip.io/*)"
        ]
    );
}

#[test]
fn load_balancer_classes_are_allowed_by_name() {
    let given = json!({"exposure": {"loadBalancer": {"class": "example.org/public"}}});
    let field = "spec.exposure.loadBalancer.class";
    check(&given, field, "loadBalancerClasses", "loadBalancerClasses: [example.org/public]");
}

#[test]
fn priority_classes_are_allowed_by_name_and_those_of_kubernetes_only_so() {
    let of = |class: &str| {
        [
            ("spec.etcd", json!({"etcd": {"priorityClassName": class}})),
            ("spec.deployment.apiServer", json!({"deployment": {"apiServer": {"priorityClassName": class}}})),
            ("spec.deployment.scheduler", json!({"deployment": {"scheduler": {"priorityClassName": class}}})),
            (
                "spec.deployment.controllerManager",
                json!({"deployment": {"controllerManager": {"priorityClassName": class}}}),
            ),
        ]
    };
    for (path, given) in of("tenants") {
        let field = format!("{path}.priorityClassName");
        check(&given, &field, "priorityClasses", "priorityClasses: [tenants]");
        check(&given, &field, "priorityClasses", "priorityClasses: ['*']");
    }
    for (path, given) in of("system-node-critical") {
        assert_eq!(refused("priorityClasses: ['*']", &given).len(), 1);
        let field = format!("{path}.priorityClassName");
        check(&given, &field, "priorityClasses", "priorityClasses: [system-node-critical]");
    }
    // They run on the tenant's own nodes.
    let agents = json!({"konnectivityClient": {"priorityClassName": "system-node-critical"}});
    assert_eq!(refused("", &agents), [""; 0]);
}

#[test]
fn replicas_have_a_maximum_for_each_component() {
    for (component, given, field) in [
        ("apiServer", json!({"replicas": 6}), "spec.replicas"),
        (
            "controllerManager",
            json!({"deployment": {"controllerManager": {"replicas": 6}}}),
            "spec.deployment.controllerManager.replicas",
        ),
        (
            "scheduler",
            json!({"deployment": {"scheduler": {"replicas": 6}}}),
            "spec.deployment.scheduler.replicas",
        ),
        ("etcd", json!({"etcd": {"replicas": 7}}), "spec.etcd.replicas"),
    ] {
        let setting = format!("maximumReplicas.{component}");
        check(&given, field, &setting, &format!("maximumReplicas: {{{component}: 7}}"));
    }
    assert_eq!(refused("", &json!({"replicas": 5, "etcd": {"replicas": 5}})), [""; 0]);
    assert_eq!(refused("maximumReplicas: {etcd: 1}", &json!({"etcd": {"replicas": 3}})).len(), 1);
}

#[test]
fn images_come_from_registries_that_are_allowed() {
    let of = |image: &Value| json!({"deployment": {"apiServer": {"image": image}}});
    let field = "spec.deployment.apiServer.image";
    let mirror = of(&json!({"registry": "registry.example.org/mirror"}));
    for file in [
        "registries: [registry.example.org]",
        "registries: [registry.example.org/mirror]",
        "registries: ['*']",
    ] {
        check(&mirror, field, "registries", file);
    }
    let refused = |image: Value| refused("registries: [registry.example.org/mirror]", &of(&image));
    assert_eq!(refused(json!({"registry": "registry.example.org/mirrors"})).len(), 1);
    assert_eq!(refused(json!({"registry": "registry.example.org.evil.example/mirror"})).len(), 1);
    assert_eq!(refused(json!({"registry": "registry.example.org", "repository": "mirror/api"})), [""; 0]);
    assert_eq!(refused(json!({"repository": "another"})).len(), 1);
    // Our own choice of an image needs no permission.
    assert_eq!(refused(json!({"tag": "v1.34.11"})), [""; 0]);
    for given in [
        json!({"etcd": {"image": {"registry": "evil.example"}}}),
        json!({"deployment": {"apiServer": {"konnectivity": {"image": {"registry": "evil.example"}}}}}),
        json!({"deployment": {"controllerManager": {"image": {"registry": "evil.example"}}}}),
        json!({"deployment": {"scheduler": {"image": {"registry": "evil.example"}}}}),
    ] {
        assert_eq!(super::excess(&Limits::default(), &spec(&given)).len(), 1, "{given}");
    }
    // What runs on the tenant's own nodes is the tenant's business.
    let proxy = json!({"kubeProxy": {"image": {"registry": "evil.example"}}});
    assert_eq!(super::excess(&Limits::default(), &spec(&proxy)), []);
}

#[test]
fn host_names_are_any_unless_the_file_says_otherwise() {
    let file = "hostNames: ['*.clusters.example.org']";
    for (field, given) in [
        (
            "spec.controlPlaneEndpoint.host",
            json!({"controlPlaneEndpoint": {"host": "api.example.com", "port": 6443}}),
        ),
        ("spec.exposure.nodeHost", json!({"exposure": {"nodeHost": "api.example.com"}})),
        (
            "spec.exposure.nodePort.addresses[1]",
            json!({"exposure": {"type": "NodePort", "nodePort": {"addresses": ["192.0.2.1", "api.example.com"]}}}),
        ),
    ] {
        assert_eq!(refused("", &given), [""; 0]);
        let complaints = refused(file, &given);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(
            complaints[0].starts_with(field) && complaints[0].contains("setting hostNames"),
            "{complaints:?}"
        );
    }
    for host in ["demo.clusters.example.org", "Demo.Clusters.Example.Org.", "192.0.2.1", "2001:db8::1"] {
        let given = json!({"controlPlaneEndpoint": {"host": host, "port": 6443}});
        assert_eq!(refused(file, &given), [""; 0], "{host}");
    }
}

#[test]
fn memory_has_a_maximum() {
    let of = |resources: Value| json!({"etcd": {"resources": resources}});
    let limit = of(json!({"limits": {"memory": "17Gi"}}));
    check(&limit, "spec.etcd.resources.limits.memory", "maximumMemory", "maximumMemory: 32Gi");
    let request = of(json!({"requests": {"memory": "17Gi"}}));
    check(&request, "spec.etcd.resources.requests.memory", "maximumMemory", "maximumMemory: 32Gi");
    // No limit by another name.
    assert_eq!(refused("maximumMemory: 32Gi", &of(json!({"limits": {"memory": "0"}}))).len(), 1);
    assert_eq!(refused("", &of(json!({"limits": {"memory": "16Gi", "cpu": "40"}}))), [""; 0]);
}

#[test]
fn a_wrong_file_is_refused_by_field() {
    for (file, expected) in [
        ("priorityClass: [a]", "priorityClass: unknown field `priorityClass`"),
        ("maximumReplicas: {apiserver: 3}", "maximumReplicas.apiserver: unknown field `apiserver`"),
        ("maximumReplicas: {etcd: 0}", "maximumReplicas.etcd: invalid value: integer `0`"),
        ("maximumReplicas: {etcd: many}", "maximumReplicas.etcd: invalid type: string \"many\""),
        ("serviceAnnotations: all", "serviceAnnotations: invalid type: string \"all\""),
        (
            "serviceAnnotations: [a, 'b*c']",
            "serviceAnnotations[1]: \"b*c\" must be a name, with at most one *",
        ),
        ("registries: ['']", "registries[0]: \"\" must be a name"),
        ("maximumMemory: much", "maximumMemory: \"much\" must be an amount of memory such as 16Gi"),
        ("nodes: 0", "nodes: invalid value: integer `0`"),
        ("hasPriorityClasses: true", "hasPriorityClasses: unknown field"),
        ("maximumMemory: '0'", "maximumMemory: \"0\" must be"),
        ("- []", "it must be settings with their names"),
        ("a: [", "it is no YAML: "),
    ] {
        let error = Limits::parse(file).unwrap_err().to_string();
        assert!(error.contains(expected), "{file}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for file in ["", "# nothing\n", "{}"] {
        assert_eq!(Limits::parse(file).unwrap(), Limits::default());
    }
}

#[test]
fn nodes_are_chosen_by_labels_that_are_allowed() {
    for path in ["spec.placement", "spec.etcd.placement"] {
        let of = |placement: Value| match path {
            "spec.placement" => json!({"placement": placement}),
            _ => json!({"etcd": {"placement": placement}}),
        };
        let selected = of(json!({"nodeSelector": {"pool": "tenants"}}));
        check(&selected, &format!("{path}.nodeSelector[pool]"), "nodeLabels", "nodeLabels: [pool=tenants]");
        check(&selected, &format!("{path}.nodeSelector[pool]"), "nodeLabels", "nodeLabels: ['pool=*']");
        assert_eq!(refused("nodeLabels: [pool=others]", &selected).len(), 1);
        let zones =
            of(json!({"nodeSelector": {"topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "arm64"}}));
        assert_eq!(refused("", &zones), [""; 0]);
        assert_eq!(refused("nodeLabels: []", &zones).len(), 2);
    }
    let terms = |operator: &str, values: Value| {
        let term = json!({"matchExpressions": [{"key": "pool", "operator": operator, "values": values}]});
        let nodes = json!({
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}],
        });
        json!({"placement": {"affinity": {"nodeAffinity": nodes}}})
    };
    let complaints = refused("nodeLabels: [pool=tenants]", &terms("In", json!(["tenants", "system"])));
    let required = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution[0].preference";
    for (complaint, place) in complaints.iter().zip([required, preferred]) {
        let field = format!("spec.placement.affinity.nodeAffinity.{place}.matchExpressions[0].values[1]: ");
        assert!(complaint.starts_with(&field), "{complaint}");
    }
    assert_eq!(complaints.len(), 2);
    // Any value is more than one.
    assert_eq!(refused("nodeLabels: [pool=tenants]", &terms("Exists", Value::Null)).len(), 2);
    assert_eq!(refused("nodeLabels: ['pool=*']", &terms("Exists", Value::Null)), [""; 0]);
    assert_eq!(refused("", &terms("NotIn", json!(["system"]))), [""; 0], "who stays away takes nothing");
    assert_eq!(refused("nodeLabels: ['*']", &terms("Near", json!(["a"]))).len(), 2, "no operator");
    let named = json!({"placement": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}}}}});
    assert_eq!(refused("", &named).len(), 1);
}

/// Taints are what keeps tenants away from nodes, those of the management cluster's own control plane above all.
#[test]
fn taints_are_tolerated_by_name_and_those_of_kubernetes_only_so() {
    let of = |key: &str| json!({"placement": {"tolerations": [{"key": key, "operator": "Exists"}]}});
    let field = "spec.placement.tolerations[0].key";
    check(&of("tenants"), field, "tolerations", "tolerations: [tenants]");
    check(&of("tenants"), field, "tolerations", "tolerations: ['*']");
    let system = "node-role.kubernetes.io/control-plane";
    assert_eq!(refused("tolerations: ['*']", &of(system)).len(), 1);
    check(&of(system), field, "tolerations", &format!("tolerations: [{system}]"));
}

#[test]
fn the_registry_of_all_images_is_allowed_like_that_of_each() {
    let given = json!({"imageRegistry": "registry.example.org/mirror"});
    for file in ["registries: [registry.example.org]", "registries: [registry.example.org/mirror]"] {
        check(&given, "spec.imageRegistry", "registries", file);
    }
    // A repository of a component is in it, too.
    let mut inner = given.clone();
    inner["etcd"] = json!({"image": {"repository": "own/etcd"}});
    let allowed = "registries: [registry.example.org/mirror]";
    assert_eq!(refused(allowed, &inner), [""; 0]);
    assert_eq!(refused("", &inner).len(), 2);
}

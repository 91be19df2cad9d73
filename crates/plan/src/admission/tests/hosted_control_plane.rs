//! What a HostedControlPlane may ask for, and what must not happen to it.

use super::*;

#[test]
fn the_control_plane_of_a_living_cluster_is_not_deleted() {
    let plane = json!({ "metadata": {
        "name": "demo-plane",
        "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo" }],
    } });
    let reference = json!({ "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "HostedControlPlane", "name": "demo-plane" });
    let demo = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "demo", "namespace": "team-a" }, "spec": { "controlPlaneRef": reference },
    });
    let with = |object: &Value, pointer: &str, field: &str, value: Value| {
        let mut object = object.clone();
        object.pointer_mut(pointer).unwrap()[field] = value;
        object
    };
    let judgement = |plane: &Value, user: &str, cluster: Option<&Value>| {
        let request = Request { operation: Operation::Delete, user, ..request("HostedControlPlane", plane) };
        let world = World { now: cluster.into_iter().cloned().collect(), ..World::default() };
        validate(&request, &world).errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let way = "delete the Cluster, or annotate this object with hangar.cluster.x-k8s.io/allow-deletion first";
    let refused = [format!("metadata.name: Forbidden: Cluster demo lives and would lose its etcd: {way}")];
    assert_eq!(judgement(&plane, "jane", Some(&demo)), refused);
    let labelled = json!({ "metadata": { "name": "demo-plane", "labels": { "cluster.x-k8s.io/cluster-name": "demo" } } });
    assert_eq!(judgement(&labelled, "jane", Some(&demo)), refused);

    for user in CLEANERS {
        assert!(judgement(&plane, user, Some(&demo)).is_empty(), "{user}");
    }
    for name in ["hangar.cluster.x-k8s.io/allow-deletion", "clusterctl.cluster.x-k8s.io/delete-for-move"] {
        let annotated = with(&plane, "/metadata", "annotations", json!({ name: "" }));
        assert!(judgement(&annotated, "jane", Some(&demo)).is_empty(), "{name}");
    }
    let leaving = with(&plane, "/metadata", "deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert!(judgement(&leaving, "jane", Some(&demo)).is_empty());
    for cluster in [
        with(&demo, "/metadata", "deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        with(&demo, "/spec/controlPlaneRef", "name", json!("another")),
        with(&demo, "/spec/controlPlaneRef", "kind", json!("KubeadmControlPlane")),
    ] {
        assert!(judgement(&plane, "jane", Some(&cluster)).is_empty(), "{cluster}");
    }
    assert!(judgement(&plane, "jane", None).is_empty());
    assert!(judgement(&json!({ "metadata": { "name": "demo-plane" } }), "jane", Some(&demo)).is_empty());

    let request = Request { operation: Operation::Delete, ..request("HostedControlPlane", &plane) };
    let unknown = "whether Cluster demo still needs it is unknown (the call timed out)";
    assert_eq!(messages(&request), [format!("metadata.name: Forbidden: {unknown}: {way}")]);
}

#[test]
fn a_control_plane_beyond_the_limits_is_refused_with_field_and_setting() {
    let plane = |class: &str, flag: &str| {
        json!({ "spec": {
            "version": "v1.34.10",
            "etcd": { "priorityClassName": class },
            "deployment": { "apiServer": { "args": { (flag): "x" } } },
        } })
    };
    let (plain, beyond) = (plane("", "v"), plane("system-node-critical", "authorization_mode"));
    let kind = "HostedControlPlane";
    let expected = [
        "spec.etcd.priorityClassName: Invalid value: \"system-node-critical\": the limits of the manager do not allow \
         it (setting priorityClasses, allowed: none)",
        "spec.deployment.apiServer.args[authorization_mode]: Invalid value: \"x\": --authorization-mode of \
         kube-apiserver is set by Hangar: the control plane needs its own value",
    ];
    assert_eq!(messages(&request(kind, &plain)), [""; 0]);
    assert_eq!(messages(&request(kind, &beyond)), expected);
    assert_eq!(messages(&update(kind, &plain, &beyond)), expected);
    // What was there before blocks no other change, and no write of Hangar's own.
    let mut claimed = beyond.clone();
    claimed["metadata"] = json!({ "finalizers": ["hcp.controlplane.cluster.x-k8s.io"] });
    assert_eq!(messages(&update(kind, &beyond, &claimed)), [""; 0]);
    let limits = Limits::parse("priorityClasses: [system-node-critical]").unwrap();
    let answer =
        validate(&request(kind, &plane("system-node-critical", "v")), &World { limits, ..World::default() });
    assert_eq!(answer, Judgement::default());
}

#[test]
fn a_number_of_replicas_is_limited_whichever_way_it_comes() {
    let scale = |replicas: i32| json!({ "kind": "Scale", "metadata": { "name": "demo" }, "spec": { "replicas": replicas } });
    let (few, many, more) = (scale(3), scale(9), scale(10));
    let asked = |old, object| {
        messages(&Request { operation: Operation::Scale, ..update("HostedControlPlane", old, object) })
    };
    assert_eq!(asked(&many, &few), Vec::<String>::new());
    for refused in [asked(&few, &many), asked(&many, &more)] {
        assert_eq!(refused.len(), 1);
        assert!(
            refused[0].starts_with("spec.replicas: ") && refused[0].contains("maximumReplicas"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_template_is_checked_as_the_control_planes_made_from_it() {
    let template = |spec: Value| json!({ "metadata": {}, "spec": { "template": { "spec": spec } } });
    let kind = "HostedControlPlaneTemplate";
    let given = template(json!({
        "etcd": { "priorityClassName": "system-node-critical",
            "backup": { "schedule": "@daily", "secret": { "name": "s", "namespace": "team-b" } } },
        "deployment": { "apiServer": { "args": { "authorization_mode": "AlwaysAllow" } } },
    }));
    let said = messages(&request(kind, &given));
    assert_eq!(said.len(), 3, "{said:?}");
    for field in [
        "spec.template.spec.etcd.priorityClassName: ",
        "spec.template.spec.deployment.apiServer.args[authorization_mode]: ",
        "spec.template.spec.etcd.backup.secret.namespace: ",
    ] {
        assert!(said.iter().any(|line| line.starts_with(field)), "{field}: {said:?}");
    }
    assert_eq!(messages(&update(kind, &given, &given)), Vec::<String>::new(), "what was there stays");
    assert_eq!(messages(&request(kind, &template(json!({})))), Vec::<String>::new());
}

#[test]
fn backups_that_cannot_be_made_are_refused_with_their_field() {
    let said = |more: Value| {
        let mut backup = json!({ "schedule": "@daily", "secret": { "name": "bucket" } });
        backup.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let plane =
            json!({ "metadata": {}, "spec": { "version": "v1.34.10", "etcd": { "backup": backup } } });
        messages(&request("HostedControlPlane", &plane))
    };
    assert_eq!(
        said(json!({ "schedule": "0 3 * * mon-fri", "encryption": { "secretName": "key" } })),
        [""; 0]
    );
    for (more, complaint) in [
        (
            json!({ "schedule": "61 3 * * *" }),
            "spec.etcd.backup.schedule: Invalid value: \"61 3 * * *\": minute: ",
        ),
        (
            json!({ "schedule": "0 3 31 2 *" }),
            "spec.etcd.backup.schedule: Invalid value: \"0 3 31 2 *\": it names no",
        ),
        (json!({ "secret": { "name": "../x" } }), "spec.etcd.backup.secret.name: "),
        (json!({ "encryption": { "secretName": "Key" } }), "spec.etcd.backup.encryption.secretName: "),
    ] {
        let said = said(more);
        assert!(said.len() == 1 && said[0].starts_with(complaint), "{said:?}");
    }
}

/// Names, members and keys of a control plane follow from its records.
#[test]
fn records_are_changed_by_the_manager_alone() {
    let recorded = |name: &str, value: Value| {
        let name = format!("hangar.cluster.x-k8s.io/{name}");
        json!({ "metadata": { "name": "demo", "annotations": { name: value } }, "spec": { "version": "v1.34.10" } })
    };
    let manager = "system:serviceaccount:hangar-system:hangar";
    for name in ["render-epoch", "identity", "etcd", "keys", "way-in"] {
        let old = recorded(name, json!("1"));
        for new in [recorded(name, json!("2")), recorded("other", json!("1"))] {
            let refused = |user: &str| {
                let request = Request { user, ..update("HostedControlPlane", &old, &new) };
                validate(&request, &World::default()).errors
            };
            let errors = refused("jane");
            assert_eq!(errors.len(), 1, "{name}");
            let path = format!("metadata.annotations[hangar.cluster.x-k8s.io/{name}]");
            assert!(errors[0].to_string().contains(&path), "{}", errors[0]);
            assert!(refused(manager).is_empty(), "{name}");
        }
        // What is not there yet can be brought: a restored object has its records.
        assert!(
            messages(&update(
                "HostedControlPlane",
                &recorded("other", json!("1")),
                &recorded(name, json!("1"))
            ))
            .is_empty()
        );
        assert!(messages(&request("HostedControlPlane", &old)).is_empty());
        // Who the manager is may not be known.
        assert_eq!(messages(&update("HostedControlPlane", &old, &recorded(name, json!("2")))).len(), 1);
    }
    // There is no way back from a version that somebody adds, and nobody has to put one back.
    for name in ["served-version", "etcd-version"] {
        let (old, new) = (recorded("other", json!("1")), recorded(name, json!("9.9.0")));
        assert_eq!(messages(&update("HostedControlPlane", &old, &new)).len(), 1, "{name}");
        let by_manager = Request { user: manager, ..update("HostedControlPlane", &old, &new) };
        assert!(validate(&by_manager, &World::default()).errors.is_empty(), "{name}");
        assert!(messages(&request("HostedControlPlane", &new)).is_empty(), "{name}");
    }
}

#[test]
fn tags_of_versions_that_do_not_exist_are_refused() {
    for (spec, field) in [
        (json!({ "etcd": { "image": { "tag": "3.16.6-0" } } }), "spec.etcd.image.tag: "),
        (
            json!({ "deployment": { "apiServer": { "image": { "tag": "v1.99.0" } } } }),
            "spec.deployment.apiServer.image.tag: ",
        ),
    ] {
        let mut object = json!({ "metadata": { "name": "demo" }, "spec": spec });
        object["spec"]["version"] = json!("v1.34.10");
        let said = messages(&request("HostedControlPlane", &object));
        assert!(said.len() == 1 && said[0].starts_with(field), "{said:?}");
    }
}

/// Nodes and kubeconfigs keep the endpoint that they have.
#[test]
fn the_way_in_stays_once_people_know_it() {
    let plane = |record: Option<&str>, way: Value| {
        let mut spec =
            json!({ "version": "v1.34.10", "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 31000 } });
        spec.as_object_mut().unwrap().extend(way.as_object().unwrap().clone());
        let annotations = record.map(|record| json!({ "hangar.cluster.x-k8s.io/way-in": record }));
        json!({ "metadata": { "annotations": annotations }, "spec": spec })
    };
    let refused = |record: Option<&str>, before: &Value, after: &Value| {
        let (before, after) = (plane(record, before.clone()), plane(record, after.clone()));
        let fields = messages(&update("HostedControlPlane", &before, &after));
        fields.iter().map(|message| message.split(": ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let of = |type_: &str| json!({ "exposure": { "type": type_ } });
    let gateway = json!({ "gateway": { "namespace": "gateways", "name": "shared" } });
    let other =
        json!({ "gateway": { "namespace": "gateways", "name": "other", "sectionName": "tls", "port": 443 } });
    let balancer = Some(r#"{"type":"LoadBalancer","isNameGiven":false}"#);
    assert_eq!(refused(None, &json!({}), &of("ClusterIP")), [""; 0], "nobody knows it yet");
    assert_eq!(refused(balancer, &json!({}), &of("ClusterIP")), ["spec.exposure.type"]);
    assert_eq!(refused(balancer, &json!({}), &gateway), ["spec.gateway"]);
    assert_eq!(refused(balancer, &json!({}), &of("LoadBalancer")), [""; 0], "the same in more words");
    assert_eq!(refused(balancer, &of("ClusterIP"), &json!({})), [""; 0], "back to what it is");
    assert_eq!(
        refused(balancer, &of("ClusterIP"), &of("ClusterIP")),
        [""; 0],
        "it is told, and blocks nothing else"
    );
    let named = Some(r#"{"type":"LoadBalancer","isNameGiven":true}"#);
    assert_eq!(refused(named, &json!({}), &gateway), [""; 0], "people let their name lead elsewhere");
    let routed = Some(r#"{"type":"Gateway","domain":"example.org","isNameGiven":false}"#);
    assert_eq!(refused(routed, &gateway, &other), [""; 0]);
    assert_eq!(refused(routed, &gateway, &json!({})), ["spec.gateway"]);
    let port = |port: i32| json!({ "exposure": { "type": "NodePort", "nodePort": { "port": port } } });
    let ports = Some(r#"{"type":"NodePort","isNameGiven":false}"#);
    assert_eq!(refused(ports, &of("NodePort"), &port(31000)), [""; 0], "the endpoint's");
    assert_eq!(refused(ports, &of("NodePort"), &port(31001)), ["spec.exposure.nodePort.port"]);
    assert_eq!(refused(None, &of("NodePort"), &port(31001)), [""; 0]);
}

#[test]
fn a_wrong_placement_is_refused_with_its_field_in_templates_too() {
    let term = |more: Value| {
        let mut term = json!({ "topologyKey": "kubernetes.io/hostname" });
        term.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } })
    };
    let required = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
    let toleration = |given: Value| json!({ "tolerations": [given] });
    let large = json!({ "labelSelector": { "matchLabels": { "app": "a".repeat(8192) } } });
    for (placement, field) in [
        (
            json!({ "nodeSelector": { "topology.kubernetes.io/zone": "no zone" } }),
            "nodeSelector[topology.kubernetes.io/zone]: ",
        ),
        (toleration(json!({ "operator": "Exists" })), "tolerations[0].key: Required"),
        (toleration(json!({ "key": "a", "operator": "Exists", "value": "b" })), "tolerations[0].value: "),
        (toleration(json!({ "key": "a", "operator": "Like" })), "tolerations[0].operator: "),
        (toleration(json!({ "key": "a", "effect": "Never" })), "tolerations[0].effect: "),
        (
            toleration(json!({ "key": "a", "effect": "NoSchedule", "tolerationSeconds": 3 })),
            "tolerations[0].tolerationSeconds: ",
        ),
        (term(json!({ "namespaces": ["team-b"] })), &format!("{required}.namespaces: Forbidden")),
        (term(json!({ "namespaceSelector": {} })), &format!("{required}.namespaceSelector: Forbidden")),
        (term(json!({ "topologyKey": "" })), &format!("{required}.topologyKey: ")),
        (term(large), "affinity: Forbidden: it has "),
        (json!({ "topologySpread": [{ "topologyKey": "a b" }] }), "topologySpread[0].topologyKey: "),
        (
            json!({ "topologySpread": [{ "topologyKey": "a" }, { "topologyKey": "a" }] }),
            "topologySpread[1].topologyKey: ",
        ),
        (json!({ "topologySpread": [{ "topologyKey": "a", "maxSkew": 0 }] }), "topologySpread[0].maxSkew: "),
    ] {
        let limits = Limits::parse("tolerations: ['*']").unwrap();
        let world = World { limits, ..World::default() };
        let plane = json!({ "spec": { "version": "v1.34.10", "etcd": { "placement": placement } } });
        let template = json!({ "spec": { "template": { "spec": { "placement": placement } } } });
        for (kind, object, path) in [
            ("HostedControlPlane", &plane, "spec.etcd.placement"),
            ("HostedControlPlaneTemplate", &template, "spec.template.spec.placement"),
        ] {
            let said = validate(&request(kind, object), &world).errors;
            let said: Vec<String> = said.iter().map(ToString::to_string).collect();
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with(&format!("{path}.{field}")), "{said:?}");
        }
    }
}

#[test]
fn a_template_cannot_be_changed_but_its_metadata_can() {
    let template = |class: &str, label: &str| {
        json!({ "metadata": { "annotations": { "topology.cluster.x-k8s.io/dry-run": "" } }, "spec": { "template": {
            "metadata": { "labels": { "a": label } }, "spec": { "etcd": { "storageClassName": class } },
        } } })
    };
    let (old, new) = (template("slow", "a"), template("fast", "a"));
    let kind = "HostedControlPlaneTemplate";
    let refused =
        "spec.template.spec.etcd: Forbidden: it cannot be changed: make a new template, and refer to that";
    assert_eq!(messages(&update(kind, &old, &new)), [refused]);
    assert_eq!(messages(&update(kind, &old, &template("slow", "b"))), [""; 0]);
    assert_eq!(messages(&Request { is_dry_run: true, ..update(kind, &old, &new) }), [""; 0]);
}

fn plane(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
        "kind": "HostedControlPlane",
        "metadata": {"name": "demo", "namespace": "team-a", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "spec": {"version": "v1.34.10"},
    });
    if let (Value::Object(target), Value::Object(more)) = (&mut object["spec"], spec) {
        target.extend(more);
    }
    object
}

#[test]
#[allow(clippy::too_many_lines, reason = "a row for each field")]
fn what_the_api_server_would_not_start_with_is_refused_by_field() {
    const A: &str = "spec.oidcProviders[https://a.example]";
    const P: &str = "spec.deployment.apiServer.audit.policy.rules[0]";
    const T: &str = "spec.deployment.apiServer.audit.webhook.targets[0]";
    const M: &str = "spec.deployment.apiServer.mounts[m]";
    let provider = |more: Value| {
        let mut provider = json!({"audiences": ["a"], "claimMappings": {"username": "claims.sub"}});
        provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        provider
    };
    let issuer = |url: &str, more: Value| plane(json!({"oidcProviders": {url: provider(more)}}));
    let good = |more| issuer("https://a.example", more);
    let audit = |audit: Value| plane(json!({"deployment": {"apiServer": {"audit": audit}}}));
    let rule = |rule: Value| audit(json!({"policy": {"rules": [rule]}}));
    let webhook =
        |webhook: Value| audit(json!({"policy": {"rules": [{"level": "Metadata"}]}, "webhook": webhook}));
    let target = |target: Value| webhook(json!({"targets": [target]}));
    let token =
        |name: &str| target(json!({"server": "https://a.example", "authentication": {"secretName": name}}));
    let mount = |path: &str, secret: &str| {
        let mount = json!({"path": path, "secret": {"secretName": secret}});
        plane(json!({"deployment": {"apiServer": {"mounts": {"m": mount}}}}))
    };
    let two = |one: &str, other: &str| {
        let mount = |path: &str| json!({"path": path, "configMap": {"name": "c"}});
        let mounts = json!({"a": mount(one), "b": mount(other)});
        plane(json!({"deployment": {"apiServer": {"mounts": mounts}}}))
    };
    let args = |name: &str| plane(json!({"deployment": {"apiServer": {"args": {name: "x"}}}}));
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "demo", "namespace": "team-a"},
        "spec": {"clusterNetwork": {"serviceDomain": "tenant.example"}},
    });
    let world = World { seen: vec![cluster], ..World::default() };
    for (object, field) in [
        (issuer("http://a.example", json!({})), "spec.oidcProviders[http://a.example]".to_owned()),
        (issuer("https://u@a.example", json!({})), "spec.oidcProviders[https://u@a.example]".to_owned()),
        (issuer("https://a.example#x", json!({})), "spec.oidcProviders[https://a.example#x]".to_owned()),
        (issuer("https://a.example?x", json!({})), "spec.oidcProviders[https://a.example?x]".to_owned()),
        (
            issuer("https://kubernetes.default.svc.tenant.example", json!({})),
            "spec.oidcProviders[https://kubernetes.default.svc.tenant.example]".to_owned(),
        ),
        (good(json!({"certificateAuthority": "no PEM"})), format!("{A}.certificateAuthority")),
        (
            good(
                json!({"certificateAuthority": "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----"}),
            ),
            format!("{A}.certificateAuthority"),
        ),
        (
            good(
                json!({"certificateAuthority": "-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----"}),
            ),
            format!("{A}.certificateAuthority"),
        ),
        (good(json!({"audiences": []})), format!("{A}.audiences")),
        (good(json!({"audiences": ["a", "a"]})), format!("{A}.audiences[1]")),
        (good(json!({"claimMappings": {"username": " "}})), format!("{A}.claimMappings.username")),
        (good(json!({"claimMappings": {"username": "claims.email"}})), format!("{A}.claimMappings.username")),
        (
            good(json!({"claimMappings": {"username": "claims.sub", "groups": "f("}})),
            format!("{A}.claimMappings.groups"),
        ),
        (
            good(json!({"claimValidationRules": [{"expression": "true"}, {"expression": "true"}]})),
            format!("{A}.claimValidationRules[1].expression"),
        ),
        (audit(json!({"policy": {"rules": []}})), "spec.deployment.apiServer.audit.policy.rules".to_owned()),
        (rule(json!({"level": "None", "nonResourceURLs": ["healthz"]})), format!("{P}.nonResourceURLs[0]")),
        (
            rule(json!({"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["x"]})),
            format!("{P}.nonResourceURLs"),
        ),
        (rule(json!({"level": "None", "resources": [{"group": "a/v1"}]})), format!("{P}.resources[0].group")),
        (
            rule(json!({"level": "None", "resources": [{"resourceNames": ["x"]}]})),
            format!("{P}.resources[0].resources"),
        ),
        (target(json!({"server": "https://"})), format!("{T}.server")),
        (
            target(json!({"server": "http://a.example", "authentication": {"secretName": "s"}})),
            format!("{T}.server"),
        ),
        (token("demo-sa"), format!("{T}.authentication.secretName")),
        (
            webhook(
                json!({"image": {"registry": "registry.k8s.io"}, "targets": [{"server": "https://a.example"}]}),
            ),
            "spec.deployment.apiServer.audit.webhook.image".to_owned(),
        ),
        (
            webhook(json!({"image": {"repository": "hangar"}, "targets": [{"server": "https://a.example"}]})),
            "spec.deployment.apiServer.audit.webhook.image".to_owned(),
        ),
        (
            webhook(json!({"args": {"x": "y"}, "targets": [{"server": "https://a.example"}]})),
            "spec.deployment.apiServer.audit.webhook.args[x]".to_owned(),
        ),
        (mount("/etc/kubernetes", "s"), format!("{M}.path")),
        (mount("/etc/kubernetes/pki/more", "s"), format!("{M}.path")),
        (mount("/tmp", "s"), format!("{M}.path")),
        (mount("/etc/../etc/x", "s"), format!("{M}.path")),
        (mount("/", "s"), format!("{M}.path")),
        (mount("/etc/x", "demo-encryption"), format!("{M}.secret.secretName")),
        (mount("/etc/x", "demo-ca-copy"), format!("{M}.secret.secretName")),
        (two("/etc/x", "/etc/x/y"), "spec.deployment.apiServer.mounts[b].path".to_owned()),
        (args("oidc-issuer-url"), "spec.deployment.apiServer.args[oidc-issuer-url]".to_owned()),
        (args("authentication-config"), "spec.deployment.apiServer.args[authentication-config]".to_owned()),
        (args("audit-policy-file"), "spec.deployment.apiServer.args[audit-policy-file]".to_owned()),
    ] {
        let errors = validate(&request("HostedControlPlane", &object), &world).errors;
        let paths: Vec<&str> = errors.iter().map(FieldError::path).collect();
        assert!(paths.contains(&field.as_str()), "{field}: {errors:?}");
        // The same in a template, as far as that can be told without a Cluster.
        if !field.contains("tenant.example") && !field.ends_with("ecretName") {
            let template = json!({"spec": {"template": {"spec": object["spec"]}}});
            let errors = validate(&request("HostedControlPlaneTemplate", &template), &world).errors;
            let field = format!("spec.template.{field}");
            assert!(errors.iter().any(|error| error.path() == field), "{field}: {errors:?}");
        }
    }
    for object in [
        good(json!({"claimMappings": {"username": "claims.email_verified ? claims.email : claims.sub"}})),
        issuer("https://kubernetes.default.svc.cluster.local", json!({})),
        rule(json!({"level": "None", "nonResourceURLs": ["*", "/a*"]})),
        token("mine"),
        mount("/etc/kubernetes/admission", "demo-other"),
        two("/etc/x", "/etc/xy"),
        args("audit-webhook-batch-max-size"),
    ] {
        let judgement = validate(&request("HostedControlPlane", &object), &world);
        assert_eq!(judgement, Judgement::default(), "{object}");
    }
}

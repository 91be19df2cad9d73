//! One scenario per test; the names say what users are promised.

mod hosted_control_plane;

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::*;

fn request<'request>(kind: &'request str, object: &'request Value) -> Request<'request> {
    let rules = RULES.iter().find(|rules| rules.kind == kind).unwrap();
    Request {
        operation: Operation::Create,
        group: rules.group,
        kind,
        namespace: "team-a",
        object,
        old: None,
        is_dry_run: false,
        user: "jane",
    }
}

fn update<'request>(kind: &'request str, old: &'request Value, object: &'request Value) -> Request<'request> {
    Request { operation: Operation::Update, old: Some(old), ..request(kind, object) }
}

fn messages(request: &Request<'_>) -> Vec<String> {
    validate(request, &Nothing).errors.iter().map(ToString::to_string).collect()
}

/// Every read fails.
struct Nothing;

impl Lookup for Nothing {
    fn seen(&self, _: &str, _: &str, _: &str, _: &str) -> Read<Value> {
        Read::unknown("the watch is not synced")
    }

    fn now(&self, _: &str, _: &str, _: &str, _: &str) -> Read<Value> {
        Read::unknown("the call timed out")
    }

    fn manager(&self) -> Option<String> {
        None
    }

    fn limits(&self) -> &Limits {
        &DEFAULT_LIMITS
    }
}

static DEFAULT_LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);

/// What a store shows and what there is.
#[derive(Default)]
struct World {
    seen: Vec<Value>,
    now: Vec<Value>,
    limits: Limits,
}

fn find(objects: &[Value], group: &str, kind: &str, namespace: &str, name: &str) -> Read<Value> {
    let is_it = |object: &&Value| {
        text(object, "/apiVersion").starts_with(&format!("{group}/"))
            && text(object, "/kind") == kind
            && text(object, "/metadata/namespace") == namespace
            && text(object, "/metadata/name") == name
    };
    Read::found(objects.iter().filter(is_it).cloned())
}

impl Lookup for World {
    fn seen(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Read<Value> {
        find(&self.seen, group, kind, namespace, name)
    }

    fn now(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Read<Value> {
        find(&self.now, group, kind, namespace, name)
    }

    fn manager(&self) -> Option<String> {
        Some("system:serviceaccount:hangar-system:hangar".to_owned())
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }
}

fn deployment() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
        "metadata": { "name": "workers" },
        "spec": {
            "clusterName": "demo",
            "template": { "spec": { "clusterName": "demo", "version": "1.34.10" } },
        },
    })
}

#[test]
fn a_machine_deployment_without_selector_selects_its_own_machines() {
    let object = deployment();
    let defaulted = defaulted(&request("MachineDeployment", &object));
    let labels = json!({
        "cluster.x-k8s.io/cluster-name": "demo",
        "cluster.x-k8s.io/deployment-name": "workers",
    });
    assert_eq!(defaulted["spec"]["selector"], json!({ "matchLabels": labels }));
    assert_eq!(defaulted["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(defaulted["spec"]["template"]["spec"]["version"], "v1.34.10");
    assert!(messages(&request("MachineDeployment", &defaulted)).is_empty());
}

#[test]
fn defaulting_twice_changes_nothing_more() {
    let object = deployment();
    let once = defaulted(&request("MachineDeployment", &object));
    assert_eq!(defaulted(&request("MachineDeployment", &once)), once);
}

#[test]
fn a_machine_set_selects_by_set_name_and_null_labels_count_as_none() {
    let mut object = deployment();
    object["spec"]["selector"] = json!({ "matchLabels": null });
    let defaulted = defaulted(&request("MachineSet", &object));
    assert_eq!(defaulted["spec"]["selector"]["matchLabels"]["cluster.x-k8s.io/set-name"], "workers");
}

#[test]
fn a_given_selector_stays_as_it_is() {
    let mut object = deployment();
    object["spec"]["selector"] = json!({ "matchLabels": { "cluster.x-k8s.io/cluster-name": "demo" } });
    let result = defaulted(&request("MachineDeployment", &object));
    assert_eq!(result["spec"]["selector"], object["spec"]["selector"]);
    assert_eq!(
        result["spec"]["template"]["metadata"]["labels"],
        json!({ "cluster.x-k8s.io/cluster-name": "demo" })
    );
}

#[test]
fn a_name_that_is_no_label_value_is_hashed() {
    let mut object = deployment();
    let name = "a".repeat(70);
    object["metadata"]["name"] = json!(name);
    let defaulted = defaulted(&request("MachineDeployment", &object));
    let value =
        defaulted["spec"]["selector"]["matchLabels"]["cluster.x-k8s.io/deployment-name"].as_str().unwrap();
    assert!(value.len() <= 63 && value != name, "{value}");
}

#[test]
fn objects_of_a_wrong_shape_are_left_to_the_schema() {
    for object in [json!({}), json!({ "spec": 3 }), json!({ "spec": { "template": [] } }), json!(null)] {
        let request = request("MachineDeployment", &object);
        let _ = defaulted(&request);
        let _ = validate(&request, &Nothing);
    }
}

#[test]
fn a_selector_that_misses_the_template_is_refused_by_field() {
    let mut object = deployment();
    object["spec"]["selector"] = json!({ "matchLabels": { "pool": "blue" } });
    assert_eq!(
        messages(&request("MachineDeployment", &object)),
        ["spec.template.metadata.labels[pool]: Required value: spec.selector asks for pool=blue"]
    );
}

#[test]
fn the_cluster_of_a_machine_deployment_is_one_and_stays() {
    let mut object = deployment();
    object["spec"]["template"]["spec"]["clusterName"] = json!("other");
    let mut old = deployment();
    old["spec"]["clusterName"] = json!("before");
    assert_eq!(
        messages(&update("MachineDeployment", &old, &object)),
        [
            "spec.template.spec.clusterName: Invalid value: \"other\": it must be spec.clusterName, which is \"demo\"",
            "spec.clusterName: Forbidden: it cannot be changed",
        ]
    );
}

#[test]
fn a_cluster_names_every_bad_network() {
    let object = json!({
        "metadata": { "name": "demo" },
        "spec": {
            "controlPlaneRef": { "kind": "HostedControlPlane", "name": "demo" },
            "clusterNetwork": {
                "pods": { "cidrBlocks": ["192.168.0.0/16", "192.168.0.0"] },
                "services": { "cidrBlocks": ["fd00::/129", "fd00::/48"] },
            },
        },
    });
    let why = "it must be a network such as 192.168.0.0/16 or fd00::/48";
    assert_eq!(
        messages(&request("Cluster", &object)),
        [
            format!("spec.clusterNetwork.pods.cidrBlocks[1]: Invalid value: \"192.168.0.0\": {why}"),
            format!("spec.clusterNetwork.services.cidrBlocks[0]: Invalid value: \"fd00::/129\": {why}"),
        ]
    );
}

#[test]
fn a_cluster_needs_a_reference_and_keeps_it() {
    let object = json!({ "metadata": { "name": "demo.prod" }, "spec": {} });
    let old = json!({ "spec": { "infrastructureRef": { "name": "demo" } } });
    assert_eq!(
        messages(&update("Cluster", &old, &object)),
        [
            "metadata.name: Invalid value: \"demo.prod\": it becomes a label value: at most 63 characters and no dots",
            "spec.controlPlaneRef: Required value: one of spec.controlPlaneRef, spec.infrastructureRef and spec.topology must be set",
            "spec.infrastructureRef: Forbidden: it cannot be removed once it is set",
        ]
    );
}

#[test]
fn an_openstack_cluster_names_what_the_cloud_would_refuse() {
    let spec = json!({
        "apiServerFixedIP": "10.6.0.300",
        "apiServerFloatingIP": "",
        "apiServerLoadBalancer": { "allowedCIDRs": ["10.0.0.0/8", "everyone"] },
        "managedSubnets": [{
            "cidr": "10.6.0.0/40", "dnsNameservers": ["1.1.1.1", "dns"],
            "allocationPools": [{ "start": "10.6.0.1", "end": "last" }],
        }],
        "managedSecurityGroups": {
            "allNodesSecurityGroupRules": [
                { "remoteIPPrefix": "any" },
                { "protocol": "tcp", "portRangeMin": 200, "portRangeMax": 100 },
                { "protocol": "icmp", "portRangeMin": 8, "portRangeMax": 0 },
            ],
            "workerNodesSecurityGroupRules": [{ "remoteIPPrefix": "10.0.0.1" }],
        },
    });
    let expected = [
        "apiServerFixedIP",
        "apiServerLoadBalancer.allowedCIDRs[1]",
        "managedSubnets[0].cidr",
        "managedSubnets[0].dnsNameservers[1]",
        "managedSubnets[0].allocationPools[0].end",
        "managedSecurityGroups.allNodesSecurityGroupRules[0].remoteIPPrefix",
        "managedSecurityGroups.allNodesSecurityGroupRules[1].portRangeMin",
        "managedSecurityGroups.workerNodesSecurityGroupRules[0].remoteIPPrefix",
    ];
    let paths = |kind: &str, object: &Value| -> Vec<String> {
        validate(&request(kind, object), &Nothing)
            .errors
            .iter()
            .map(|error| error.path().to_owned())
            .collect()
    };
    assert_eq!(
        paths("OpenStackCluster", &json!({ "spec": spec })),
        expected.map(|path| format!("spec.{path}"))
    );
    let template = json!({ "spec": { "template": { "spec": spec } } });
    assert_eq!(
        paths("OpenStackClusterTemplate", &template),
        expected.map(|path| format!("spec.template.spec.{path}"))
    );
}

#[test]
fn a_kind_without_rules_passes() {
    let object = json!({ "spec": { "version": "1.34.10" } });
    let request = Request { group: "example.com", ..request("Cluster", &object) };
    assert_eq!(defaulted(&request), object);
    assert_eq!(validate(&request, &Nothing), Judgement::default());
}

fn warnings(request: &Request<'_>, lookup: &dyn Lookup) -> Vec<String> {
    let judgement = validate(request, lookup);
    assert_eq!(judgement.errors, []);
    judgement.warnings
}

#[test]
fn what_has_no_effect_is_a_warning_when_it_is_written_and_not_again() {
    let cluster = json!({ "metadata": { "name": "demo" }, "spec": { "topology": { "class": "small" } } });
    let other = json!({ "spec": { "clusterName": "demo" } });
    let set = json!({ "spec": { "clusterSelector": { "matchLabels": { "cni": "x" } } } });
    for (kind, object, expected) in [
        ("Cluster", &cluster, "spec.topology: no controller acts on cluster classes yet"),
        ("MachineHealthCheck", &other, "no controller acts on a MachineHealthCheck yet: it has no effect"),
        ("ClusterResourceSet", &set, "no controller acts on a ClusterResourceSet yet: it has no effect"),
    ] {
        assert_eq!(warnings(&request(kind, object), &Nothing), [expected]);
        let mut labelled = object.clone();
        labelled["metadata"]["labels"] = json!({ "team": "a" });
        assert!(warnings(&update(kind, object, &labelled), &Nothing).is_empty(), "{kind}");
    }
    let (plane, broken) = (json!({ "spec": { "version": "v1.34.10" } }), json!({ "spec": { "etcd": 3 } }));
    assert!(warnings(&request("HostedControlPlane", &plane), &Nothing).is_empty());
    assert!(warnings(&request("HostedControlPlane", &broken), &Nothing).is_empty());
}

#[test]
fn references_into_another_namespace_are_refused_when_they_are_written() {
    let plane = json!({ "spec": {
        "version": "v1.34.10",
        "etcd": { "backup": { "schedule": "@daily", "secret": { "name": "s", "namespace": "other" } } },
        "deployment": { "apiServer": { "audit": { "webhook": { "targets": [
            { "authentication": { "secretName": "s", "secretNamespace": "team-a" } },
            { "authentication": { "secretName": "s", "secretNamespace": "other" } },
            { "authentication": { "secretName": "s" } },
        ] } } } },
    } });
    let cluster = json!({ "spec": {
        "controlPlaneRef": { "name": "a", "namespace": "other" },
        "infrastructureRef": { "name": "a", "namespace": "team-a" },
    } });
    let deployment = json!({ "spec": { "template": { "spec": {
        "bootstrap": { "configRef": { "name": "a", "namespace": "other" } },
        "infrastructureRef": { "name": "a", "namespace": "other" },
    } } } });
    for (kind, object, fields) in [
        (
            "HostedControlPlane",
            &plane,
            &[
                "spec.etcd.backup.secret.namespace",
                "spec.deployment.apiServer.audit.webhook.targets[1].authentication.secretNamespace",
            ][..],
        ),
        ("Cluster", &cluster, &["spec.controlPlaneRef.namespace"]),
        (
            "MachineDeployment",
            &deployment,
            &[
                "spec.template.spec.bootstrap.configRef.namespace",
                "spec.template.spec.infrastructureRef.namespace",
            ],
        ),
    ] {
        let texts = |request: &Request<'_>| -> Vec<String> {
            validate(request, &Nothing).errors.iter().map(ToString::to_string).collect()
        };
        let said = texts(&request(kind, object));
        for field in fields {
            let expected = format!("{field}: Forbidden: must be empty or team-a");
            assert!(said.iter().any(|text| text.starts_with(&expected)), "{kind}: {said:?}");
        }
        assert_eq!(
            said.iter().filter(|text| text.contains("own namespace")).count(),
            fields.len(),
            "{said:?}"
        );
        let again = texts(&update(kind, object, object));
        assert!(!again.iter().any(|text| text.contains("own namespace")), "{again:?}");
    }
}

#[test]
fn a_cluster_that_certainly_does_not_exist_is_a_warning() {
    let object = json!({ "spec": { "clusterName": "demo" } });
    let demo = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "demo", "namespace": "team-a" },
    });
    let machine = request("Machine", &object);
    let missing = "spec.clusterName: there is no Cluster \"demo\" in this namespace";
    assert_eq!(warnings(&machine, &World::default()), [missing]);
    let elsewhere = Request { namespace: "team-b", ..machine };
    assert_eq!(
        warnings(
            &elsewhere,
            &World { now: vec![demo.clone()], seen: vec![demo.clone()], ..World::default() }
        ),
        [missing]
    );
    // The store is behind; a read failed; the object is there already.
    assert!(warnings(&machine, &World { now: vec![demo], ..World::default() }).is_empty());
    assert!(warnings(&machine, &Nothing).is_empty());
    assert!(warnings(&update("Machine", &object, &object), &World::default()).is_empty());
    let moved = json!({ "spec": { "clusterName": "other" } });
    let refused = ["spec.clusterName: Forbidden: it cannot be changed"];
    assert_eq!(messages(&update("Machine", &object, &moved)), refused);
}

#[test]
fn a_changed_reference_to_nothing_is_a_warning_and_a_new_cluster_may_be_ahead_of_its_parts() {
    let older =
        json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Thing", "name": "a" });
    let newer = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Thing", "name": "b" });
    let object = |reference: &Value| json!({ "metadata": { "name": "demo" }, "spec": { "infrastructureRef": reference } });
    let thing = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "Thing",
        "metadata": { "name": "b", "namespace": "team-a" },
    });
    let (before, after) = (object(&older), object(&newer));
    assert!(warnings(&request("Cluster", &before), &World::default()).is_empty());
    let missing = ["spec.infrastructureRef: the object that it names does not exist"];
    assert_eq!(warnings(&update("Cluster", &before, &after), &World::default()), missing);
    assert_eq!(warnings(&update("Cluster", &after, &before), &World::default()), missing);
    assert!(warnings(&update("Cluster", &before, &after), &Nothing).is_empty());
    let there = World { seen: vec![thing], ..World::default() };
    assert!(warnings(&update("Cluster", &before, &after), &there).is_empty());
}

#[test]
fn templates_change_only_where_machines_that_exist_do_not_care() {
    let object = |spec: Value| json!({ "metadata": {}, "spec": { "template": { "spec": spec } } });
    let port = |pair: &str, network: &str| json!([{ "network": { "id": network }, "allowedAddressPairs": [{ "ipAddress": pair }] }]);
    let old = object(json!({ "flavor": "small", "ports": port("10.0.0.1", "a") }));
    let refused = |field: &str| {
        vec![format!(
            "spec.template.spec.{field}: Forbidden: it cannot be changed: make a new template, and refer to that"
        )]
    };
    for (spec, expected) in [
        (json!({ "flavor": "small", "ports": port("10.0.0.1", "a") }), vec![]),
        (json!({ "flavor": "small", "ports": port("10.0.0.2", "a") }), vec![]),
        (json!({ "flavor": "small", "ports": port("10.0.0.1", "b") }), refused("ports")),
        (json!({ "flavor": "large", "ports": port("10.0.0.1", "a") }), refused("flavor")),
        (json!({ "flavor": "small", "ports": port("10.0.0.1", "a"), "trunk": true }), refused("trunk")),
    ] {
        let new = object(spec);
        assert_eq!(messages(&update("OpenStackMachineTemplate", &old, &new)), expected, "{new}");
    }
    let (old, mut new) = (object(json!({ "tags": ["a"] })), object(json!({ "tags": ["b"] })));
    assert_eq!(messages(&update("OpenStackClusterTemplate", &old, &new)), refused("tags"));

    // A dry run of the topology controller asks what would happen; anybody else's shows what would be refused.
    let dry_run = |new: &Value| {
        messages(&Request { is_dry_run: true, ..update("OpenStackClusterTemplate", &old, new) })
    };
    assert_eq!(dry_run(&new), refused("tags"));
    new["metadata"]["annotations"] = json!({ "topology.cluster.x-k8s.io/dry-run": "" });
    assert!(dry_run(&new).is_empty());
    assert_eq!(messages(&update("OpenStackClusterTemplate", &old, &new)), refused("tags"));
}

#[test]
fn an_object_that_goes_away_is_not_judged() {
    let object = json!({ "metadata": { "name": "demo.prod", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    assert_eq!(validate(&update("Cluster", &object, &object), &Nothing), Judgement::default());
}

#[test]
fn what_nests_deeper_than_a_controller_reads_is_refused_with_its_field_and_can_be_deleted() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let variables = |value| json!([{ "name": "a", "value": value }]);
    let cluster =
        |value| json!({ "metadata": {}, "spec": { "topology": { "variables": variables(value) } } });
    // The value is in the sixth level.
    let (fine, deep) = (cluster(nested(95)), cluster(nested(96)));
    assert_eq!(messages(&request("Cluster", &fine)), Vec::<String>::new());
    let refusal = "spec.topology.variables[0].value[0]: Forbidden: \
        nested more than 100 levels deep, which no controller reads";
    assert_eq!(messages(&request("Cluster", &deep)), [refusal]);
    assert_eq!(messages(&update("Cluster", &deep, &fine)), Vec::<String>::new(), "it can be mended");
    assert_eq!(
        messages(&Request { operation: Operation::Delete, ..request("Cluster", &deep) }),
        Vec::<String>::new()
    );

    // Managers of fields repeat the depth of the object.
    let mut managed = fine;
    managed["metadata"] = json!({ "managedFields": [nested(200)] });
    assert_eq!(messages(&request("Cluster", &managed)), Vec::<String>::new());
}

#[test]
fn whom_a_cluster_resource_set_selects_and_its_strategy_stay() {
    let kind = "ClusterResourceSet";
    let set = |selector: Value, more: Value| {
        let mut set = json!({"metadata": {"name": "a"}, "spec": {"clusterSelector": selector,
            "resources": [{"kind": "Secret", "name": "a"}]}});
        set["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        set
    };
    let by = |name: &str| json!({"matchLabels": {"cni": name}});
    let plain = set(by("x"), json!({}));
    assert_eq!(messages(&request(kind, &plain)), [] as [&str; 0]);
    let nothing = "spec.clusterSelector: Required value: an empty selector selects no Cluster";
    for empty in [json!({}), json!({"matchLabels": {}}), json!({"matchLabels": null, "matchExpressions": []})]
    {
        let empty = set(empty, json!({}));
        assert_eq!(messages(&request(kind, &empty)), [nothing]);
        // It was stored before that was refused: it can be corrected, and changed otherwise.
        assert_eq!(messages(&update(kind, &empty, &plain)), [] as [&str; 0]);
        assert_eq!(messages(&update(kind, &empty, &empty)), [] as [&str; 0]);
    }
    let changed = |more: Value, name: &str| messages(&update(kind, &plain, &set(by(name), more)));
    assert_eq!(changed(json!({"resources": [{"kind": "ConfigMap", "name": "b"}]}), "x"), [] as [&str; 0]);
    assert_eq!(changed(json!({"strategy": "ApplyOnce"}), "x"), [] as [&str; 0], "that is the default");
    assert_eq!(
        changed(json!({"strategy": "Reconcile"}), "y"),
        [
            "spec.clusterSelector: Forbidden: it cannot be changed",
            "spec.strategy: Forbidden: it cannot be changed"
        ]
    );
    let mut leaving = set(by("y"), json!({}));
    leaving["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
    assert_eq!(messages(&update(kind, &plain, &leaving)), [] as [&str; 0]);
}

/// What served is on record, and status tells what serves and how old kubelets are.
#[test]
fn a_version_follows_the_one_that_served() {
    let control_plane = |spec: &str, served: Option<&str>, lowest: &str, kubelet: Option<&str>| {
        json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
            "metadata": {
                "name": "demo", "annotations": {"hangar.cluster.x-k8s.io/served-version": served},
            },
            "spec": {"version": spec, "replicas": 1},
            "status": {"version": lowest, "oldestKubeletVersion": kubelet},
        })
    };
    let refused = |old: &Value, object: &Value| {
        let request = Request {
            operation: Operation::Update,
            group: "controlplane.cluster.x-k8s.io",
            old: Some(old),
            ..request("HostedControlPlane", object)
        };
        let errors = validate(&request, &World::default()).errors;
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let refusals = |old: &Value, wanted: &str| {
        let mut object = old.clone();
        object["spec"]["version"] = json!(wanted);
        refused(old, &object)
    };
    let serving = control_plane("v1.34.10", Some("v1.34.10"), "v1.34.10", Some("v1.32.1"));
    for (wanted, words) in [
        ("v1.34.10", ""),
        ("1.34.11", ""),
        ("v1.35.8", ""),
        ("v1.36.4", "upgrade to 1.35 first"),
        ("v1.34.9", "cannot be lower than v1.34.10"),
        ("v1.33.0", "cannot be lower than v1.34.10"),
    ] {
        let found = refusals(&serving, wanted);
        assert!(if words.is_empty() { found.is_empty() } else { found.contains(words) }, "{wanted}: {found}");
    }
    // An upgrade that never served is taken back, or replaced by another; one that served on one is not.
    let begun = control_plane("v1.35.8", Some("v1.34.10"), "v1.34.10", None);
    assert_eq!(refusals(&begun, "v1.34.10"), "");
    assert_eq!(refusals(&begun, "v1.35.9"), "");
    let half = control_plane("v1.35.8", Some("v1.35.8"), "v1.34.10", None);
    assert!(refusals(&half, "v1.34.10").contains("cannot be lower than v1.35.8"));
    assert!(refusals(&half, "v1.36.4").contains("upgrade to 1.35 first"));
    // Kubelets hold the next minor, and nobody who goes back.
    let old = control_plane("v1.35.8", Some("v1.34.10"), "v1.34.10", Some("v1.31.0"));
    assert!(refusals(&old, "v1.35.9").contains("kubelet v1.31.0"), "{}", refusals(&old, "v1.35.9"));
    assert_eq!(refusals(&old, "v1.34.10"), "");
    // Nothing served yet.
    assert_eq!(refusals(&control_plane("v1.35.8", None, "", None), "v1.31.0"), "");
    // It served before there were records.
    let mut old = control_plane("v1.34.10", None, "v1.34.10", None);
    old["status"]["initialized"] = json!(true);
    assert!(refusals(&old, "v1.33.0").contains("cannot be lower"));
    // A tag of the API server's image is its version, whatever the rest is asked to be.
    let tagged = |tag: &str| {
        let mut object = serving.clone();
        object["spec"]["deployment"] = json!({"apiServer": {"image": {"tag": tag}}});
        object
    };
    assert_eq!(refused(&serving, &tagged("v1.34.11")), "");
    let found = refused(&serving, &tagged("v1.33.0"));
    assert!(
        found.starts_with("spec.deployment.apiServer.image.tag: ") && found.contains("cannot be lower"),
        "{found}"
    );
    assert!(refused(&serving, &tagged("v1.36.4")).contains("upgrade to 1.35 first"));
    let ahead = control_plane("v1.33.0", Some("v1.34.10"), "v1.34.10", None);
    let mut pinned = ahead.clone();
    pinned["spec"]["deployment"] = json!({"apiServer": {"image": {"tag": "v1.34.10"}}});
    let found = refused(&pinned, &ahead);
    assert!(found.starts_with("spec.version: "), "what the tag hid is asked for again: {found}");
}

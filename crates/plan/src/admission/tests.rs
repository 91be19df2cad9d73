//! One scenario a test; the names say what users are promised.

use serde_json::{Value, json};

use super::*;

const GROUP: &str = "cluster.x-k8s.io";

fn request<'request>(kind: &'request str, object: &'request Value) -> Request<'request> {
    Request { group: GROUP, kind, object, old: None }
}

fn messages(request: &Request<'_>) -> Vec<String> {
    validate(request).iter().map(ToString::to_string).collect()
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
        let _ = validate(&request);
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
    let request = Request { old: Some(&old), ..request("MachineDeployment", &object) };
    assert_eq!(
        messages(&request),
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
    let request = Request { old: Some(&old), ..request("Cluster", &object) };
    assert_eq!(
        messages(&request),
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
        let request = Request { group: "infrastructure.cluster.x-k8s.io", kind, object, old: None };
        validate(&request).iter().map(|error| error.path().to_owned()).collect()
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
    let request = Request { group: "example.com", kind: "Cluster", object: &object, old: None };
    assert_eq!(defaulted(&request), object);
    assert!(validate(&request).is_empty());
}

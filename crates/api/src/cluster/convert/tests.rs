//! One document per kind in both versions, and the cases where they differ in more than a name.

use crate::conversion::{NoVersions, convert};
use crate::names::STASH_ANNOTATION;
use serde_json::{Value, json};

const OLD: &str = "cluster.x-k8s.io/v1beta1";
const NEW: &str = "cluster.x-k8s.io/v1beta2";

fn object(version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": { "name": "a", "namespace": "n" },
        "spec": spec,
        "status": status,
    })
}

/// Both directions give exactly the other document, without a stash.
fn are_equivalent(kind: &str, old: (&Value, &Value), new: (&Value, &Value)) {
    let (old, new) = (object(OLD, kind, old.0, old.1), object(NEW, kind, new.0, new.1));
    assert_eq!(convert(old.clone(), NEW, &NoVersions).unwrap(), new);
    assert_eq!(convert(new, OLD, &NoVersions).unwrap(), old);
}

fn up(kind: &str, spec: &Value) -> Value {
    convert(object(OLD, kind, spec, &json!({})), NEW, &NoVersions).unwrap()
}

fn time() -> &'static str {
    "2026-01-02T03:04:05Z"
}

fn old_condition() -> Value {
    json!({ "type": "Ready", "status": "False", "severity": "Info", "reason": "R", "message": "m", "lastTransitionTime": time() })
}

fn new_condition() -> Value {
    json!({ "type": "Available", "status": "True", "reason": "A", "message": "", "lastTransitionTime": time() })
}

fn old_reference(kind: &str) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": "x", "namespace": "n" })
}

fn new_reference(kind: &str) -> Value {
    json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "x" })
}

fn old_machine_spec() -> Value {
    json!({
        "bootstrap": { "configRef": old_reference("Config"), "dataSecretName": "s" },
        "clusterName": "c",
        "failureDomain": "f",
        "infrastructureRef": old_reference("Server"),
        "nodeDeletionTimeout": "10s",
        "nodeDrainTimeout": "1h0m0s",
        "nodeVolumeDetachTimeout": "5m0s",
        "providerID": "p://1",
        "readinessGates": [{ "conditionType": "G", "polarity": "Negative" }],
        "version": "v1.34.0",
    })
}

fn new_machine_spec() -> Value {
    json!({
        "bootstrap": { "configRef": new_reference("Config"), "dataSecretName": "s" },
        "clusterName": "c",
        "deletion": {
            "nodeDeletionTimeoutSeconds": 10,
            "nodeDrainTimeoutSeconds": 3600,
            "nodeVolumeDetachTimeoutSeconds": 300,
        },
        "failureDomain": "f",
        "infrastructureRef": new_reference("Server"),
        "providerID": "p://1",
        "readinessGates": [{ "conditionType": "G", "polarity": "Negative" }],
        "version": "v1.34.0",
    })
}

#[test]
fn cluster() {
    let old_spec = json!({
        "availabilityGates": [{ "conditionType": "G" }],
        "clusterNetwork": {
            "apiServerPort": 6443,
            "pods": { "cidrBlocks": ["10.0.0.0/16"] },
            "serviceDomain": "cluster.local",
            "services": { "cidrBlocks": ["10.1.0.0/16"] },
        },
        "controlPlaneEndpoint": { "host": "h", "port": 443 },
        "controlPlaneRef": old_reference("ControlPlane"),
        "infrastructureRef": old_reference("Infrastructure"),
        "paused": true,
    });
    let mut new_spec = old_spec.clone();
    new_spec["controlPlaneRef"] = new_reference("ControlPlane");
    new_spec["infrastructureRef"] = new_reference("Infrastructure");
    let old_status = json!({
        "conditions": [old_condition()],
        "controlPlaneReady": true,
        "failureDomains": { "a": { "controlPlane": true }, "b": { "attributes": { "k": "v" } } },
        "failureMessage": "m",
        "failureReason": "r",
        "infrastructureReady": false,
        "observedGeneration": 4,
        "phase": "Provisioned",
        "v1beta2": { "conditions": [new_condition()], "controlPlane": { "replicas": 3 }, "workers": { "readyReplicas": 0 } },
    });
    let new_status = json!({
        "conditions": [new_condition()],
        "controlPlane": { "replicas": 3 },
        "deprecated": { "v1beta1": { "conditions": [old_condition()], "failureMessage": "m", "failureReason": "r" } },
        "failureDomains": [{ "name": "a", "controlPlane": true }, { "name": "b", "attributes": { "k": "v" } }],
        "initialization": { "controlPlaneInitialized": true, "infrastructureProvisioned": false },
        "observedGeneration": 4,
        "phase": "Provisioned",
        "workers": { "readyReplicas": 0 },
    });
    are_equivalent("Cluster", (&old_spec, &old_status), (&new_spec, &new_status));
}

#[test]
fn cluster_topology() {
    let old_check = json!({
        "enable": true,
        "maxUnhealthy": "40%",
        "nodeStartupTimeout": "10m0s",
        "remediationTemplate": old_reference("Template"),
        "unhealthyConditions": [{ "type": "Ready", "status": "Unknown", "timeout": "5m0s" }],
        "unhealthyRange": "[3-5]",
    });
    let new_check = |max_in_flight: Value| {
        let mut check = json!({
            "checks": {
                "nodeStartupTimeoutSeconds": 600,
                "unhealthyNodeConditions": [{ "type": "Ready", "status": "Unknown", "timeoutSeconds": 300 }],
            },
            "enabled": true,
            "remediation": {
                "templateRef": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Template", "name": "x" },
                "triggerIf": { "unhealthyInRange": "[3-5]", "unhealthyLessThanOrEqualTo": "40%" },
            },
        });
        if !max_in_flight.is_null() {
            check["remediation"]["maxInFlight"] = max_in_flight;
        }
        check
    };
    let variables = json!([{ "name": "v", "value": { "any": [1, null] } }]);
    let old_spec = json!({ "topology": {
        "class": "c",
        "classNamespace": "cn",
        "controlPlane": {
            "machineHealthCheck": old_check,
            "metadata": { "labels": { "a": "b" } },
            "nodeDrainTimeout": "10s",
            "replicas": 3,
            "variables": { "overrides": variables },
        },
        "variables": variables,
        "version": "v1.34.0",
        "workers": {
            "machineDeployments": [{
                "class": "w",
                "machineHealthCheck": old_check,
                "minReadySeconds": 5,
                "name": "md",
                "nodeDeletionTimeout": "1s",
                "strategy": {
                    "remediation": { "maxInFlight": 2 },
                    "rollingUpdate": { "deletePolicy": "Oldest", "maxSurge": "50%", "maxUnavailable": 0 },
                    "type": "RollingUpdate",
                },
            }],
            "machinePools": [{ "class": "p", "failureDomains": ["f"], "name": "mp", "nodeVolumeDetachTimeout": "2s" }],
        },
    } });
    let new_spec = json!({ "topology": {
        "classRef": { "name": "c", "namespace": "cn" },
        "controlPlane": {
            "deletion": { "nodeDrainTimeoutSeconds": 10 },
            "healthCheck": new_check(Value::Null),
            "metadata": { "labels": { "a": "b" } },
            "replicas": 3,
            "variables": { "overrides": variables },
        },
        "variables": variables,
        "version": "v1.34.0",
        "workers": {
            "machineDeployments": [{
                "class": "w",
                "deletion": { "nodeDeletionTimeoutSeconds": 1, "order": "Oldest" },
                "healthCheck": new_check(json!(2)),
                "minReadySeconds": 5,
                "name": "md",
                "rollout": { "strategy": { "rollingUpdate": { "maxSurge": "50%", "maxUnavailable": 0 }, "type": "RollingUpdate" } },
            }],
            "machinePools": [{ "class": "p", "deletion": { "nodeVolumeDetachTimeoutSeconds": 2 }, "failureDomains": ["f"], "name": "mp" }],
        },
    } });
    are_equivalent("Cluster", (&old_spec, &json!({})), (&new_spec, &json!({})));
}

#[test]
fn machine() {
    let node_info = json!({
        "architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "c", "kernelVersion": "k",
        "kubeProxyVersion": "", "kubeletVersion": "v1.34.0", "machineID": "m", "operatingSystem": "linux",
        "osImage": "o", "systemUUID": "u",
    });
    let old_status = json!({
        "addresses": [{ "address": "10.0.0.1", "type": "InternalIP" }],
        "bootstrapReady": true,
        "certificatesExpiryDate": time(),
        "conditions": [old_condition()],
        "deletion": { "nodeDrainStartTime": time() },
        "infrastructureReady": true,
        "lastUpdated": time(),
        "nodeInfo": node_info,
        "nodeRef": { "apiVersion": "v1", "kind": "Node", "name": "x" },
        "observedGeneration": 1,
        "phase": "Running",
        "v1beta2": { "conditions": [new_condition()] },
    });
    let new_status = json!({
        "addresses": [{ "address": "10.0.0.1", "type": "InternalIP" }],
        "certificatesExpiryDate": time(),
        "conditions": [new_condition()],
        "deletion": { "nodeDrainStartTime": time() },
        "deprecated": { "v1beta1": { "conditions": [old_condition()] } },
        "initialization": { "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true },
        "lastUpdated": time(),
        "nodeInfo": node_info,
        "nodeRef": { "name": "x" },
        "observedGeneration": 1,
        "phase": "Running",
    });
    are_equivalent("Machine", (&old_machine_spec(), &old_status), (&new_machine_spec(), &new_status));
}

/// Template of Machines in both versions; the newer one holds `minReadySeconds`.
fn templates() -> (Value, Value) {
    let mut new_spec = new_machine_spec();
    new_spec["minReadySeconds"] = json!(7);
    let metadata = json!({ "labels": { "a": "b" }, "annotations": { "c": "d" } });
    (
        json!({ "metadata": metadata, "spec": old_machine_spec() }),
        json!({ "metadata": metadata, "spec": new_spec }),
    )
}

#[test]
fn machine_set() {
    let (old_template, new_template) = templates();
    let selector = json!({ "matchLabels": { "a": "b" } });
    let old_spec = json!({
        "clusterName": "c", "deletePolicy": "Newest", "machineNamingStrategy": { "template": "t" },
        "minReadySeconds": 7, "replicas": 2, "selector": selector, "template": old_template,
    });
    let new_spec = json!({
        "clusterName": "c", "deletion": { "order": "Newest" }, "machineNaming": { "template": "t" },
        "replicas": 2, "selector": selector, "template": new_template,
    });
    let old_status = json!({
        "availableReplicas": 1, "conditions": [old_condition()], "failureReason": "r", "fullyLabeledReplicas": 2,
        "observedGeneration": 1, "readyReplicas": 3, "replicas": 4, "selector": "a=b",
        "v1beta2": { "availableReplicas": 5, "conditions": [new_condition()], "readyReplicas": 6, "upToDateReplicas": 7 },
    });
    let new_status = json!({
        "availableReplicas": 5, "conditions": [new_condition()],
        "deprecated": { "v1beta1": {
            "availableReplicas": 1, "conditions": [old_condition()], "failureReason": "r",
            "fullyLabeledReplicas": 2, "readyReplicas": 3,
        } },
        "observedGeneration": 1, "readyReplicas": 6, "replicas": 4, "selector": "a=b", "upToDateReplicas": 7,
    });
    are_equivalent("MachineSet", (&old_spec, &old_status), (&new_spec, &new_status));
}

#[test]
fn machine_deployment() {
    let (old_template, new_template) = templates();
    let old_spec = json!({
        "clusterName": "c", "machineNamingStrategy": { "template": "t" }, "minReadySeconds": 7, "paused": false,
        "replicas": 2, "rolloutAfter": time(), "selector": {},
        "strategy": {
            "remediation": { "maxInFlight": "20%" },
            "rollingUpdate": { "deletePolicy": "Random", "maxSurge": 1, "maxUnavailable": 0 },
            "type": "RollingUpdate",
        },
        "template": old_template,
    });
    let new_spec = json!({
        "clusterName": "c", "deletion": { "order": "Random" }, "machineNaming": { "template": "t" }, "paused": false,
        "remediation": { "maxInFlight": "20%" }, "replicas": 2,
        "rollout": {
            "after": time(),
            "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 }, "type": "RollingUpdate" },
        },
        "selector": {}, "template": new_template,
    });
    let old_status = json!({
        "availableReplicas": 1, "conditions": [old_condition()], "observedGeneration": 1, "phase": "ScalingUp",
        "readyReplicas": 2, "replicas": 3, "selector": "a=b", "unavailableReplicas": 4, "updatedReplicas": 5,
        "v1beta2": { "availableReplicas": 6, "conditions": [new_condition()], "readyReplicas": 7, "upToDateReplicas": 8 },
    });
    let new_status = json!({
        "availableReplicas": 6, "conditions": [new_condition()],
        "deprecated": { "v1beta1": {
            "availableReplicas": 1, "conditions": [old_condition()], "readyReplicas": 2,
            "unavailableReplicas": 4, "updatedReplicas": 5,
        } },
        "observedGeneration": 1, "phase": "ScalingUp", "readyReplicas": 7, "replicas": 3, "selector": "a=b",
        "upToDateReplicas": 8,
    });
    are_equivalent("MachineDeployment", (&old_spec, &old_status), (&new_spec, &new_status));
}

#[test]
fn machine_health_check() {
    let selector = json!({ "matchExpressions": [{ "key": "k", "operator": "Exists" }] });
    let old_spec = json!({
        "clusterName": "c", "maxUnhealthy": 3, "nodeStartupTimeout": "0s",
        "remediationTemplate": old_reference("Template"), "selector": selector,
        "unhealthyConditions": [{ "type": "Ready", "status": "False", "timeout": "1m30s" }], "unhealthyRange": "[1-2]",
    });
    let new_spec = json!({
        "checks": {
            "nodeStartupTimeoutSeconds": 0,
            "unhealthyNodeConditions": [{ "type": "Ready", "status": "False", "timeoutSeconds": 90 }],
        },
        "clusterName": "c",
        "remediation": {
            "templateRef": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Template", "name": "x" },
            "triggerIf": { "unhealthyInRange": "[1-2]", "unhealthyLessThanOrEqualTo": 3 },
        },
        "selector": selector,
    });
    let counts = json!({ "currentHealthy": 1, "expectedMachines": 2, "observedGeneration": 1, "remediationsAllowed": 0, "targets": ["t"] });
    let (mut old_status, mut new_status) = (counts.clone(), counts);
    old_status["conditions"] = json!([old_condition()]);
    old_status["v1beta2"] = json!({ "conditions": [new_condition()] });
    new_status["conditions"] = json!([new_condition()]);
    new_status["deprecated"] = json!({ "v1beta1": { "conditions": [old_condition()] } });
    are_equivalent("MachineHealthCheck", (&old_spec, &old_status), (&new_spec, &new_status));
}

#[test]
fn zeros_that_older_writers_leave_behind_become_absent_and_an_endpoint_found_later_wins() {
    let spec = json!({
        "clusterNetwork": { "apiServerPort": 0, "pods": { "cidrBlocks": [] } },
        "controlPlaneEndpoint": { "host": "", "port": 0 },
        "paused": true,
    });
    let mut there = up("Cluster", &spec);
    assert_eq!(there["spec"], json!({ "paused": true }));
    assert_eq!(convert(there.clone(), OLD, &NoVersions).unwrap()["spec"], spec);
    there["spec"]["controlPlaneEndpoint"] = json!({ "host": "h", "port": 6443 });
    let back = convert(there, OLD, &NoVersions).unwrap();
    assert_eq!(back["spec"]["controlPlaneEndpoint"], json!({ "host": "h", "port": 6443 }));
    assert_eq!(back["spec"]["clusterNetwork"], spec["clusterNetwork"]);
}

#[test]
fn a_deployment_without_selector_or_type_keeps_everything_else() {
    // Objects reach conversion before they are defaulted and validated.
    let spec = json!({
        "clusterName": "c",
        "replicas": 3,
        "selector": { "matchLabels": null },
        "strategy": { "rollingUpdate": { "maxSurge": 1 } },
        "template": { "spec": { "clusterName": "c", "version": "1.28.10" } },
    });
    let there = up("MachineDeployment", &spec);
    assert_eq!(there["spec"]["replicas"], json!(3));
    assert_eq!(there["spec"]["template"]["spec"]["version"], json!("1.28.10"));
    assert_eq!(there["spec"]["rollout"]["strategy"]["type"], json!("RollingUpdate"));
    assert_eq!(convert(there, OLD, &NoVersions).unwrap()["spec"], spec);
    let mut bare = spec;
    bare.as_object_mut().unwrap().remove("selector");
    let there = up("MachineDeployment", &bare);
    assert_eq!(there["spec"]["selector"], json!({}));
    assert_eq!(there["spec"]["replicas"], json!(3));
}

#[test]
fn durations_that_seconds_cannot_hold_come_back_as_written() {
    for (text, seconds) in [
        ("10m", json!(600)),
        ("1.5s", json!(1)),
        ("-5s", Value::Null),
        ("banana", Value::Null),
        ("2562047h", json!(i32::MAX)),
    ] {
        let mut spec = old_machine_spec();
        spec["nodeDrainTimeout"] = json!(text);
        let there = up("Machine", &spec);
        assert_eq!(there["spec"]["deletion"]["nodeDrainTimeoutSeconds"], seconds, "{text}");
        assert_eq!(convert(there.clone(), OLD, &NoVersions).unwrap()["spec"], spec);
        // Whoever sets another value in the newer version means it.
        let mut edited = there;
        edited["spec"]["deletion"]["nodeDrainTimeoutSeconds"] = json!(60);
        let back = convert(edited, OLD, &NoVersions).unwrap();
        assert_eq!(back["spec"]["nodeDrainTimeout"], json!("1m0s"), "{text}");
    }
}

#[test]
fn a_condition_with_an_unreadable_timeout_remediates_nothing() {
    let spec = json!({
        "clusterName": "c",
        "selector": {},
        "unhealthyConditions": [
            { "type": "Ready", "status": "False", "timeout": "banana" },
            { "type": "Ready", "status": "Unknown", "timeout": "-1s" },
        ],
    });
    let there = up("MachineHealthCheck", &spec);
    assert_eq!(
        there["spec"]["checks"]["unhealthyNodeConditions"],
        json!([{ "type": "Ready", "status": "Unknown", "timeoutSeconds": 0 }])
    );
    assert_eq!(convert(there, OLD, &NoVersions).unwrap()["spec"], spec);
}

#[test]
fn what_only_the_newer_version_has_waits_in_the_stash() {
    let mut spec = new_machine_spec();
    spec["taints"] = json!([{ "key": "k", "effect": "NoSchedule", "propagation": "Always" }]);
    spec["minReadySeconds"] = json!(3);
    let hub = object(NEW, "Machine", &spec, &json!({ "phase": "Updating" }));
    let mut older = convert(hub.clone(), OLD, &NoVersions).unwrap();
    assert_eq!(older["spec"], old_machine_spec());
    assert_eq!(older["status"], json!({ "phase": "Running" }));
    assert!(older["metadata"]["annotations"][STASH_ANNOTATION].is_string());
    assert_eq!(convert(older.clone(), NEW, &NoVersions).unwrap(), hub);
    older["status"]["phase"] = json!("Deleting");
    let edited = convert(older, NEW, &NoVersions).unwrap();
    assert_eq!(edited["status"]["phase"], json!("Deleting"));
    assert_eq!(edited["spec"], spec);
}

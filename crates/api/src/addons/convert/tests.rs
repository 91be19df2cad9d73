//! Conversions of real manifests.

use serde_json::{Value, json};

use crate::conversion::{NoVersions, convert};

const OLDER: &str = "addons.cluster.x-k8s.io/v1beta1";
const NEWER: &str = "addons.cluster.x-k8s.io/v1beta2";

fn up(object: &Value) -> Value {
    convert(object.clone(), NEWER, &NoVersions).unwrap()
}

fn down(object: &Value) -> Value {
    convert(object.clone(), OLDER, &NoVersions).unwrap()
}

fn with_api_version(object: &Value, api_version: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(api_version);
    object
}

#[test]
fn a_resource_set_is_the_same_in_both_versions() {
    let set: Value = serde_saphyr::from_str(
        "
apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: ClusterResourceSet
metadata: {name: clouds-yaml, namespace: tenant}
spec:
  strategy: Reconcile
  clusterSelector:
    matchLabels: {managed-secret: clouds-yaml}
  resources:
  - {name: clouds-yaml, kind: Secret}
",
    )
    .unwrap();
    let stored = up(&set);
    assert_eq!(stored, with_api_version(&set, NEWER));
    assert_eq!(down(&stored), set);
}

#[test]
fn a_resource_set_keeps_both_kinds_of_conditions() {
    let legacy = json!([{
        "type": "ResourcesApplied", "status": "False", "severity": "Warning", "reason": "ApplyFailed",
        "message": "no", "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]);
    let current = json!([{
        "type": "ResourcesApplied", "status": "False", "reason": "ApplyFailed", "message": "no",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]);
    let set = json!({
        "apiVersion": OLDER,
        "kind": "ClusterResourceSet",
        "metadata": {"name": "a"},
        "spec": {"clusterSelector": {}, "resources": [{"kind": "ConfigMap", "name": "a"}]},
        "status": {"conditions": legacy, "observedGeneration": 3, "v1beta2": {"conditions": current}},
    });
    let stored = up(&set);
    assert_eq!(
        stored["status"],
        json!({
            "conditions": current,
            "deprecated": {"v1beta1": {"conditions": legacy}},
            "observedGeneration": 3,
        })
    );
    assert_eq!(down(&stored), set);
}

#[test]
fn a_resource_set_without_resources_converts() {
    let set = json!({
        "apiVersion": OLDER, "kind": "ClusterResourceSet", "metadata": {"name": "a"},
        "spec": {"clusterSelector": {"matchLabels": {"a": "b"}}},
    });
    let stored = up(&set);
    assert_eq!(stored["spec"], json!({"clusterSelector": {"matchLabels": {"a": "b"}}, "resources": []}));
    assert_eq!(down(&stored), set);
}

#[test]
fn a_binding_is_the_same_in_both_versions() {
    let binding = json!({
        "apiVersion": OLDER,
        "kind": "ClusterResourceSetBinding",
        "metadata": {"name": "tenant", "namespace": "default"},
        "spec": {
            "clusterName": "tenant",
            "bindings": [{"clusterResourceSetName": "clouds-yaml", "resources": [{
                "kind": "Secret", "name": "clouds-yaml", "applied": true, "hash": "sha256:00",
                "lastAppliedTime": "2026-01-02T03:04:05Z",
            }]}],
        },
    });
    let stored = up(&binding);
    assert_eq!(stored, with_api_version(&binding, NEWER));
    assert_eq!(down(&stored), binding);
}

#[test]
fn a_binding_without_a_cluster_name_converts() {
    let binding = json!({
        "apiVersion": OLDER, "kind": "ClusterResourceSetBinding", "metadata": {"name": "tenant"},
        "spec": {"bindings": []},
    });
    let stored = up(&binding);
    assert_eq!(stored["spec"]["clusterName"], "");
    assert_eq!(down(&stored), binding);
}

//! Pieces that the pods we run in the tenant have.

use std::collections::BTreeMap;

use hangar_api::contract::Endpoint;
use hangar_api::names::UNINITIALIZED_TAINT;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::object::tenant;

pub fn config_map(namespace: &str, name: &str, data: &[(&str, String)]) -> DynamicObject {
    let data: BTreeMap<&str, &String> = data.iter().map(|(key, text)| (*key, text)).collect();
    tenant(("v1", "ConfigMap"), Some(namespace), name, &[], json!({"data": data}))
}

/// Two unless given, no more than nodes, and never none: an empty Deployment would count as ready.
pub(super) fn pods_wanted(given: Option<i32>, nodes: u32) -> i32 {
    let wanted = given.unwrap_or(2).max(1);
    wanted.min(i32::try_from(nodes).unwrap_or(i32::MAX).max(1))
}

/// What add-ons tolerate: nodes that nobody has looked at yet. Tolerating everything would put them on nodes that are
/// broken.
pub(super) fn tolerations() -> Vec<Value> {
    vec![
        json!({"key": "CriticalAddonsOnly", "operator": "Exists"}),
        toleration("node-role.kubernetes.io/control-plane", "NoSchedule"),
        toleration(UNINITIALIZED_TAINT, "NoSchedule"),
        toleration("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ]
}

/// What pods tolerate that need no network of pods: nodes get theirs through the tunnel they make.
pub(super) fn early_tolerations() -> Vec<Value> {
    let not_ready = "node.kubernetes.io/not-ready";
    let mut all = tolerations();
    all.extend([toleration(not_ready, "NoSchedule"), toleration(not_ready, "NoExecute")]);
    all
}

fn toleration(key: &str, effect: &str) -> Value {
    json!({"key": key, "operator": "Exists", "effect": effect})
}

/// Leads clients of the API server to the address that needs no Service. It wins over the variables that kubelet sets.
pub fn api_server_environment(endpoint: &Endpoint) -> Value {
    json!([
        {"name": "KUBERNETES_SERVICE_HOST", "value": endpoint.host},
        {"name": "KUBERNETES_SERVICE_PORT", "value": endpoint.port.to_string()},
    ])
}

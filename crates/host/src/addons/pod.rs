//! Pieces that every add-on's pod and every account has.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{AddonOptions, NAMESPACE};

/// The label that selects an add-on's pods.
pub(super) const NAME_LABEL: &str = "app.kubernetes.io/name";

/// Changes with the settings of a program that reads them only at its start, so that a change rolls its pods.
const SETTINGS_ANNOTATION: &str = "hangar.cluster.x-k8s.io/settings";

pub(super) fn service_account(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
    })
}

pub(super) fn config_map(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": data,
    })
}

pub(super) fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    })
}

/// Binds a cluster role to a ServiceAccount.
pub(super) fn account_binding(name: &str, role: &str, namespace: &str, account: &str) -> Value {
    binding(name, role, &json!({"kind": "ServiceAccount", "namespace": namespace, "name": account}))
}

/// Binds a cluster role to a user known by certificate.
pub(super) fn user_binding(name: &str, role: &str, user: &str) -> Value {
    binding(name, role, &json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}))
}

fn binding(name: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

pub(super) fn tolerations() -> Value {
    json!([{"operator": "Exists"}])
}

/// Leads clients of the API server to its own address instead of its Service's, which needs kube-proxy. It wins over
/// the variables that kubelet sets.
pub(super) fn api_server_environment(options: &AddonOptions) -> Vec<Value> {
    vec![
        json!({"name": "KUBERNETES_SERVICE_HOST", "value": options.api_server.host.to_string()}),
        json!({"name": "KUBERNETES_SERVICE_PORT", "value": options.api_server.port.to_string()}),
    ]
}

pub(super) fn node_name_environment(variable: &str) -> Value {
    json!({"name": variable, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
}

/// Annotations of a pod whose program does not notice changed settings.
pub(super) fn settings_annotation(settings: &Value) -> Value {
    let digest = Sha256::digest(settings.to_string().as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    json!({SETTINGS_ANNOTATION: format!("{number:016x}")})
}

/// A probe that asks often: nothing here is worth waiting ten seconds for.
pub(super) fn probe(path: &str, port: u16) -> Value {
    json!({
        "httpGet": {"path": path, "port": port},
        "periodSeconds": 1,
        "timeoutSeconds": 1,
        "failureThreshold": 3,
    })
}

/// A probe that ends a program which no longer answers, and is slow to believe it: these hosts are small and busy.
pub(super) fn liveness_probe(path: &str, port: u16) -> Value {
    json!({
        "httpGet": {"path": path, "port": port},
        "initialDelaySeconds": 30,
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 6,
    })
}

/// No privilege beyond the named capabilities.
pub(super) fn restricted(capabilities: &[&str]) -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"add": capabilities, "drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

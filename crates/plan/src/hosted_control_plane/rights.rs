//! Accounts, roles and bindings of the tenant.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::object::tenant;

const GROUP: &str = "rbac.authorization.k8s.io";
const VERSION: &str = "rbac.authorization.k8s.io/v1";

/// A ServiceAccount.
pub fn account(namespace: &str, name: &str) -> DynamicObject {
    tenant(("v1", "ServiceAccount"), Some(namespace), name, &[], json!({}))
}

/// A role in all namespaces.
pub fn cluster_role(name: &str, rules: &Value) -> DynamicObject {
    tenant((VERSION, "ClusterRole"), None, name, &[], json!({"rules": rules}))
}

pub(super) fn role(namespace: &str, name: &str, rules: &Value) -> DynamicObject {
    tenant((VERSION, "Role"), Some(namespace), name, &[], json!({"rules": rules}))
}

pub fn cluster_role_binding(name: &str, role: &str, subjects: &[Value]) -> DynamicObject {
    let content = json!({
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    });
    tenant((VERSION, "ClusterRoleBinding"), None, name, &[], content)
}

/// Binds the role of the same name.
pub(super) fn role_binding(namespace: &str, name: &str, subjects: &[Value]) -> DynamicObject {
    let content = json!({"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name}, "subjects": subjects});
    tenant((VERSION, "RoleBinding"), Some(namespace), name, &[], content)
}

/// A ServiceAccount, in a binding.
pub fn subject_account(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
}

/// A user that is known by certificate, in a binding.
pub fn subject_user(name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": "User", "name": name})
}

pub(super) fn subject_group(name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": "Group", "name": name})
}

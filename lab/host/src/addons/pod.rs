//! Pieces that every add-on's pod and every account has, beyond those that tenants' add-ons have too.

use hangar_plan::hosted_control_plane::addons::{
    account, cluster_role, cluster_role_binding, subject_account,
};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::AddonOptions;

/// The label that selects an add-on's pods.
pub(super) const NAME_LABEL: &str = "app.kubernetes.io/name";

/// Objects as they are applied here, without the hash by which a tenant's objects are compared.
pub(super) fn values(objects: Vec<DynamicObject>) -> Vec<Value> {
    let value = |mut object: DynamicObject| {
        object.metadata.annotations = None;
        serde_json::to_value(object).ok()
    };
    objects.into_iter().filter_map(value).collect()
}

/// An account and what it may do.
pub(super) fn identity(namespace: &str, name: &str, role: &str, rules: &Value) -> Vec<Value> {
    values(vec![
        account(namespace, name),
        cluster_role(role, rules),
        cluster_role_binding(role, role, &[subject_account(namespace, name)]),
    ])
}

pub(super) fn tolerations() -> Vec<Value> {
    vec![json!({"operator": "Exists"})]
}

/// Leads clients of the API server to its own address instead of its Service's, which needs kube-proxy.
pub(super) fn api_server_environment(options: &AddonOptions) -> Value {
    hangar_plan::hosted_control_plane::addons::api_server_environment(&options.api_server.endpoint())
}

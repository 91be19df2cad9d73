//! Parts that the pods we run in the tenant share.

use std::collections::BTreeMap;

use hangar_api::contract::Endpoint;
use hangar_api::names::UNINITIALIZED_TAINT;
use k8s_openapi::api::core::v1::{ConfigMap, EnvVar, Toleration};

use super::object::tenant;
use crate::pieces::{pairs, toleration, variable};

pub fn config_map<const N: usize>(namespace: &str, name: &str, data: [(&str, String); N]) -> ConfigMap {
    let data = data.map(|(key, text)| (key.to_owned(), text));
    ConfigMap { metadata: tenant(Some(namespace), name, []), data: Some(data.into()), ..ConfigMap::default() }
}

/// The nodes that add-ons can run on: their images are for no other system.
pub(super) fn linux() -> BTreeMap<String, String> {
    pairs([("kubernetes.io/os", "linux")])
}

/// Two unless given, no more than nodes, and never none: an empty Deployment would count as ready.
pub(super) fn pods_wanted(given: Option<i32>, nodes: u32) -> i32 {
    let wanted = given.unwrap_or(2).max(1);
    wanted.min(i32::try_from(nodes).unwrap_or(i32::MAX).max(1))
}

/// What add-ons tolerate: nodes that nobody has looked at yet. Tolerating everything would put them on nodes that are
/// broken.
pub(super) fn tolerations() -> Vec<Toleration> {
    vec![
        toleration(Some("CriticalAddonsOnly"), None),
        toleration(Some("node-role.kubernetes.io/control-plane"), Some("NoSchedule")),
        toleration(Some(UNINITIALIZED_TAINT), Some("NoSchedule")),
        toleration(Some("node.cloudprovider.kubernetes.io/uninitialized"), Some("NoSchedule")),
    ]
}

/// What pods tolerate that need no network of pods: nodes get theirs through the tunnel they make.
pub(super) fn early_tolerations() -> Vec<Toleration> {
    let not_ready = Some("node.kubernetes.io/not-ready");
    let mut all = tolerations();
    all.extend([toleration(not_ready, Some("NoSchedule")), toleration(not_ready, Some("NoExecute"))]);
    all
}

/// Leads clients of the API server to the address that needs no Service. It wins over the variables that kubelet sets.
pub fn api_server_environment(endpoint: &Endpoint) -> Vec<EnvVar> {
    vec![
        variable("KUBERNETES_SERVICE_HOST", endpoint.host.clone()),
        variable("KUBERNETES_SERVICE_PORT", endpoint.port.to_string()),
    ]
}

//! Parts that every add-on's pod and every account has, beyond those that tenants' add-ons have too.

use std::collections::BTreeMap;

use hangar_plan::hosted_control_plane::addons::{
    account, api_server_environment, cluster_role, cluster_role_binding, subject_account,
};
use hangar_plan::pieces::{self, pairs, plain_container, toleration};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, Toleration};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::core::{DynamicObject, ObjectMeta};
use serde::Serialize;
use serde_json::Value;

use super::AddonOptions;

/// The label that selects an add-on's pods.
pub(super) const NAME_LABEL: &str = "app.kubernetes.io/name";

/// How long a pod stays on a node that is not Ready, after Kubernetes noticed.
const LOST_SECONDS: i64 = 5;

/// An object as it is applied here.
pub(super) fn value(object: &impl Serialize) -> Value {
    // Proved by the types: whatever is a Kubernetes object can be written as JSON.
    serde_json::to_value(object).unwrap_or_default()
}

pub(super) fn values(objects: &[DynamicObject]) -> Vec<Value> {
    objects.iter().map(value).collect()
}

/// An account and what it may do.
pub(super) fn identity(namespace: &str, name: &str, role: &str, rules: Vec<PolicyRule>) -> Vec<Value> {
    vec![
        value(&account(namespace, name)),
        value(&cluster_role(role, rules)),
        value(&cluster_role_binding(role, role, subject_account(namespace, name))),
    ]
}

/// Metadata of an add-on's workload.
pub(super) fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(pairs([(NAME_LABEL, name)])),
        ..ObjectMeta::default()
    }
}

/// A container that finds the API server at its own address instead of its Service's, which needs kube-proxy.
pub(super) fn container(options: &AddonOptions, name: &str, image: &str, memory: &str) -> Container {
    Container {
        env: Some(api_server_environment(&options.api_server.endpoint())),
        ..plain_container(name, image, ("10m", memory))
    }
}

/// How often something runs that others cannot do without.
pub(super) fn replicas(options: &AddonOptions) -> i32 {
    i32::from(options.nodes.clamp(1, 2))
}

/// Of pods that may run on any node. With several nodes they leave one that is lost, sooner than after five minutes.
pub(super) fn tolerations(options: &AddonOptions) -> Vec<Toleration> {
    if options.nodes == 1 {
        return vec![toleration(None, None)];
    }
    let for_some_time = |condition: &str| Toleration {
        toleration_seconds: Some(LOST_SECONDS),
        ..toleration(Some(&format!("node.kubernetes.io/{condition}")), Some("NoExecute"))
    };
    vec![
        for_some_time("not-ready"),
        for_some_time("unreachable"),
        toleration(Some("node.kubernetes.io/not-ready"), Some("NoSchedule")),
    ]
}

/// The pods of an add-on, under the account of its name, on every node or, with these tolerations, on any.
pub(super) fn template(name: &str, spec: PodSpec, tolerations: Vec<Toleration>) -> PodTemplateSpec {
    let spec =
        PodSpec { service_account_name: Some(name.to_owned()), tolerations: Some(tolerations), ..spec };
    pieces::template(pairs([(NAME_LABEL, name)]), BTreeMap::new(), spec)
}

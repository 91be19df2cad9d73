//! The priority classes of control planes.
//!
//! Before all else they protect from eviction: a node that lacks memory ends pods of lower priority first. They never
//! preempt. Kubernetes lets everybody who may create pods name any class, so one that preempts would let each of them push
//! others off their nodes.

use k8s_openapi::api::scheduling::v1::PriorityClass;

use super::{Options, metadata};
use crate::controllers::Controller;
use crate::namespaces::Namespaces;

/// Of etcd's pods: what is lost with them takes longest to come back.
pub const ETCD_CLASS: &str = "hangar-etcd";
/// Of all other pods of control planes.
pub const CONTROL_PLANE_CLASS: &str = "hangar-control-plane";

/// Above the default of 0, and below what is left to Kubernetes itself (from 2 000 000 000).
const ETCD_VALUE: i32 = 1_000_001;
const CONTROL_PLANE_VALUE: i32 = 1_000_000;

/// Classes have no namespace: a manager of some namespaces only does without.
pub(super) fn are_made(options: &Options) -> bool {
    options.namespaces == Namespaces::All
        && options.controllers.iter().any(|controller| controller == Controller::HostedControlPlane)
}

pub(super) fn classes(options: &Options) -> Vec<PriorityClass> {
    let class = |name: &str, value, description: &str| PriorityClass {
        metadata: metadata(name, None),
        value,
        global_default: Some(false),
        preemption_policy: Some("Never".to_owned()),
        description: Some(description.to_owned()),
    };
    if !are_made(options) {
        return Vec::new();
    }
    vec![
        class(ETCD_CLASS, ETCD_VALUE, "etcd of hosted control planes."),
        class(
            CONTROL_PLANE_CLASS,
            CONTROL_PLANE_VALUE,
            "API servers, controller managers and schedulers of hosted control planes.",
        ),
    ]
}

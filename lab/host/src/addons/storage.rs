//! The storage classes of our own [`crate::provisioner`], and the rights it has.
//!
//! There is a class that binds at once and one that waits for the first pod. With one node there is nothing to wait for,
//! and waiting costs the pod a second, because the scheduler checks its volumes once per second while they are being
//! made: so the first is the default. With several nodes its volumes would all be on the first, and the second is the
//! default.

use hangar_plan::hosted_control_plane::addons::{cluster_role, cluster_role_binding, subject_user};
use hangar_plan::pieces::{pairs, rule};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::AddonOptions;
use super::pod::value;
use crate::provisioner::PROVISIONER;

/// Volumes are made when they are claimed. The default class of one node.
pub const IMMEDIATE_CLASS: &str = "directory";

/// Volumes are made when a pod that uses them was given a node. The default class of several nodes.
pub const WAITING_CLASS: &str = "directory-first-consumer";

/// The user that the provisioner's certificate names.
pub const PROVISIONER_USER: &str = "hangar:directory-provisioner";

pub(super) fn objects(options: &AddonOptions) -> Vec<Value> {
    let rules = vec![
        rule(&[""], &["persistentvolumeclaims"], &["list", "watch"]),
        rule(&[""], &["persistentvolumes"], &["list", "watch", "create", "patch", "delete"]),
        rule(&["storage.k8s.io"], &["storageclasses"], &["list", "watch"]),
        rule(&["events.k8s.io"], &["events"], &["create", "patch"]),
    ];
    let user = PROVISIONER_USER;
    vec![
        value(&class(IMMEDIATE_CLASS, "Immediate", options.nodes == 1)),
        value(&class(WAITING_CLASS, "WaitForFirstConsumer", options.nodes > 1)),
        value(&cluster_role(user, rules)),
        value(&cluster_role_binding(user, user, subject_user(user))),
    ]
}

fn class(name: &str, binding: &str, is_default: bool) -> StorageClass {
    let default = is_default.to_string();
    StorageClass {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            annotations: Some(pairs([("storageclass.kubernetes.io/is-default-class", &default)])),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some(binding.to_owned()),
        allow_volume_expansion: Some(false),
        ..StorageClass::default()
    }
}

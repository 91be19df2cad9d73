//! The storage classes of our own [`crate::provisioner`], and the rights it has.
//!
//! The default class binds at once. With one node there is nothing to wait for, and a class that waits for the first
//! pod costs that pod a second: the scheduler looks at its volumes once per second while they are being made. That
//! class is there too, for manifests that need to see its behaviour.

use hangar_plan::hosted_control_plane::addons::{cluster_role, cluster_role_binding, subject_user};
use serde_json::{Value, json};

use super::pod;
use crate::provisioner::PROVISIONER;

/// The default class: volumes are made when they are claimed.
pub const DEFAULT_CLASS: &str = "directory";

/// Volumes are made when a pod that uses them was given a node.
pub const WAITING_CLASS: &str = "directory-first-consumer";

/// The user that the provisioner's certificate names.
pub const PROVISIONER_USER: &str = "hangar:directory-provisioner";

pub(super) fn objects() -> Vec<Value> {
    let rules = json!([
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list", "watch"]},
        {
            "apiGroups": [""],
            "resources": ["persistentvolumes"],
            "verbs": ["list", "watch", "create", "patch", "delete"],
        },
        {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["list", "watch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]);
    let mut objects =
        vec![class(DEFAULT_CLASS, "Immediate", true), class(WAITING_CLASS, "WaitForFirstConsumer", false)];
    objects.extend(pod::values(vec![
        cluster_role(PROVISIONER_USER, &rules),
        cluster_role_binding(PROVISIONER_USER, PROVISIONER_USER, &[subject_user(PROVISIONER_USER)]),
    ]));
    objects
}

fn class(name: &str, binding: &str, is_default: bool) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": name,
            "annotations": {"storageclass.kubernetes.io/is-default-class": is_default.to_string()},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
        "allowVolumeExpansion": false,
    })
}

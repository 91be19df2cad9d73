//! Plans the roles and bindings that nodes need to join a tenant and stay, with the names that kubeadm uses.

use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};
use kube::core::DynamicObject;

use super::epoch::Epoch;
use super::kubeconfigs::administrator;
use super::observed::ObjectIdentity;
use super::rights::{cluster_role, cluster_role_binding, role, role_binding, subject_group, subject_user};
use crate::flow::dynamic;
use crate::pieces::{only, rule, texts};

/// Nodes that join with a bootstrap token.
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";
/// Who collects metrics, its role and their binding.
pub(super) const METRICS: &str = "hangar:metrics";
/// Nodes that have joined.
const NODES: &str = "system:nodes";

pub(super) fn objects(Epoch::One: Epoch) -> Vec<DynamicObject> {
    let approval = "system:certificates.k8s.io:certificatesigningrequests";
    let mut objects = vec![
        // Logs and exec: the API server's certificate for kubelets has no group.
        bound(
            "kubeadm:apiserver-kubelet-client",
            "system:kubelet-api-admin",
            subject_user("kube-apiserver-kubelet-client"),
        ),
        bound("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", subject_group(JOINING)),
        bound(
            "kubeadm:node-autoapprove-bootstrap",
            &format!("{approval}:nodeclient"),
            subject_group(JOINING),
        ),
        // A node renews its own certificate, not any node's.
        bound(
            "kubeadm:node-autoapprove-certificate-rotation",
            &format!("{approval}:selfnodeclient"),
            subject_group(NODES),
        ),
        dynamic(&cluster_role("kubeadm:get-nodes", vec![rule(&[""], &["nodes"], &["get"])])),
        bound("kubeadm:get-nodes", "kubeadm:get-nodes", subject_group(JOINING)),
        // The controller manager and the scheduler ask the API server about it too.
        dynamic(&cluster_role(METRICS, vec![metrics()])),
        bound(METRICS, METRICS, subject_user(METRICS)),
    ];
    let both = || vec![subject_group(JOINING), subject_group(NODES)];
    for (namespace, name, config_map, subjects) in [
        (
            "kube-public",
            "kubeadm:bootstrap-signer-clusterinfo",
            "cluster-info",
            vec![subject_user("system:anonymous")],
        ),
        ("kube-system", "kubeadm:nodes-kubeadm-config", "kubeadm-config", both()),
        ("kube-system", "kubeadm:kubelet-config", "kubelet-config", both()),
    ] {
        let reading = only(rule(&[""], &["configmaps"], &["get"]), [config_map.to_owned()]);
        objects.push(dynamic(&role(namespace, name, vec![reading])));
        objects.push(dynamic(&role_binding(namespace, name, subjects)));
    }
    objects
}

/// Numbers, and nothing that they are about.
fn metrics() -> PolicyRule {
    PolicyRule {
        non_resource_urls: Some(texts(&["/metrics", "/metrics/slis"])),
        verbs: texts(&["get"]),
        ..PolicyRule::default()
    }
}

/// The administrator's kubeconfig: its user, and no group, so that another serial revokes it.
pub(super) fn administration(Epoch::One: Epoch, serial: &str) -> DynamicObject {
    bound("hangar:administrator", "cluster-admin", subject_user(&administrator(serial)))
}

/// The group that kubeadm gives administrators, which cannot be taken from a kubeconfig once it has it.
pub(super) fn leftover() -> ObjectIdentity {
    ObjectIdentity::of(&bound(
        "kubeadm:cluster-admins",
        "cluster-admin",
        subject_group("kubeadm:cluster-admins"),
    ))
}

fn bound(name: &str, role: &str, subject: Subject) -> DynamicObject {
    dynamic(&cluster_role_binding(name, role, subject))
}

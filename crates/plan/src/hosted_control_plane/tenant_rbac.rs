//! Who may do what in the tenant for nodes to join and stay: the names and rights that kubeadm knows.

use kube::core::DynamicObject;
use serde_json::json;

use super::epoch::Epoch;
use super::kubeconfigs::ADMINISTRATORS;
use super::rights::{cluster_role, cluster_role_binding, role, role_binding, subject_group, subject_user};

/// Nodes that join with a bootstrap token.
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";
/// Nodes that have joined.
const NODES: &str = "system:nodes";

pub(super) fn objects(Epoch::One: Epoch) -> Vec<DynamicObject> {
    let joining = [subject_group(JOINING)];
    let both = [subject_group(JOINING), subject_group(NODES)];
    let reading = |name: &str| json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]}]);
    let approval = "system:certificates.k8s.io:certificatesigningrequests";
    vec![
        cluster_role_binding("kubeadm:cluster-admins", "cluster-admin", &[subject_group(ADMINISTRATORS)]),
        // Logs and exec: the API server's certificate for kubelets has no group.
        cluster_role_binding(
            "kubeadm:apiserver-kubelet-client",
            "system:kubelet-api-admin",
            &[subject_user("kube-apiserver-kubelet-client")],
        ),
        cluster_role_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", &joining),
        cluster_role_binding(
            "kubeadm:node-autoapprove-bootstrap",
            &format!("{approval}:nodeclient"),
            &joining,
        ),
        // A node renews its own certificate, not any node's.
        cluster_role_binding(
            "kubeadm:node-autoapprove-certificate-rotation",
            &format!("{approval}:selfnodeclient"),
            &[subject_group(NODES)],
        ),
        cluster_role(
            "kubeadm:get-nodes",
            &json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]),
        ),
        cluster_role_binding("kubeadm:get-nodes", "kubeadm:get-nodes", &joining),
        role("kube-public", "kubeadm:bootstrap-signer-clusterinfo", &reading("cluster-info")),
        role_binding(
            "kube-public",
            "kubeadm:bootstrap-signer-clusterinfo",
            &[subject_user("system:anonymous")],
        ),
        role("kube-system", "kubeadm:nodes-kubeadm-config", &reading("kubeadm-config")),
        role_binding("kube-system", "kubeadm:nodes-kubeadm-config", &both),
        role("kube-system", "kubeadm:kubelet-config", &reading("kubelet-config")),
        role_binding("kube-system", "kubeadm:kubelet-config", &both),
    ]
}

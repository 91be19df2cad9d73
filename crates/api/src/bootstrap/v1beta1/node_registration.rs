//! How a machine registers as a node.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::image::ImagePullPolicy;
use crate::bootstrap::taint::Taint;

/// How a machine registers as a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRegistration {
    /// Socket of the container runtime; found by kubeadm when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub cri_socket: Option<String>,
    /// Names of kubeadm checks whose failure is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 512)))]
    pub ignore_preflight_errors: Option<Vec<String>>,
    /// When kubeadm pulls images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Whether kubeadm pulls images one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_serial: Option<bool>,
    /// More flags for the kubelet, without leading dashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_extra_args: Option<BTreeMap<String, String>>,
    /// Name of the node. Cloud-init templates such as `{{ local_hostname }}` are left for the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Taints of the node. An empty list means none, an absent one the default for the machine's role.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub taints: Option<Vec<Taint>>,
}

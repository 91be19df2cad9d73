//! How a machine registers as a node.

use super::arg::{Arg, unique_names};
use crate::bootstrap::image::ImagePullPolicy;
use crate::bootstrap::taint::Taint;
use hangar_wire::wire;

/// How a machine registers as a node.
#[wire]
pub struct NodeRegistration {
    /// Socket of the container runtime; found by kubeadm when empty.
    #[schemars(length(min = 1, max = 512))]
    pub cri_socket: Option<String>,
    /// Names of kubeadm checks whose failure is ignored.
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub ignore_preflight_errors: Option<Vec<String>>,
    /// When kubeadm pulls images.
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Whether kubeadm pulls images one after the other.
    pub image_pull_serial: Option<bool>,
    /// More flags for the kubelet, without leading dashes.
    #[schemars(length(min = 1, max = 100), transform = unique_names)]
    pub kubelet_extra_args: Option<Vec<Arg>>,
    /// Name of the node. Cloud-init templates such as `{{ local_hostname }}` are left for the machine.
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Taints of the node. An empty list means none, an absent one the default for the machine's role.
    #[schemars(length(min = 0, max = 100))]
    pub taints: Option<Vec<Taint>>,
}

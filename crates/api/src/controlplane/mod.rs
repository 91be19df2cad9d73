//! `controlplane.cluster.x-k8s.io`: control planes that run as pods.
//!
//! `HostedControlPlane` keeps every field of the existing v1alpha1 API and adds optional ones. It implements both
//! versions of the control plane contract at once, because their status fields do not collide.

pub mod v1alpha1;

use kube::CustomResourceExt;

use crate::crd::Kind;

/// The clusterctl provider these kinds belong to.
pub const PROVIDER: &str = "control-plane-hangar";

/// The kinds of this group, for CRD generation.
pub fn kinds() -> Vec<Kind> {
    [v1alpha1::HostedControlPlane::crd(), v1alpha1::HostedControlPlaneTemplate::crd()]
        .into_iter()
        .map(|definition| Kind {
            versions: vec![definition],
            stored: "v1alpha1",
            contracts: &[("v1beta1", "v1alpha1"), ("v1beta2", "v1alpha1")],
            provider: PROVIDER,
        })
        .collect()
}

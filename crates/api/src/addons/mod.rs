//! `addons.cluster.x-k8s.io`: manifests that are applied to clusters.

#![allow(clippy::duplicated_attributes, reason = "each printer column names its type")]

mod convert;
mod resource;
pub mod v1beta1;
pub mod v1beta2;

pub(crate) use convert::CONVERTERS;
use kube::CustomResourceExt;

use crate::crd::{Kind, absent_spec};

pub use resource::{ResourceBinding, ResourceKind, ResourceRef, ResourceSetBinding, Strategy};

const CONTRACTS: &[(&str, &str)] = &[("v1beta1", "v1beta1"), ("v1beta2", "v1beta2")];
const PROVIDER: &str = "cluster-api";

/// The kinds of this group, for CRD generation.
pub fn kinds() -> Vec<Kind> {
    let kind = |older, newer| Kind {
        versions: vec![absent_spec::allow(older), newer],
        stored: "v1beta2",
        contracts: CONTRACTS,
        provider: PROVIDER,
    };
    vec![
        kind(v1beta1::ClusterResourceSet::crd(), v1beta2::ClusterResourceSet::crd()),
        kind(v1beta1::ClusterResourceSetBinding::crd(), v1beta2::ClusterResourceSetBinding::crd()),
    ]
}

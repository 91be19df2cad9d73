//! Conversion of `ClusterResourceSetBinding`.

use crate::addons::{v1beta1, v1beta2};
use crate::conversion::{Context, Convert, NoStatus};

/// Converts `ClusterResourceSetBindings`.
pub(super) struct ClusterResourceSetBindingConversion;

impl Convert for ClusterResourceSetBindingConversion {
    const GROUP: &'static str = "addons.cluster.x-k8s.io";
    const KIND: &'static str = "ClusterResourceSetBinding";
    type SpokeSpec = v1beta1::ClusterResourceSetBindingSpec;
    type SpokeStatus = NoStatus;
    type HubSpec = v1beta2::ClusterResourceSetBindingSpec;
    type HubStatus = NoStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        let v1beta1::ClusterResourceSetBindingSpec { bindings, cluster_name } = spec;
        v1beta2::ClusterResourceSetBindingSpec { bindings, cluster_name: cluster_name.unwrap_or_default() }
    }

    fn spec_down(spec: Self::HubSpec, _: &Context<'_>) -> Self::SpokeSpec {
        let v1beta2::ClusterResourceSetBindingSpec { bindings, cluster_name } = spec;
        v1beta1::ClusterResourceSetBindingSpec {
            bindings,
            cluster_name: (!cluster_name.is_empty()).then_some(cluster_name),
        }
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        status
    }

    fn status_down(status: Self::HubStatus, _: &Context<'_>) -> Self::SpokeStatus {
        status
    }
}

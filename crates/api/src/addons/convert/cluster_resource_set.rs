//! Conversion of `ClusterResourceSet`.

use crate::addons::v1beta1::{self, ClusterResourceSetV1Beta2Status};
use crate::addons::v1beta2::{
    self, ClusterResourceSetDeprecatedStatus, ClusterResourceSetV1Beta1DeprecatedStatus,
};
use crate::conversion::{Context, Convert};

/// Converts `ClusterResourceSets`.
pub(super) struct ClusterResourceSetConversion;

impl Convert for ClusterResourceSetConversion {
    const GROUP: &'static str = "addons.cluster.x-k8s.io";
    const KIND: &'static str = "ClusterResourceSet";
    type SpokeSpec = v1beta1::ClusterResourceSetSpec;
    type SpokeStatus = v1beta1::ClusterResourceSetStatus;
    type HubSpec = v1beta2::ClusterResourceSetSpec;
    type HubStatus = v1beta2::ClusterResourceSetStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        let v1beta1::ClusterResourceSetSpec { cluster_selector, resources, strategy } = spec;
        v1beta2::ClusterResourceSetSpec {
            cluster_selector,
            resources: resources.unwrap_or_default(),
            strategy,
        }
    }

    fn spec_down(spec: Self::HubSpec, _: &Context<'_>) -> Self::SpokeSpec {
        let v1beta2::ClusterResourceSetSpec { cluster_selector, resources, strategy } = spec;
        v1beta1::ClusterResourceSetSpec {
            cluster_selector,
            resources: (!resources.is_empty()).then_some(resources),
            strategy,
        }
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        let v1beta1::ClusterResourceSetStatus { conditions: older, observed_generation, v1beta2 } = status;
        let ClusterResourceSetV1Beta2Status { conditions } = v1beta2.unwrap_or_default();
        v1beta2::ClusterResourceSetStatus {
            conditions,
            // The older version writes 0 for a generation that was never seen; the newer one refuses it.
            observed_generation: observed_generation.filter(|generation| *generation > 0),
            deprecated: older.map(|conditions| ClusterResourceSetDeprecatedStatus {
                v1beta1: Some(ClusterResourceSetV1Beta1DeprecatedStatus { conditions: Some(conditions) }),
            }),
        }
    }

    fn status_down(status: Self::HubStatus, _: &Context<'_>) -> Self::SpokeStatus {
        let v1beta2::ClusterResourceSetStatus { conditions, observed_generation, deprecated } = status;
        let ClusterResourceSetDeprecatedStatus { v1beta1: older } = deprecated.unwrap_or_default();
        let ClusterResourceSetV1Beta1DeprecatedStatus { conditions: older } = older.unwrap_or_default();
        v1beta1::ClusterResourceSetStatus {
            conditions: older,
            observed_generation,
            v1beta2: conditions
                .map(|conditions| ClusterResourceSetV1Beta2Status { conditions: Some(conditions) }),
        }
    }
}

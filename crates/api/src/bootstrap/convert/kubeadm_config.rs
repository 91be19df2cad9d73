//! Conversion of `KubeadmConfig`.

use super::spec;
use crate::bootstrap::v1beta1::{self, KubeadmConfigV1Beta2Status};
use crate::bootstrap::v1beta2::{
    self, KubeadmConfigDeprecatedStatus, KubeadmConfigInitializationStatus,
    KubeadmConfigV1Beta1DeprecatedStatus,
};
use crate::conversion::absence::set;
use crate::conversion::{Context, Convert};

/// Converts `KubeadmConfigs`.
pub(super) struct KubeadmConfigConversion;

impl Convert for KubeadmConfigConversion {
    const GROUP: &'static str = "bootstrap.cluster.x-k8s.io";
    const KIND: &'static str = "KubeadmConfig";
    type SpokeSpec = v1beta1::KubeadmConfigSpec;
    type SpokeStatus = v1beta1::KubeadmConfigStatus;
    type HubSpec = v1beta2::KubeadmConfigSpec;
    type HubStatus = v1beta2::KubeadmConfigStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        spec::up(spec)
    }

    fn spec_down(spec: Self::HubSpec, _: &Context<'_>) -> Self::SpokeSpec {
        spec::down(spec)
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        let v1beta1::KubeadmConfigStatus {
            conditions,
            data_secret_name,
            failure_message,
            failure_reason,
            observed_generation,
            ready,
            v1beta2,
        } = status;
        let KubeadmConfigV1Beta2Status { conditions: newer } = v1beta2.unwrap_or_default();
        let older = set(KubeadmConfigV1Beta1DeprecatedStatus { conditions, failure_message, failure_reason });
        v1beta2::KubeadmConfigStatus {
            conditions: newer,
            data_secret_name,
            // The older version writes 0 for a generation that was never seen; the newer one refuses it.
            observed_generation: observed_generation.filter(|generation| *generation > 0),
            deprecated: older.map(|older| KubeadmConfigDeprecatedStatus { v1beta1: Some(older) }),
            initialization: set(KubeadmConfigInitializationStatus { data_secret_created: ready }),
        }
    }

    fn status_down(status: Self::HubStatus, _: &Context<'_>) -> Self::SpokeStatus {
        let v1beta2::KubeadmConfigStatus {
            conditions: newer,
            data_secret_name,
            observed_generation,
            deprecated,
            initialization,
        } = status;
        let KubeadmConfigDeprecatedStatus { v1beta1: older } = deprecated.unwrap_or_default();
        let KubeadmConfigV1Beta1DeprecatedStatus { conditions, failure_message, failure_reason } =
            older.unwrap_or_default();
        let KubeadmConfigInitializationStatus { data_secret_created } = initialization.unwrap_or_default();
        v1beta1::KubeadmConfigStatus {
            conditions,
            data_secret_name,
            failure_message,
            failure_reason,
            observed_generation,
            ready: data_secret_created,
            v1beta2: set(KubeadmConfigV1Beta2Status { conditions: newer }),
        }
    }
}

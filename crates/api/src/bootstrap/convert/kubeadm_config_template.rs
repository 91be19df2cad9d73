//! Conversion of `KubeadmConfigTemplate`.

use super::spec;
use crate::bootstrap::{v1beta1, v1beta2};
use crate::conversion::absence::set;
use crate::conversion::{Context, Convert, NoStatus};

/// Converts `KubeadmConfigTemplates`.
pub(super) struct KubeadmConfigTemplateConversion;

impl Convert for KubeadmConfigTemplateConversion {
    const GROUP: &'static str = "bootstrap.cluster.x-k8s.io";
    const KIND: &'static str = "KubeadmConfigTemplate";
    type SpokeSpec = v1beta1::KubeadmConfigTemplateSpec;
    type SpokeStatus = NoStatus;
    type HubSpec = v1beta2::KubeadmConfigTemplateSpec;
    type HubStatus = NoStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        let v1beta1::KubeadmConfigTemplateSpec { template } = spec;
        let v1beta1::KubeadmConfigTemplateResource { metadata, spec } = template;
        v1beta2::KubeadmConfigTemplateSpec {
            template: v1beta2::KubeadmConfigTemplateResource {
                metadata: metadata.and_then(set),
                spec: spec.map(spec::up).and_then(set),
            },
        }
    }

    fn spec_down(spec: Self::HubSpec, _: &Context<'_>) -> Self::SpokeSpec {
        let v1beta2::KubeadmConfigTemplateSpec { template } = spec;
        let v1beta2::KubeadmConfigTemplateResource { metadata, spec } = template;
        v1beta1::KubeadmConfigTemplateSpec {
            template: v1beta1::KubeadmConfigTemplateResource {
                metadata: metadata.and_then(set),
                spec: spec.map(spec::down).and_then(set),
            },
        }
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        status
    }

    fn status_down(status: Self::HubStatus, _: &Context<'_>) -> Self::SpokeStatus {
        status
    }
}

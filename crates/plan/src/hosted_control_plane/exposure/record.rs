//! Records how a living control plane is reached: nodes and kubeconfigs use what was published, and cannot be told of
//! another way.
//!
//! Only where people gave a name of their own can the way change under it: they let the name lead elsewhere.

use hangar_api::controlplane::v1alpha1::{ExposureType, HostedControlPlane, HostedControlPlaneSettings};
use serde::{Deserialize, Serialize};

use super::facts::is_host_name;
use crate::admission::FieldError;
use crate::hosted_control_plane::names::WAY_ANNOTATION;

/// How a control plane was reached when its endpoint was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RecordedWay {
    #[serde(rename = "type")]
    pub(crate) type_: ExposureType,
    /// What its names are in, where it gives names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain: Option<String>,
    /// Whether the endpoint is a name that people gave.
    #[serde(default)]
    pub(crate) is_name_given: bool,
}

impl RecordedWay {
    /// What is recorded. Something that cannot be read is an error and not nothing: another endpoint would follow from it.
    pub(crate) fn recorded(control_plane: &HostedControlPlane) -> Result<Option<Self>, FieldError> {
        let annotations = control_plane.metadata.annotations.as_ref();
        let Some(text) = annotations.and_then(|all| all.get(WAY_ANNOTATION)) else { return Ok(None) };
        Self::parse(text).map(Some).ok_or_else(|| {
            let why = "it is Hangar's record of how the API server is reached and must be as it was written";
            FieldError::invalid(format!("metadata.annotations[{WAY_ANNOTATION}]"), text.as_str(), why)
        })
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let read: Option<Self> = serde_json::from_str(text).ok();
        read.filter(|read| read.domain.as_ref().is_none_or(|domain| is_host_name(domain)))
    }

    pub(crate) fn text(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

/// How the API server is reached: as it was recorded, unless people's own name leads there.
pub(crate) fn chosen(recorded: Option<&RecordedWay>, settings: &HostedControlPlaneSettings) -> ExposureType {
    match recorded {
        Some(recorded) if !recorded.is_name_given => recorded.type_,
        _ => asked(settings),
    }
}

/// How the settings ask for it to be reached.
pub(crate) fn asked(settings: &HostedControlPlaneSettings) -> ExposureType {
    let given = settings.exposure.as_ref().and_then(|exposure| exposure.type_);
    given.unwrap_or(if settings.gateway.is_some() {
        ExposureType::Gateway
    } else {
        ExposureType::LoadBalancer
    })
}

//! Records the number of etcd's members once the first quorum was seen.
//!
//! Running pods do not tell how many members there are (a StatefulSet can be scaled, a specification edited) or whether
//! there ever was data, so this is recorded on the control plane. From then on members start with the state `existing`:
//! a member without data joins the others, and refuses to become a new, empty cluster.

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use serde::{Deserialize, Serialize};

use super::names::ETCD_ANNOTATION;
use super::step::{self, Step};
use crate::admission::FieldError;

/// As many members as there may ever be.
pub(super) const MOST_MEMBERS: i32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Membership {
    /// Which cluster of etcd it is of all that this control plane had; in the token that tells them apart.
    pub generation: u32,
    /// How many members it has.
    pub members: i32,
}

impl Membership {
    /// What a control plane begins with.
    pub(super) fn first(members: i32) -> Self {
        Self { generation: 1, members }
    }

    /// What is recorded. Something that cannot be read is an error and not nothing: a new cluster would follow from it.
    pub(super) fn recorded(control_plane: &HostedControlPlane) -> Result<Option<Self>, FieldError> {
        let annotations = control_plane.metadata.annotations.as_ref();
        let Some(text) = annotations.and_then(|annotations| annotations.get(ETCD_ANNOTATION)) else {
            return Ok(None);
        };
        let read: Option<Self> = serde_json::from_str(text).ok();
        let read = read.filter(|read| read.generation > 0 && (1..=MOST_MEMBERS).contains(&read.members));
        read.map(Some).ok_or_else(|| {
            let why = "it is Hangar's record of etcd's members and must be as it was written";
            FieldError::invalid(format!("metadata.annotations[{ETCD_ANNOTATION}]"), text.as_str(), why)
        })
    }

    pub(super) fn record(self) -> Step {
        step::record(ETCD_ANNOTATION, &serde_json::json!(self).to_string())
    }
}

//! Records etcd's members, and the claims of their volumes, once the first quorum was seen.
//!
//! Running pods do not tell how many members there are (a StatefulSet can be scaled, a specification edited) or whether
//! there ever was data, so this is recorded on the control plane. From then on nothing is bootstrapped: a member starts
//! with the data it had, or not at all.
//!
//! The identity is part of the record, and the number of members is that of the claims: a record that somebody edited
//! contradicts itself or what it stands beside, and is then not believed.

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use serde::{Deserialize, Serialize};

use super::etcd::quorum;
use super::names::{ETCD_ANNOTATION, IDENTITY_ANNOTATION};
use super::step::{self, Step};
use crate::admission::FieldError;

/// As many members as there may ever be.
pub const MOST_MEMBERS: i32 = 5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Membership {
    /// Which cluster of etcd it is of all that this control plane had; in the token that tells them apart.
    pub generation: u32,
    /// How many members it has.
    pub members: i32,
    /// What its objects are named after.
    #[serde(default)]
    pub identity: Option<String>,
    /// The uids of the claims of its volumes, in the order of its members. Empty ones are of members that lost their data
    /// when another one went on without them: they do not belong to etcd until they have joined it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// The directory of its data below the volume, where it was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The member that joins, without data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joining: Option<Joining>,
    /// The uids of claims of members that were removed; they are deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<String>,
    /// How many members API servers know while the number changes: they are replaced once, at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<i32>,
}

/// A member that joins: in the place of one that lost its data, or in addition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Joining {
    pub ordinal: i32,
    /// The uid of the claim that it may begin in. The consent is to one claim: if it named the member, it would also let
    /// the member begin when it is lost once more, under the name of one that had voted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The uid of the pod that was there then, and that cannot know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

impl Membership {
    /// What a control plane begins with.
    pub(super) fn first(members: i32) -> Self {
        Self {
            generation: 1,
            members,
            identity: None,
            claims: Vec::new(),
            data: None,
            joining: None,
            leaving: Vec::new(),
            announced: None,
        }
    }

    /// What is recorded. Something that cannot be read is an error and not nothing: a new cluster would follow from it.
    pub(super) fn recorded(control_plane: &HostedControlPlane) -> Result<Option<Self>, FieldError> {
        let annotations = control_plane.metadata.annotations.as_ref();
        let annotation = |name| annotations.and_then(|annotations| annotations.get(name));
        let path = format!("metadata.annotations[{ETCD_ANNOTATION}]");
        let Some(text) = annotation(ETCD_ANNOTATION) else {
            let status = control_plane.status.as_ref();
            return match status.and_then(|status| status.initialized) {
                Some(true) => {
                    Err(FieldError::required(path, "it is Hangar's record of etcd, which has data"))
                }
                _ => Ok(None),
            };
        };
        let read: Option<Self> = serde_json::from_str(text).ok();
        let read = read.filter(|read| {
            let identity = annotation(IDENTITY_ANNOTATION);
            read.generation > 0
                && (1..=MOST_MEMBERS).contains(&read.members)
                && (read.claims.is_empty() || i32::try_from(read.claims.len()) == Ok(read.members))
                && (0..read.members).any(|ordinal| read.has(ordinal))
                && (read.identity.is_none() || read.identity.as_ref() == identity)
                && read.data.as_deref().is_none_or(is_directory)
                && read.pods() <= MOST_MEMBERS
                && read.joining.iter().all(|joining| (0..=read.members).contains(&joining.ordinal))
                && read.announced.is_none_or(|announced| (1..=MOST_MEMBERS).contains(&announced))
        });
        read.map(Some).ok_or_else(|| {
            let why = format!(
                "it is Hangar's record of etcd's members and must be as it was written, and so must {IDENTITY_ANNOTATION}"
            );
            FieldError::invalid(path, text.as_str(), why)
        })
    }

    /// How many pods there are: one for each member, and one for a member that joins them.
    pub(super) fn pods(&self) -> i32 {
        self.joining
            .as_ref()
            .map_or(self.members, |joining| self.members.max(joining.ordinal.saturating_add(1)))
    }

    /// Whether a member belongs to etcd.
    pub(super) fn has(&self, ordinal: i32) -> bool {
        let place = usize::try_from(ordinal).ok();
        let uid = place.and_then(|place| self.claims.get(place));
        (0..self.members).contains(&ordinal) && uid.is_none_or(|uid| !uid.is_empty())
    }

    /// How many members decide: a majority of those that belong to etcd.
    pub(super) fn quorum(&self) -> i32 {
        let absent = (0..self.members).filter(|ordinal| !self.has(*ordinal)).count();
        quorum(self.members - i32::try_from(absent).unwrap_or_default())
    }

    pub(super) fn record(&self) -> Step {
        step::record(ETCD_ANNOTATION, &serde_json::json!(self).to_string())
    }
}

/// Whether it is the directory of a restore: it becomes part of a path.
fn is_directory(name: &str) -> bool {
    name.strip_prefix("data-")
        .is_some_and(|rest| rest.parse::<u32>().is_ok_and(|number| rest == number.to_string()))
}

//! Records what is restored: which backup or whose data, decided once and before anything is changed for it.
//!
//! The record is written before the first pod of the restore, so that all members take the same backup, however often
//! somebody dies in between. It belongs to one generation of etcd, and each restore has a generation of its own: what
//! was restored is the data of that generation, so a restore is finished when etcd's record has it, and cannot begin
//! again.

use hangar_api::controlplane::v1alpha1::{EtcdRestore, HostedControlPlane};
use serde::{Deserialize, Serialize};

use super::super::membership::{MOST_MEMBERS, Membership};
use super::super::names::{IDENTITY_ANNOTATION, RESTORE_ANNOTATION};
use super::super::step::{self, Step};
use crate::admission::FieldError;

/// The word for the newest backup.
pub(super) const LATEST: &str = "latest";

/// A restore, from the decision on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Restoration {
    /// The generation of etcd that has this data.
    pub generation: u32,
    /// What its objects are named after.
    pub identity: String,
    /// How many members it has.
    pub members: i32,
    /// What was asked for.
    pub request: String,
    /// Whose backup it is: namespace and name, as its key in the bucket begins. This and what follows up to the keys is
    /// empty where it is the data of a member.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The id of the backup.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub backup: String,
    /// The URL of the store.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub store: String,
    #[serde(default)]
    pub is_encrypted: bool,
    /// Whether authorities and keys are part of it.
    #[serde(default)]
    pub has_keys: bool,
    /// The member whose data is gone on with, instead of a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survivor: Option<i32>,
    /// The data that is replaced. Nothing in a control plane that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

impl Restoration {
    /// What is recorded. Something that cannot be read is an error and not nothing: another backup would follow from it.
    pub(in super::super) fn recorded(control_plane: &HostedControlPlane) -> Result<Option<Self>, FieldError> {
        let annotations = control_plane.metadata.annotations.as_ref();
        let annotation = |name| annotations.and_then(|annotations| annotations.get(name));
        let Some(text) = annotation(RESTORE_ANNOTATION) else { return Ok(None) };
        let read: Option<Self> = serde_json::from_str(text).ok();
        let read = read.filter(|read| {
            read.generation > 1
                && (1..=MOST_MEMBERS).contains(&read.members)
                && read.is_sourced()
                && Some(&read.identity) == annotation(IDENTITY_ANNOTATION)
        });
        read.map(Some).ok_or_else(|| {
            let path = format!("metadata.annotations[{RESTORE_ANNOTATION}]");
            let why = "it is Hangar's record of what etcd starts from and must be as it was written";
            FieldError::invalid(path, text.as_str(), why)
        })
    }

    pub(super) fn record(&self) -> Step {
        step::record(RESTORE_ANNOTATION, &serde_json::json!(self).to_string())
    }

    /// Whether it says where the data is.
    fn is_sourced(&self) -> bool {
        match self.survivor {
            Some(ordinal) => {
                (0..self.members).contains(&ordinal)
                    && self.replaces.is_some()
                    && [&self.from, &self.backup, &self.store].into_iter().all(String::is_empty)
            }
            None => is_owner(&self.from) && is_id(&self.backup),
        }
    }

    /// How many pods restore: one for each member that gets data.
    pub(super) fn pods(&self) -> i32 {
        if self.survivor.is_some() { 1 } else { self.members }
    }

    /// The number of the first of them.
    pub(super) fn first(&self) -> i32 {
        self.survivor.unwrap_or_default()
    }

    /// The data, for people.
    pub(super) fn data(&self) -> String {
        match self.survivor {
            Some(ordinal) => format!("the data of member {ordinal}"),
            None => format!("backup {} of {}", self.backup, self.from),
        }
    }

    /// The same as a word of a label.
    pub(super) fn word(&self) -> String {
        self.survivor.map_or_else(|| self.backup.clone(), |ordinal| format!("member-{ordinal}"))
    }

    /// The directory of its data, below the volume. Each generation has its own, so that what is replaced stays.
    pub(super) fn directory(&self) -> String {
        format!("data-{}", self.generation)
    }

    /// The record of etcd with which it is finished. Nobody joins the new cluster yet; claims of members that were removed
    /// from an earlier one are still to be deleted. Where one member went on, the others get their data from it.
    pub(super) fn membership(&self, claims: Vec<String>, leaving: Vec<String>) -> Membership {
        Membership {
            generation: self.generation,
            members: self.members,
            identity: Some(self.identity.clone()),
            claims,
            data: Some(self.directory()),
            joining: None,
            leaving,
            announced: None,
        }
    }
}

/// What is asked for, without where it is and without the consent: these may change afterwards.
pub(super) fn request(restore: &EtcdRestore) -> String {
    let EtcdRestore { from, backup, member, before, secret: _, encryption: _, replace: _ } = restore;
    let mut asked = serde_json::json!({"from": from, "backup": backup, "before": before});
    if let Some(member) = member {
        asked["member"] = serde_json::json!(member);
    }
    crate::hash::value(&asked)
}

/// Whether it is an id of a backup: it becomes an argument.
pub(super) fn is_id(text: &str) -> bool {
    let shape = |(index, byte): (usize, u8)| match index {
        8 => byte == b'T',
        15 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 16 && (0..).zip(text.bytes()).all(shape)
}

/// Whether it is a namespace and a name.
fn is_owner(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_name = |part: &str| !part.is_empty() && part.bytes().all(is_fine);
    text.split_once('/').is_some_and(|(namespace, name)| is_name(namespace) && is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_and_an_owner_have_one_shape() {
        assert!(is_id("20261118T194500Z"));
        for wrong in
            ["", "latest", "20261118T194500", "20261118T194500Zx", "../../20261118T19", "2026111８T194500Z"]
        {
            assert!(!is_id(wrong), "{wrong}");
        }
        assert!(is_owner("team/demo.1"));
        for wrong in ["", "team", "team/", "/demo", "team/de/mo", "team/--x y", "Team/demo"] {
            assert!(!is_owner(wrong), "{wrong}");
        }
    }
}

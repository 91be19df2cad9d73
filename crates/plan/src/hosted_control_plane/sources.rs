//! ConfigMaps and Secrets of users that the API server's pods mount: whether they are there, with which keys, and a hash
//! of each key's content. The edge reads them; what is in them is never part of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;

use super::{Observed, audit, mounts};
use crate::flow::Read;

/// Where files of users come from, in the control plane's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceKind {
    ConfigMap,
    Secret,
}

/// An object with files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    pub kind: SourceKind,
    pub name: String,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SourceKind::ConfigMap => "ConfigMap",
            SourceKind::Secret => "Secret",
        };
        write!(formatter, "{kind} {}", self.name)
    }
}

/// What a plan needs of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFacts {
    /// Hashes of the contents by key. A plan shows them only hashed once more, together with that of a random key: a short
    /// password could be guessed from a hash of its own.
    pub keys: BTreeMap<String, String>,
}

/// A file that a field needs.
pub(super) struct Need {
    pub(super) field: String,
    pub(super) source: Source,
    /// Keys that have to be there; all that there are when empty.
    pub(super) keys: Vec<String>,
    /// Whether nothing is missing without it.
    pub(super) is_optional: bool,
}

impl Need {
    /// What is missing, in words with the field. Nothing where all is there, or where that is not known.
    pub(super) fn missing(&self, observed: &Observed) -> Option<String> {
        if self.is_optional {
            return None;
        }
        let (field, source) = (&self.field, &self.source);
        match observed.sources.get(source)? {
            Read::Absent => Some(format!("{field}: {source} does not exist")),
            Read::One(facts) => {
                let key = self.keys.iter().find(|key| !facts.keys.contains_key(*key))?;
                Some(format!("{field}: {source} has no key {key}"))
            }
            Read::Unknown(_) | Read::Many(_) => None,
        }
    }
}

/// The objects that users' settings name.
pub fn sources(settings: &HostedControlPlaneSettings) -> BTreeSet<Source> {
    let all = mounts::needs(settings).into_iter().chain(audit::needs(settings));
    all.map(|need| need.source).collect()
}

/// Whether a source has not been looked for.
pub(super) fn is_unread(observed: &Observed) -> bool {
    let sources = sources(&observed.control_plane.spec.settings);
    sources.iter().any(|source| !observed.sources.contains_key(source))
}

/// What is missing, each with its field.
pub(super) fn missing(observed: &Observed) -> Vec<String> {
    let settings = &observed.control_plane.spec.settings;
    let all = mounts::needs(settings).into_iter().chain(audit::needs(settings));
    all.filter_map(|need| need.missing(observed)).collect()
}

//! Conversion between the served versions of a kind: pure, total and loss-free in both directions.
//!
//! The newest version is the hub; every older one converts to and from it by typed functions (see [`Convert`]). Those
//! functions may drop what the other version cannot express. The engine here makes up for it: after each conversion it
//! converts back, compares the result with the original JSON, and keeps every difference in one annotation of the
//! converted object (see `stash`). The conversion back puts the differences in place again, except where the object was
//! edited meanwhile: the edit wins.
//!
//! The following is property tested over inputs generated from the CRD schemas:
//!
//! - converting and converting back gives the same JSON of the whole object, in both directions, status included;
//! - an edit made in either version survives; a stash never brings back a field that was changed;
//! - only `apiVersion`, `spec`, `status` and the one annotation are touched; an object that loses nothing carries no
//!   annotation;
//! - an object whose kind and version are served never fails to be read. One failure would fail every LIST. To write one
//!   in the older version fails if the stash would not fit into the annotation, rather than lose something.
//!
//! A client that writes the older version and drops the annotation loses what only the newer one can express, because
//! conversion sees one object and not its past.

pub(crate) mod absence;
pub mod api_version;
mod converter;
mod difference;
pub mod go_duration;
mod lenient;
mod registry;
mod stash;
mod versions;

#[cfg(test)]
mod tests;

pub use converter::{Context, Convert, Converter, NoStatus};
pub use registry::converters;
pub use stash::reference_elsewhere;
pub use versions::{NoVersions, VersionLookup};

use std::fmt;

use serde_json::{Map, Value};

use stash::ANNOTATIONS_LIMIT;

/// Why an object cannot be converted. None of these can happen to an object that is stored in a served kind and version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// Not a Kubernetes object at all.
    #[error("not an object with apiVersion and kind")]
    NotAnObject,
    /// The group is part of a kind's identity.
    #[error("{kind} of {from} cannot become {desired}: the groups differ")]
    GroupChange {
        /// The kind.
        kind: String,
        /// `apiVersion` of the object.
        from: String,
        /// The desired `apiVersion`.
        desired: String,
    },
    /// No conversion is known for this kind.
    #[error("no conversion of {kind} in group {group:?}")]
    UnknownKind {
        /// The group.
        group: String,
        /// The kind.
        kind: String,
    },
    /// The kind has no such version.
    #[error("{kind} has no version {version:?} in group {group:?}")]
    UnknownVersion {
        /// The group.
        group: String,
        /// The kind.
        kind: String,
        /// The version that was asked for or found.
        version: String,
    },
    /// It was written in an older version, and what only that version has does not fit into the stash.
    #[error(
        "{object}: what only {} can express needs {size} bytes of annotations, and {ANNOTATIONS_LIMIT} are allowed: write it in {}",
        .object.older, .object.stored
    )]
    TooLarge {
        /// Which one.
        object: Named,
        /// Bytes of all annotations.
        size: usize,
    },
    /// It was read in an older version, which could not hold all of it, and is written back.
    #[error(
        "{object}: {} does not hold all of this object, and what is missing would be lost: write it in {}",
        .object.older, .object.stored
    )]
    Incomplete {
        /// Which one.
        object: Named,
    },
}

/// An object, and the versions of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    kind: &'static str,
    namespace: String,
    name: String,
    older: &'static str,
    stored: &'static str,
}

impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Converts one object to the desired `apiVersion`. The same version in and out is the identity.
pub fn convert(
    object: Value,
    desired_api_version: &str,
    versions: &dyn VersionLookup,
) -> Result<Value, ConversionError> {
    let Value::Object(object) = object else {
        return Err(ConversionError::NotAnObject);
    };
    let text = |field: &str| {
        object.get(field).and_then(Value::as_str).map(str::to_owned).ok_or(ConversionError::NotAnObject)
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    if api_version == desired_api_version {
        return Ok(Value::Object(object));
    }
    let (group, from) = api_version::split(&api_version);
    let (desired_group, to) = api_version::split(desired_api_version);
    if group != desired_group {
        let desired = desired_api_version.to_owned();
        return Err(ConversionError::GroupChange { kind, from: api_version, desired });
    }
    let known = registry::of_kind(group, &kind);
    let Some(first) = known.first() else {
        return Err(ConversionError::UnknownKind { group: group.to_owned(), kind });
    };
    // Two older versions meet in the hub.
    let object =
        if from == first.hub { object } else { spoke(&known, &kind, from)?.to_hub(object, versions)? };
    let object: Map<String, Value> =
        if to == first.hub { object } else { spoke(&known, &kind, to)?.to_spoke(object, versions) };
    Ok(Value::Object(object))
}

fn spoke<'a>(known: &[&'a Converter], kind: &str, version: &str) -> Result<&'a Converter, ConversionError> {
    known.iter().copied().find(|converter| converter.spoke == version).ok_or_else(|| {
        let group = known.first().map_or("", |converter| converter.group).to_owned();
        ConversionError::UnknownVersion { group, kind: kind.to_owned(), version: version.to_owned() }
    })
}

//! The stash: the annotation with the fields that the other API version cannot express.
//!
//! It contains, per API version, the differences that were lost in converting from that version; see `difference`.
//! Converting into a version puts its differences back and drops them, so an object never carries a stash for its own
//! version, and an object that converts without loss carries no annotation at all. Entries for third versions are kept.
//!
//! Each version is tagged with the kind: controllers copy annotations from one kind to another (a `MachineDeployment`'s
//! to its `MachineSets`), and the differences of one kind must not be put into another.
//!
//! # When it does not fit
//!
//! Kubernetes allows 256 KiB for all annotations of an object together. Nothing is cut from a stash that would not fit:
//! the object is refused when it is written in the older version. When it is read in the older version, it must not
//! fail, as one failure would fail every LIST: a note takes the place of the stash, and an object with that note is
//! refused when it is written back.

use super::difference::{Difference, Segment};
use crate::names::STASH_ANNOTATION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What Kubernetes allows for keys and values of all annotations together.
pub(super) const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Says of a kind that its stash did not fit.
const INCOMPLETE: &str =
    "the stash does not fit: this object is incomplete and cannot be written in this version";

/// Differences by the API version (without group) that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stash {
    kind: String,
    by_version: BTreeMap<String, Vec<Difference>>,
    /// There was more than an annotation can hold, and none of it is here.
    pub(super) is_incomplete: bool,
}

/// A stash that does not fit: the bytes of all annotations with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge(pub(super) usize);

impl Stash {
    /// Nothing is stashed for an object of this kind.
    pub(super) fn empty(kind: &str) -> Self {
        Self { kind: kind.to_owned(), by_version: BTreeMap::new(), is_incomplete: false }
    }

    /// Takes the stash out of the metadata of an object of this kind. Text that is no stash counts as none: a user can
    /// write anything into an annotation, and conversion must not fail over it.
    pub(super) fn take(object: &mut Map<String, Value>, kind: &str) -> Self {
        let mut stash = Self::empty(kind);
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return stash;
        };
        let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
            return stash;
        };
        let Some(text) = annotations.remove(STASH_ANNOTATION) else {
            return stash;
        };
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        let text = text.as_str().unwrap_or_default();
        stash.is_incomplete = text == incomplete(kind);
        stash.by_version = read(text, kind);
        stash
    }

    /// Removes and returns the differences of one version.
    pub(super) fn remove(&mut self, version: &str) -> Vec<Difference> {
        self.by_version.remove(version).unwrap_or_default()
    }

    /// Replaces the differences of one version.
    pub(super) fn set(&mut self, version: &str, differences: Vec<Difference>) {
        if differences.is_empty() {
            self.by_version.remove(version);
        } else {
            self.by_version.insert(version.to_owned(), differences);
        }
    }

    /// Writes the stash into an object's metadata, if it fits; writes nothing when it is empty.
    pub(super) fn write(&self, object: &mut Map<String, Value>) -> Result<(), TooLarge> {
        if self.by_version.is_empty() {
            return Ok(());
        }
        let text = self.text();
        let size = annotations_size(object) + STASH_ANNOTATION.len() + text.len();
        if size > ANNOTATIONS_LIMIT {
            return Err(TooLarge(size));
        }
        annotate(object, text);
        Ok(())
    }

    /// Writes instead that it does not fit.
    pub(super) fn write_incomplete(&self, object: &mut Map<String, Value>) {
        annotate(object, incomplete(&self.kind));
    }

    fn text(&self) -> String {
        let tagged: BTreeMap<String, &Vec<Difference>> = self
            .by_version
            .iter()
            .map(|(version, differences)| (format!("{}/{version}", self.kind), differences))
            .collect();
        serde_json::to_string(&tagged).unwrap_or_default()
    }
}

fn incomplete(kind: &str) -> String {
    serde_json::json!({ kind: INCOMPLETE }).to_string()
}

fn annotate(object: &mut Map<String, Value>, text: String) {
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    let Some(annotations) = annotations.as_object_mut() else {
        return;
    };
    annotations.insert(STASH_ANNOTATION.to_owned(), Value::String(text));
}

fn read(text: &str, kind: &str) -> BTreeMap<String, Vec<Difference>> {
    let tagged: BTreeMap<String, Vec<Difference>> = serde_json::from_str(text).unwrap_or_default();
    let of_this_kind = |(tag, differences): (String, Vec<Difference>)| {
        let (tagged_kind, version) = tag.split_once('/')?;
        (tagged_kind == kind).then(|| (version.to_owned(), differences))
    };
    tagged.into_iter().filter_map(of_this_kind).collect()
}

/// The first reference of a stored object that an older version led into another namespace, and that namespace. The
/// stored version has no place for it but the stash.
pub fn reference_elsewhere(kind: &str, metadata: &ObjectMeta) -> Option<(String, String)> {
    let text = metadata.annotations.as_ref()?.get(STASH_ANNOTATION)?;
    let mut differences = read(text, kind).into_values().flatten();
    differences.find_map(|difference| {
        let field = |segment: &Segment| match segment {
            Segment::Field(name) => Some(name.clone()),
            Segment::Index(_) | Segment::Item(_) => None,
        };
        let path: Vec<String> = difference.path.iter().map(field).collect::<Option<_>>()?;
        let is_reference = matches!(&path[..], [first, .., reference, last]
            if first == "spec" && reference.ends_with("Ref") && last == "namespace");
        let namespace = difference.was?.as_str()?.to_owned();
        let is_elsewhere = !namespace.is_empty() && metadata.namespace.as_ref() != Some(&namespace);
        (is_reference && is_elsewhere).then(|| (path.join("."), namespace))
    })
}

/// Bytes of all annotation keys and values, as Kubernetes counts them.
fn annotations_size(object: &Map<String, Value>) -> usize {
    object.get("metadata").and_then(|metadata| metadata.get("annotations")).and_then(Value::as_object).map_or(
        0,
        |annotations| {
            annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn difference(path: &[&str], was: Value) -> Difference {
        Difference {
            path: path.iter().map(|field| Segment::Field((*field).to_owned())).collect(),
            had: None,
            was: Some(was),
        }
    }

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("{value} is no object") };
        map
    }

    #[test]
    fn what_is_written_is_taken_and_leaves_no_trace() {
        let plain = object(json!({"metadata": {"name": "a"}}));
        let mut stash = Stash::empty("K");
        stash.set("v1beta1", vec![difference(&["spec", "x"], json!(null))]);
        let mut holder = plain.clone();
        stash.write(&mut holder).unwrap();
        assert!(holder["metadata"]["annotations"][STASH_ANNOTATION].is_string());
        assert_eq!(Stash::take(&mut holder, "K"), stash);
        assert_eq!(holder, plain);
    }

    #[test]
    fn an_empty_stash_writes_nothing() {
        let mut holder = object(json!({}));
        Stash::empty("K").write(&mut holder).unwrap();
        assert_eq!(holder, object(json!({})));
    }

    #[test]
    fn another_kinds_stash_is_none() {
        let mut stash = Stash::empty("K");
        stash.set("v1beta1", vec![difference(&["spec", "x"], json!(1))]);
        let mut holder = object(json!({"metadata": {"name": "a"}}));
        stash.write(&mut holder).unwrap();
        assert_eq!(Stash::take(&mut holder, "L"), Stash::empty("L"));
        assert_eq!(holder, object(json!({"metadata": {"name": "a"}})));
    }

    #[test]
    fn foreign_text_counts_as_no_stash() {
        for text in
            [json!("banana"), json!("{\"K/v1beta1\":7}"), json!("{\"v1beta1\":[]}"), json!(7), json!("")]
        {
            let mut holder = object(json!({"metadata": {"annotations": {STASH_ANNOTATION: text, "a": "b"}}}));
            assert_eq!(Stash::take(&mut holder, "K"), Stash::empty("K"));
            assert_eq!(holder, object(json!({"metadata": {"annotations": {"a": "b"}}})));
        }
    }

    #[test]
    fn what_does_not_fit_is_said_and_nothing_is_cut() {
        let mut stash = Stash::empty("K");
        stash.set("v1beta1", vec![difference(&["spec", "large"], json!("l".repeat(200_000)))]);
        let plain =
            |length: usize| object(json!({"metadata": {"annotations": {"other": "o".repeat(length)}}}));
        let mut holder = plain(1_000);
        stash.write(&mut holder).unwrap();
        assert_eq!(Stash::take(&mut holder, "K"), stash);

        let mut holder = plain(100_000);
        let Err(TooLarge(size)) = stash.write(&mut holder) else { panic!("it fits") };
        assert!(size > ANNOTATIONS_LIMIT, "{size}");
        assert_eq!(holder, plain(100_000));
        stash.write_incomplete(&mut holder);
        assert!(!Stash::take(&mut holder.clone(), "L").is_incomplete, "of another kind");
        let found = Stash::take(&mut holder, "K");
        assert!(found.is_incomplete && found.by_version.is_empty());
    }
}

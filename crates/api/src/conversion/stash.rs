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
//! Kubernetes allows 256 KiB for all annotations of an object together. A stash that would not fit is cut, in an order
//! that depends on nothing but the entries: first differences in `status`, which controllers write anew, then those in
//! `spec`; within each the largest first. What the two versions share is never affected.

use super::difference::{Difference, Segment};
use crate::names::STASH_ANNOTATION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What Kubernetes allows for keys and values of all annotations together.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Differences by the API version (without group) that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stash {
    kind: String,
    by_version: BTreeMap<String, Vec<Difference>>,
}

impl Stash {
    /// Nothing is stashed for an object of this kind.
    pub(super) fn empty(kind: &str) -> Self {
        Self { kind: kind.to_owned(), by_version: BTreeMap::new() }
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
        stash.by_version = text.as_str().map(|text| read(text, kind)).unwrap_or_default();
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

    /// Writes the stash into an object's metadata, cut to what fits; writes nothing when it is empty.
    pub(super) fn write(mut self, object: &mut Map<String, Value>) {
        let taken = annotations_size(object) + STASH_ANNOTATION.len();
        self.cut(ANNOTATIONS_LIMIT.saturating_sub(taken));
        if self.by_version.is_empty() {
            return;
        }
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
        annotations.insert(STASH_ANNOTATION.to_owned(), Value::String(self.text()));
    }

    fn text(&self) -> String {
        let tagged: BTreeMap<String, &Vec<Difference>> = self
            .by_version
            .iter()
            .map(|(version, differences)| (format!("{}/{version}", self.kind), differences))
            .collect();
        serde_json::to_string(&tagged).unwrap_or_default()
    }

    /// Drops entries, least valuable first, until the text fits.
    fn cut(&mut self, room: usize) {
        let mut size = self.text().len();
        if size <= room {
            return;
        }
        let mut ranked: Vec<(bool, usize, String, Vec<Segment>)> = Vec::new();
        for (version, differences) in &self.by_version {
            for difference in differences {
                let length = serde_json::to_string(difference).map_or(0, |text| text.len());
                let in_status = difference.path.first() == Some(&Segment::Field("status".to_owned()));
                ranked.push((in_status, length, version.clone(), difference.path.clone()));
            }
        }
        ranked.sort();
        let mut dropped = BTreeSet::new();
        while size > room {
            let Some((_, length, version, path)) = ranked.pop() else {
                break;
            };
            size = size.saturating_sub(length);
            dropped.insert((version, path));
        }
        for (version, differences) in std::mem::take(&mut self.by_version) {
            let kept = differences
                .into_iter()
                .filter(|difference| !dropped.contains(&(version.clone(), difference.path.clone())));
            self.set(&version, kept.collect());
        }
    }
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
        stash.clone().write(&mut holder);
        assert!(holder["metadata"]["annotations"][STASH_ANNOTATION].is_string());
        assert_eq!(Stash::take(&mut holder, "K"), stash);
        assert_eq!(holder, plain);
    }

    #[test]
    fn an_empty_stash_writes_nothing() {
        let mut holder = object(json!({}));
        Stash::empty("K").write(&mut holder);
        assert_eq!(holder, object(json!({})));
    }

    #[test]
    fn another_kinds_stash_is_none() {
        let mut stash = Stash::empty("K");
        stash.set("v1beta1", vec![difference(&["spec", "x"], json!(1))]);
        let mut holder = object(json!({"metadata": {"name": "a"}}));
        stash.write(&mut holder);
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
    fn too_much_is_cut_status_first_then_the_largest() {
        let mut stash = Stash::empty("K");
        let small = difference(&["spec", "small"], json!("s"));
        stash.set(
            "v1beta1",
            vec![
                difference(&["spec", "large"], json!("l".repeat(200_000))),
                small.clone(),
                difference(&["status", "medium"], json!("m".repeat(100_000))),
            ],
        );
        let others = "o".repeat(1_000);
        let mut holder = object(json!({"metadata": {"annotations": {"other": others.clone()}}}));
        stash.clone().write(&mut holder);
        let mut kept = Stash::take(&mut holder.clone(), "K");
        assert_eq!(kept.remove("v1beta1").len(), 2, "the status entry goes, although it is smaller");
        assert!(annotations_size(&holder) <= ANNOTATIONS_LIMIT);

        let mut holder = object(json!({"metadata": {"annotations": {"other": "o".repeat(100_000)}}}));
        stash.write(&mut holder);
        assert_eq!(Stash::take(&mut holder, "K").remove("v1beta1"), [small]);
    }
}

//! Tests of the engine, with a made-up kind: one field renamed, one only in the older version, one only in the newer.

use super::converter::{Context, Convert, Converter};
use super::{ConversionError, NoStatus, NoVersions, VersionLookup, convert};
use crate::names::STASH_ANNOTATION;
use crate::reference::{ContractVersionedObjectReference, ObjectReference};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct OldSpec {
    size: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_only: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<ObjectReference>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct NewSpec {
    length: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_only: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<ContractVersionedObjectReference>,
}

enum Ruler {}

impl Convert for Ruler {
    const GROUP: &'static str = "example.org";
    const KIND: &'static str = "Ruler";
    const SPOKE: &'static str = "v1";
    const HUB: &'static str = "v2";
    type SpokeSpec = OldSpec;
    type SpokeStatus = NoStatus;
    type HubSpec = NewSpec;
    type HubStatus = NoStatus;

    fn spec_up(spec: OldSpec) -> NewSpec {
        let OldSpec { size, old_only: _, owner } = spec;
        NewSpec { length: size, new_only: None, owner: owner.map(ObjectReference::up) }
    }
    fn status_up(status: NoStatus) -> NoStatus {
        status
    }
    fn spec_down(spec: NewSpec, context: &Context<'_>) -> OldSpec {
        let NewSpec { length, new_only: _, owner } = spec;
        OldSpec { size: length, old_only: None, owner: owner.map(|owner| owner.down(context)) }
    }
    fn status_down(status: NoStatus, _context: &Context<'_>) -> NoStatus {
        status
    }
}

const RULER: Converter = Converter::of::<Ruler>();

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value} is no object") };
    map
}

fn up(value: &Value, versions: &dyn VersionLookup) -> Value {
    Value::Object(RULER.to_hub(map(value.clone()), versions).unwrap())
}

fn down(value: &Value, versions: &dyn VersionLookup) -> Value {
    Value::Object(RULER.to_spoke(map(value.clone()), versions))
}

fn old(spec: &Value) -> Value {
    json!({ "apiVersion": "example.org/v1", "kind": "Ruler", "metadata": { "name": "a", "namespace": "n" }, "spec": spec })
}

fn new(spec: &Value) -> Value {
    json!({ "apiVersion": "example.org/v2", "kind": "Ruler", "metadata": { "name": "a", "namespace": "n" }, "spec": spec })
}

/// The version of every kind of `g.org`, if it is known.
#[derive(Clone, Copy)]
struct Known(Option<&'static str>);

impl VersionLookup for Known {
    fn version(&self, group: &str, _kind: &str) -> Option<String> {
        self.0.filter(|_| group == "g.org").map(str::to_owned)
    }
}

fn knows(version: &'static str) -> Known {
    Known(Some(version))
}

fn owner(api_version: &str) -> Value {
    json!({ "size": 1, "owner": { "apiVersion": api_version, "kind": "Owner", "name": "o", "namespace": "n" } })
}

#[test]
fn what_both_express_needs_no_annotation() {
    assert_eq!(up(&old(&json!({ "size": 3 })), &NoVersions), new(&json!({ "length": 3 })));
    assert_eq!(down(&new(&json!({ "length": 3 })), &NoVersions), old(&json!({ "size": 3 })));
}

#[test]
fn what_one_cannot_express_waits_in_the_annotation() {
    let original = old(&json!({ "size": 3, "old_only": "x" }));
    let there = up(&original, &NoVersions);
    assert_eq!(there["spec"], json!({ "length": 3 }));
    assert_eq!(
        there["metadata"]["annotations"],
        json!({ STASH_ANNOTATION: r#"{"Ruler/v1":[{"p":["spec","old_only"],"w":"x"}]}"# })
    );
    assert_eq!(down(&there, &NoVersions), original);
}

/// Nothing is lost in silence: reading never fails, and what could lose something cannot be written.
#[test]
fn what_the_annotation_cannot_hold_is_read_and_not_written() {
    let refused = |value: &Value| RULER.to_hub(map(value.clone()), &NoVersions).unwrap_err().to_string();
    let large = "x".repeat(300_000);
    let mut written = old(&json!({ "size": 3, "old_only": large }));
    assert_eq!(
        refused(&written),
        "Ruler n/a: what only v1 can express needs 300087 bytes of annotations, and 262144 are allowed: write it in v2"
    );
    let stored = new(&json!({ "length": 3, "new_only": large }));
    let mut read = down(&stored, &NoVersions);
    assert_eq!(read["spec"], json!({ "size": 3 }));
    read["spec"]["size"] = json!(4);
    assert_eq!(
        refused(&read),
        "Ruler n/a: v1 does not hold all of this object, and what is missing would be lost: write it in v2"
    );
    // Whatever is being deleted can be released.
    for leaving in [&mut written, &mut read] {
        leaving["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
        assert_eq!(up(leaving, &NoVersions)["spec"], json!({ "length": leaving["spec"]["size"] }));
        assert!(up(leaving, &NoVersions)["metadata"].get("annotations").is_none());
    }
}

#[test]
fn an_edit_of_something_else_keeps_the_stash_and_an_edit_of_the_same_drops_it() {
    let mut there = up(&old(&json!({ "size": 2.0, "old_only": "x" })), &NoVersions);
    assert_eq!(there["spec"], json!({ "length": 0 }), "2.0 is no i32: it is set aside");
    assert_eq!(down(&there, &NoVersions)["spec"], json!({ "size": 2.0, "old_only": "x" }));
    there["spec"]["length"] = json!(5);
    assert_eq!(down(&there, &NoVersions)["spec"], json!({ "size": 5, "old_only": "x" }));
}

#[test]
fn a_value_that_cannot_be_read_is_set_aside_alone() {
    let original = old(&json!({ "size": 5_000_000_000_i64, "old_only": ["?"], "unknown": null }));
    let there = up(&original, &NoVersions);
    assert_eq!(there["spec"], json!({ "length": 0 }));
    assert_eq!(down(&there, &NoVersions), original);
    for spec in [json!(null), json!("text"), json!([])] {
        assert_eq!(down(&up(&old(&spec), &NoVersions), &NoVersions), old(&spec));
    }
    let bare = json!({ "apiVersion": "example.org/v1", "kind": "Ruler", "metadata": { "name": "a" } });
    assert_eq!(down(&up(&bare, &NoVersions), &NoVersions), bare);
}

#[test]
fn entries_of_third_versions_are_carried_along() {
    let mut original = old(&json!({ "size": 3, "old_only": "x" }));
    original["metadata"]["annotations"] =
        json!({ STASH_ANNOTATION: r#"{"Ruler/v0":[{"p":["spec","a"],"w":1}]}"# });
    let there = up(&original, &NoVersions);
    let text = there["metadata"]["annotations"][STASH_ANNOTATION].as_str().expect("a stash").to_owned();
    assert!(
        text.contains(r#""Ruler/v0":[{"p":["spec","a"],"w":1}]"#) && text.contains(r#""Ruler/v1":["#),
        "{text}"
    );
    assert_eq!(down(&there, &NoVersions), original);
}

#[test]
fn a_reference_gets_the_version_of_its_contract() {
    let there = new(&json!({ "length": 1, "owner": { "apiGroup": "g.org", "kind": "Owner", "name": "o" } }));
    assert_eq!(down(&there, &knows("v1beta7"))["spec"], owner("g.org/v1beta7"));
    assert_eq!(down(&there, &NoVersions)["spec"], owner("g.org/v1beta1"), "nothing is known");
}

#[test]
fn a_reference_keeps_its_version_when_its_crd_is_missing_or_prefers_another() {
    for before in [Known(None), knows("v1beta5"), knows("v1beta1")] {
        for after in [Known(None), knows("v1alpha1"), knows("v1beta1"), knows("v1beta5")] {
            let there = up(&old(&owner("g.org/v1alpha1")), &before);
            assert_eq!(down(&there, &after)["spec"], owner("g.org/v1alpha1"));
        }
    }
}

#[test]
fn a_reference_that_agrees_with_its_crd_follows_it() {
    let there = up(&old(&owner("g.org/v1alpha1")), &knows("v1alpha1"));
    assert!(there["metadata"].get("annotations").is_none());
    assert_eq!(down(&there, &knows("v1alpha1"))["spec"], owner("g.org/v1alpha1"));
    assert_eq!(down(&there, &knows("v1beta1"))["spec"], owner("g.org/v1beta1"));
}

#[test]
fn a_reference_to_another_kind_does_not_inherit_the_version() {
    let mut there = up(&old(&owner("g.org/v1alpha1")), &NoVersions);
    there["spec"]["owner"]["kind"] = json!("Other");
    assert_eq!(down(&there, &knows("v1beta5"))["spec"]["owner"]["apiVersion"], json!("g.org/v1beta5"));
    assert_eq!(down(&there, &NoVersions)["spec"]["owner"]["apiVersion"], json!("g.org/v1beta1"));
    // Another name of the same kind is still of that version.
    there["spec"]["owner"]["kind"] = json!("Owner");
    there["spec"]["owner"]["name"] = json!("p");
    assert_eq!(down(&there, &knows("v1beta5"))["spec"]["owner"]["apiVersion"], json!("g.org/v1alpha1"));
}

#[test]
fn unknown_versions_need_no_stash_when_they_are_the_usual_ones() {
    assert!(up(&old(&owner("g.org/v1beta1")), &NoVersions)["metadata"].get("annotations").is_none());
    // Here the lookup would answer otherwise, so that the original must be kept.
    let there = up(&old(&owner("g.org/v1beta1")), &knows("v1beta2"));
    assert_eq!(down(&there, &knows("v1beta2"))["spec"], owner("g.org/v1beta1"));
}

#[test]
fn the_same_version_is_the_identity() {
    let object = json!({ "apiVersion": "any.org/v9", "kind": "Any", "status": { "x": 1.0 } });
    assert_eq!(convert(object.clone(), "any.org/v9", &NoVersions), Ok(object));
}

#[test]
fn refusals_name_what_is_wrong() {
    let cluster = json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster" });
    let refusal = |object: &Value, desired: &str| {
        convert(object.clone(), desired, &NoVersions).expect_err("a refusal").to_string()
    };
    assert_eq!(
        refusal(&cluster, "cluster.x-k8s.io/v7"),
        r#"Cluster has no version "v7" in group "cluster.x-k8s.io""#
    );
    assert_eq!(
        refusal(&cluster, "other.org/v1beta2"),
        "Cluster of cluster.x-k8s.io/v1beta1 cannot become other.org/v1beta2: the groups differ"
    );
    let thing = json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Thing" });
    assert_eq!(
        refusal(&thing, "cluster.x-k8s.io/v1beta2"),
        r#"no conversion of Thing in group "cluster.x-k8s.io""#
    );
    for broken in [json!(7), json!({}), json!({ "apiVersion": "v1" })] {
        assert_eq!(convert(broken, "v1", &NoVersions), Err(ConversionError::NotAnObject));
    }
}

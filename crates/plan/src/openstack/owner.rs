//! Owner ids, and the texts that carry them in a cloud. A test pins these texts, because another text would orphan what
//! exists.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use crate::flow::{StepId, Write};

/// On an object of ours: the id that everything made for it in a cloud carries.
pub const OWNER_ID_ANNOTATION: &str = "hangar.cluster.x-k8s.io/owner-id";
/// On an object of ours: the region and the project in which everything is made for it.
pub const PROJECT_ANNOTATION: &str = "hangar.cluster.x-k8s.io/project";
/// In the metadata of a server: the owner id.
pub const OWNER_METADATA_KEY: &str = "hangar-owner-id";

/// The owner id of an object, if it has one.
pub fn owner_id(annotations: Option<&BTreeMap<String, String>>) -> Option<String> {
    annotations?.get(OWNER_ID_ANNOTATION).filter(|id| !id.is_empty()).cloned()
}

/// Where everything is made for an object, if that is recorded.
pub(crate) fn recorded_project(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(PROJECT_ANNOTATION).map(String::as_str).filter(|text| !text.is_empty())
}

/// Records where everything is made for an object, before anything is.
pub(crate) fn record_project(project: &str) -> Write {
    let fields = json!({ "metadata": { "annotations": { PROJECT_ANNOTATION: project } } });
    Write::itself(StepId::new("record", "project", "self"), fields)
}

/// Puts the owner id and the finalizer on the object, together or not at all.
pub(crate) fn claim(metadata: &ObjectMeta, owner_id: &str, finalizer: &str) -> Write {
    let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|present| present == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
    let fields = json!({ "metadata": {
        "annotations": { OWNER_ID_ANNOTATION: owner_id },
        "finalizers": finalizers,
    }});
    Write::itself(StepId::new("claim", "object", "self"), fields)
}

/// Lets the object go.
pub(crate) fn release(metadata: &ObjectMeta, finalizer: &str) -> Write {
    let id = StepId::new("release", "object", "self");
    Write { id, ..Write::remove_finalizer(metadata, finalizer, "") }
}

/// What the description of an object of this owner says. Nothing but the id: names change when objects move.
pub fn mark(owner_id: &str) -> String {
    format!("Made by Hangar for owner {owner_id}")
}

/// Whether a description carries the mark of this owner, alone or after words of the user.
pub fn carries_mark(description: &str, owner_id: &str) -> bool {
    !owner_id.is_empty() && description.ends_with(&mark(owner_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_pinned_and_tell_owners_apart() {
        assert_eq!(mark("a-1"), "Made by Hangar for owner a-1");
        assert!(carries_mark("Made by Hangar for owner a-1", "a-1"));
        assert!(carries_mark("storage net. Made by Hangar for owner a-1", "a-1"));
        assert!(!carries_mark("Made by Hangar for owner a-12", "a-1"));
        assert!(!carries_mark("Made by Hangar for owner ", ""));
    }
}

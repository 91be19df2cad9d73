//! Owner ids and the marks that carry them. Pinned by a test: another text would orphan what exists.

use std::collections::BTreeMap;

/// On an object of ours: the id that everything made for it in a cloud carries.
pub const OWNER_ID_ANNOTATION: &str = "hangar.cluster.x-k8s.io/owner-id";
/// In the metadata of a server: the owner id.
pub const OWNER_METADATA_KEY: &str = "hangar-owner-id";

/// The owner id of an object, if it has one.
pub fn owner_id(annotations: Option<&BTreeMap<String, String>>) -> Option<String> {
    annotations?.get(OWNER_ID_ANNOTATION).filter(|id| !id.is_empty()).cloned()
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

//! The filters that every Neutron kind has.

use serde_json::Value;

/// By what all kinds have. Several fields must all match; empty matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub id: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub project_id: Option<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// With at least one of these tags.
    pub tags_any: Vec<String>,
    /// Without the set of these tags.
    pub not_tags: Vec<String>,
    /// Without any of these tags.
    pub not_tags_any: Vec<String>,
}

impl Filter {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    pub fn described(description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..Self::default() }
    }

    pub(super) fn pairs(&self) -> Pairs {
        let joined = |tags: &[String]| (!tags.is_empty()).then(|| tags.join(","));
        Pairs::default()
            .with("id", self.id.as_ref())
            .with("name", self.name.as_ref())
            .with("description", self.description.as_ref())
            .with("project_id", self.project_id.as_ref())
            .with("tags", joined(&self.tags).as_ref())
            .with("tags-any", joined(&self.tags_any).as_ref())
            .with("not-tags", joined(&self.not_tags).as_ref())
            .with("not-tags-any", joined(&self.not_tags_any).as_ref())
    }
}

/// Keys whose filter means: equal, as text.
const EXACT: &[&str] = &[
    "id",
    "name",
    "description",
    "project_id",
    "network_id",
    "device_id",
    "device_owner",
    "security_group_id",
];

/// Whether an object is one that was asked for.
///
/// Neutron is believed about what it leaves out, not about what it lists: a plugin that does not know a filter ignores
/// it, and a database may compare without regard to case. Another owner's network must not count as ours for that.
pub(super) fn fits(wanted: &[(&'static str, String)], item: &Value) -> bool {
    wanted.iter().all(|(key, value)| match item.get(key) {
        Some(Value::String(found)) if EXACT.contains(key) => found == value,
        Some(Value::Array(found)) if *key == "tags" => {
            value.split(',').all(|tag| found.iter().any(|found| found == tag))
        }
        _ => true,
    })
}

/// A query string in the making.
#[derive(Default)]
pub(super) struct Pairs(pub(super) Vec<(&'static str, String)>);

impl Pairs {
    pub(super) fn with(mut self, key: &'static str, value: Option<&impl ToString>) -> Self {
        self.0.extend(value.map(|value| (key, value.to_string())));
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_that_was_ignored_is_applied_here() {
        let filter = Filter { tags: vec!["a".to_owned(), "b".to_owned()], ..Filter::described("owner 1") };
        let fits = |item| super::fits(&filter.pairs().0, &item);
        assert!(fits(json!({ "id": "x", "description": "owner 1", "tags": ["b", "c", "a"] })));
        assert!(!fits(json!({ "id": "x", "description": "owner 2", "tags": ["b", "a"] })));
        assert!(!fits(json!({ "id": "x", "description": "Owner 1", "tags": ["b", "a"] })));
        assert!(!fits(json!({ "id": "x", "description": "owner 1", "tags": ["b"] })));
        assert!(fits(json!({ "id": "x" })), "a kind without these fields is Neutron's business");
    }
}

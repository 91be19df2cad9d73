//! Flags of components.

use hangar_wire::wire;
use schemars::Schema;
use serde_json::json;

/// A flag of a component.
#[wire]
pub struct Arg {
    /// Name of the flag, without leading dashes. Names must not repeat within a list.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Value of the flag; may be empty.
    #[schemars(length(min = 0, max = 1024))]
    pub value: String,
}

/// Marks a list of flags as keyed, with names that do not repeat.
///
/// The list is keyed by name and value because kubeadm lets a flag repeat; the rule forbids it until all readers of
/// such lists agree on what a repetition means.
pub(super) fn unique_names(schema: &mut Schema) {
    schema.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    schema.insert("x-kubernetes-list-map-keys".to_owned(), json!(["name", "value"]));
    schema.insert(
        "x-kubernetes-validations".to_owned(),
        json!([{
            "message": "names must be unique",
            "rule": "self.all(x, self.exists_one(y, x.name == y.name))",
        }]),
    );
}

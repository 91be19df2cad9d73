//! Metadata that a template gives to the objects made from it.

use std::collections::BTreeMap;

use hangar_wire::wire;

/// Labels and annotations for the objects that are made from a template.
#[wire(lenient)]
pub struct ObjectMeta {
    /// Annotations of the objects.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels of the objects.
    pub labels: Option<BTreeMap<String, String>>,
}

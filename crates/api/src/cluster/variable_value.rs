//! Values of cluster variables: any JSON.

use schemars::{Schema, SchemaGenerator, json_schema};

/// The schema of a value that the class of the cluster describes, not the CRD.
pub(crate) fn schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

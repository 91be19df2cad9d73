//! Makes the CRDs in `deploy/crds` from the Rust types.
//!
//! The derive macros give one CRD per version, in a form that the API server accepts but that is hard to read or diff:
//! `nullable` on each optional field, unsigned formats, floats as bounds, no labels, no conversion. [`all`] alone turns
//! those into what is installed:
//!
//! 1. [`merge`] merges the versions of a kind, oldest first, and marks which is stored and which is deprecated;
//! 2. [`schema`] normalises every schema the same way, so that all fields read the same;
//! 3. [`conversion`] gives kinds with several versions a webhook whose address the installer fills in.
//!
//! Everything is a pure function of the types: same types, same bytes. [`yaml`] writes the files in `deploy/crds`, and
//! a test compares them.

pub(crate) mod absent_spec;
pub mod conversion;
pub mod merge;
pub mod one_of;
pub mod reference;
pub mod schema;
pub mod structural;
pub mod yaml;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use conversion::{CONVERSION_PATH, ConversionTarget, with_conversion};
pub use yaml::{file_name, to_yaml};

/// One kind with all its served versions, as the derive macros give them; the transform in this module turns it into
/// the CRD that is installed.
#[derive(Debug, Clone)]
pub struct Kind {
    /// The served versions, oldest first.
    pub versions: Vec<CustomResourceDefinition>,
    /// Which of them is stored.
    pub stored: &'static str,
    /// Contract labels: (contract, API versions that implement it), such as `("v1beta2", "v1beta1_v1beta2")`.
    pub contracts: &'static [(&'static str, &'static str)],
    /// The clusterctl provider that this kind belongs to, such as `control-plane-hangar`.
    pub provider: &'static str,
}

/// Every kind of every group, in the order in which they are installed.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = crate::cluster::kinds();
    kinds.extend(crate::addons::kinds());
    kinds.extend(crate::bootstrap::kinds());
    kinds.extend(crate::controlplane::kinds());
    kinds.extend(crate::infrastructure::kinds());
    kinds
}

/// Every CRD as it is installed, ordered by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut definitions: Vec<_> = kinds().into_iter().filter_map(definition).collect();
    definitions.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    definitions
}

/// The CRD of one kind as it is installed; nothing for a kind without versions.
pub fn definition(kind: Kind) -> Option<CustomResourceDefinition> {
    let mut merged = merge::merge(kind)?;
    for version in &mut merged.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            schema::normalise_root(root);
        }
    }
    Some(conversion::with_placeholder(merged))
}

/// Whether a CRD serves several versions and so needs the conversion webhook.
pub fn is_converted(definition: &CustomResourceDefinition) -> bool {
    definition.spec.versions.len() > 1
}

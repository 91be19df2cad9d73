//! Reads objects without a `spec`.
//!
//! Upstream does not require a spec whose fields are all optional: a worker that joins with all defaults has none. The
//! derive macro of kube makes it required, so these specs read an absent or null value as the default.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Lets the schema of every version accept objects without a spec, as the types do.
pub(crate) fn allow(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            root.required = None;
        }
    }
    crd
}

/// Implements serde's traits for a spec that derives them with `remote = "Self"`, so that absence means the default.
///
/// serde asks a type whose field is missing to read an option; the derived code reads only what is there.
macro_rules! default_when_absent {
    ($spec:ident) => {
        impl ::serde::Serialize for $spec {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // The derived function, not this one: inherent functions come first.
                Self::serialize(self, serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $spec {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(::serde::Deserialize)]
                struct Given(#[serde(deserialize_with = "derived")] $spec);

                fn derived<'de, D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<$spec, D::Error> {
                    $spec::deserialize(deserializer)
                }

                let given = <Option<Given> as ::serde::Deserialize>::deserialize(deserializer)?;
                Ok(given.map_or_else($spec::default, |Given(spec)| spec))
            }
        }
    };
}

pub(crate) use default_when_absent;

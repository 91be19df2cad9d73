//! References between objects, in the formats of both API versions, and their conversion.
//!
//! The older version names an API version and a namespace. The newer one names only group, kind and name, because the
//! namespace is always the object's own and the reader chooses the API version.

use crate::cluster::pattern;
use crate::conversion::{Context, api_version};
use hangar_wire::wire;
use kube::Resource;

/// A reference to an object.
#[wire]
#[derive(Eq)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ObjectReference {
    /// API version of the object, with its group.
    pub api_version: Option<String>,
    /// Path of a field in the object.
    pub field_path: Option<String>,
    /// Kind of the object.
    pub kind: Option<String>,
    /// Name of the object.
    pub name: Option<String>,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// Resource version of the object.
    pub resource_version: Option<String>,
    /// Unique id of the object.
    pub uid: Option<String>,
}

/// A reference to an object of a provider in the same namespace. The API version is found through the contract labels
/// of the kind's CRD.
#[wire]
#[derive(Eq)]
pub struct ContractVersionedObjectReference {
    /// API group of the object.
    #[schemars(length(min = 1, max = 253))]
    #[schemars(regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub api_group: String,
    /// Kind of the object.
    #[schemars(length(min = 1, max = 63))]
    #[schemars(regex(pattern = pattern::KIND))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    #[schemars(regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
}

/// Whether an API version, of whatever number, and a kind are those of a type.
pub fn is_kind<K: Resource<DynamicType = ()>>(api_version: &str, kind: &str) -> bool {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    kind == K::kind(&()) && group == K::group(&())
}

impl ContractVersionedObjectReference {
    /// Whether it names an object of this type.
    pub fn is<K: Resource<DynamicType = ()>>(&self) -> bool {
        self.kind == K::kind(&()) && self.api_group == K::group(&())
    }
}

/// `None` for the empty string, which the newer version uses for "not given".
fn given(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl ObjectReference {
    /// The reference in the newer shape.
    pub fn up(self) -> ContractVersionedObjectReference {
        // What has no place in the newer shape comes back from the stash.
        let Self { api_version, field_path: _, kind, name, namespace: _, resource_version: _, uid: _ } = self;
        ContractVersionedObjectReference {
            api_group: api_version.map(|text| api_version::split(&text).0.to_owned()).unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            name: name.unwrap_or_default(),
        }
    }
}

impl ContractVersionedObjectReference {
    /// The reference in the older shape, in the namespace of the object that holds it.
    pub fn down(self, context: &Context<'_>) -> ObjectReference {
        let Self { api_group, kind, name } = self;
        if api_group.is_empty() && kind.is_empty() && name.is_empty() {
            return ObjectReference::default();
        }
        ObjectReference {
            api_version: Some(context.api_version(&api_group, &kind)),
            kind: given(kind),
            name: given(name),
            namespace: context.namespace().map(str::to_owned),
            field_path: None,
            resource_version: None,
            uid: None,
        }
    }
}

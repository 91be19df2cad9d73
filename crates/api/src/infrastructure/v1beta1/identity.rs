//! The reference to the credentials for the cloud.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of object holds the credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IdentityType {
    /// A Secret in the namespace of the object that names it.
    #[default]
    Secret,
    /// A cluster-wide identity that several namespaces may use.
    ClusterIdentity,
}

/// Names the credentials: a Secret with a `clouds.yaml`, and the cloud in it.
#[wire]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(!has(self.region) && !has(oldSelf.region)) || self.region == oldSelf.region",
    "message": "region cannot be changed, added or removed: provider ids contain it",
}]))]
pub struct IdentityReference {
    /// Kind of the object that `name` refers to.
    #[serde(rename = "type", default)]
    pub type_: IdentityType,
    /// Name of the Secret or cluster identity.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The entry of `clouds.yaml` to use.
    #[schemars(length(min = 1))]
    pub cloud_name: String,
    /// Region to use instead of the one in `clouds.yaml`. It becomes a part of provider ids.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
}

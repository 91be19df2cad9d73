//! The image a server boots from.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OpenStackId;
use crate::crd::one_of::exactly_one_property;

/// An image, by id, by filter or by an Image object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = exactly_one_property)]
pub enum ImageParam {
    /// UUID of the image.
    Id(OpenStackId),
    /// Properties that match exactly one image.
    Filter(ImageFilter),
    /// An object of the OpenStack resource controller that manages the image. Not supported yet.
    ImageRef(ImageReference),
}

/// Properties by which one image is found; all that are given must match.
#[wire]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct ImageFilter {
    /// Exact name.
    pub name: Option<String>,
    /// The image has all of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags: Vec<String>,
}

/// An Image object in the same namespace.
#[wire]
pub struct ImageReference {
    /// Name of the object.
    pub name: String,
}

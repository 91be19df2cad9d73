//! What can be set on each component: its image, arguments, resources, priority and number.
//!
//! The types are flattened into each other, as the manifests have them: a scalable pod is a pod with `replicas`, a pod
//! is a container with a priority class.

use std::collections::BTreeMap;

use hangar_wire::wire;
use k8s_openapi::api::core::v1::ResourceRequirements;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of an image's name. A part that is given replaces that part of the default image.
#[wire]
#[serde(default)]
pub struct Image {
    /// Registry, such as `registry.example.org`.
    pub registry: Option<String>,
    /// Repository in the registry.
    pub repository: Option<String>,
    /// Tag.
    pub tag: Option<String>,
}

/// When the image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// At every start of the container.
    Always,
    /// When the node does not have it.
    #[default]
    IfNotPresent,
    /// Never.
    Never,
}

/// What can be set on a container.
#[wire]
#[serde(default)]
pub struct Container {
    /// Image to use instead of the default.
    pub image: Option<Image>,
    /// When the image is pulled; `IfNotPresent` when empty.
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Flags of the program, by name without dashes. Those that the control plane sets itself are refused.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Requests and limits of the container. A request that is not given has a default, unless the limit is given alone. In
    /// the management cluster a limit of memory has a default, and a maximum.
    pub resources: Option<ResourceRequirements>,
}

/// What can be set on a pod with one main container.
#[wire]
#[serde(default)]
pub struct Pod {
    /// The container.
    #[serde(flatten)]
    pub container: Container,
    /// Priority class of the pods.
    pub priority_class_name: Option<String>,
}

/// What can be set on a pod that may run several times.
#[wire]
#[serde(default)]
pub struct ScalablePod {
    /// The pod.
    #[serde(flatten)]
    pub pod: Pod,
    /// Number of pods.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
}

//! What can be set on each component: its image, arguments, resources, priority and number.
//!
//! The shapes are flattened into each other, as the manifests have them: a scalable pod is a pod with `replicas`, a pod
//! is a container with a priority class.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of an image's name; each that is given replaces that part of the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// Registry, such as `registry.example.org`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Repository in the registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Tag.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Image to use instead of the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// When the image is pulled; `IfNotPresent` when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Flags of the program, by name without dashes. What the control plane needs to work wins over them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Requests and limits of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// What can be set on a pod with one main container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// The container.
    #[serde(flatten)]
    pub container: Container,
    /// Priority class of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// What can be set on a pod that may run several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalablePod {
    /// The pod.
    #[serde(flatten)]
    pub pod: Pod,
    /// How many pods run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
}

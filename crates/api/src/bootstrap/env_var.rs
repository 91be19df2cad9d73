//! Environment variables of control plane components; both versions have the same types.
//!
//! They have the fields of a container's `env` entry. They are declared here instead of taken from the Kubernetes types
//! because those serialize an absent selector name as `""`, and conversion must not invent values.

use std::borrow::Cow;

use hangar_wire::wire;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// One environment variable, given by value or by reference.
#[wire]
pub struct EnvVar {
    /// Name of the variable.
    pub name: String,
    /// Literal value. `$(NAME)` refers to variables set earlier.
    pub value: Option<String>,
    /// Where the value is read from when `value` is empty.
    pub value_from: Option<EnvVarSource>,
}

/// Source of a variable's value; at most one field is set.
#[wire]
pub struct EnvVarSource {
    /// A key of a `ConfigMap` in the pod's namespace.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub config_map_key_ref: Option<KeySelector>,
    /// A field of the pod itself.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub field_ref: Option<FieldSelector>,
    /// A key of an environment file in one of the pod's volumes.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub file_key_ref: Option<FileKeySelector>,
    /// A resource request or limit of a container.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub resource_field_ref: Option<ResourceFieldSelector>,
    /// A key of a Secret in the pod's namespace.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub secret_key_ref: Option<KeySelector>,
}

/// A key of a named `ConfigMap` or Secret.
#[wire]
pub struct KeySelector {
    /// The key to read.
    pub key: String,
    /// Name of the `ConfigMap` or Secret.
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
    /// Whether the object or its key may be missing.
    pub optional: Option<bool>,
}

/// A field of the pod.
#[wire]
pub struct FieldSelector {
    /// Version of the pod schema that `fieldPath` is written in; v1 when empty.
    pub api_version: Option<String>,
    /// Path of the field, such as `status.podIP`.
    pub field_path: String,
}

/// A key of an environment file in a volume.
#[wire]
pub struct FileKeySelector {
    /// The key to read from the file.
    pub key: String,
    /// Whether the file or its key may be missing.
    #[schemars(extend("default" = false))]
    pub optional: Option<bool>,
    /// Path of the file, relative to the volume's root.
    pub path: String,
    /// Name of the volume that holds the file.
    pub volume_name: String,
}

/// A resource request or limit of a container.
#[wire]
pub struct ResourceFieldSelector {
    /// The container whose resources are read; the container itself when empty.
    pub container_name: Option<String>,
    /// Unit of the output; 1 when empty.
    pub divisor: Option<Divisor>,
    /// The resource to read, such as `limits.cpu`.
    pub resource: String,
}

/// A quantity, written as a number or as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Divisor {
    /// A whole number.
    Number(i64),
    /// A quantity such as `1Mi`.
    Text(String),
}

impl JsonSchema for Divisor {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Divisor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        })
    }
}

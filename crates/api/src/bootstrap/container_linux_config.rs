//! Options for machines that boot with Ignition, in the shape both versions share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Container Linux Config that is merged into the generated one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLinuxConfig {
    /// More configuration, as YAML, merged with the generated configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    pub additional_config: Option<String>,
    /// Refuse a configuration that is parsed with warnings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

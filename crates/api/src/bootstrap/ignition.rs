//! Bootstrap data for machines that boot with Ignition, in the shape both versions share.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::container_linux_config::ContainerLinuxConfig;
use super::newer::refuse_empty;

/// Settings for machines that boot with Ignition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ignition {
    /// A Container Linux Config that is merged into the generated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_linux_config: Option<ContainerLinuxConfig>,
}

/// The bounds of the newer version.
pub(super) fn newer(schema: &mut Schema) {
    refuse_empty(schema, &["", "/properties/containerLinuxConfig"]);
}

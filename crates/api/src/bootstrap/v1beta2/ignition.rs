//! Bootstrap data for machines that boot with Ignition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::container_linux_config::ContainerLinuxConfig;

/// Settings for machines that boot with Ignition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ignition {
    /// A Container Linux Config that is merged into the generated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub container_linux_config: Option<ContainerLinuxConfig>,
}

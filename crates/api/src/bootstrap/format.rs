//! Format of bootstrap data, the same in both versions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of the bootstrap data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A cloud-init configuration.
    CloudConfig,
    /// An Ignition configuration.
    Ignition,
}

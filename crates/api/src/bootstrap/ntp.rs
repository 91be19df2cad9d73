//! Time synchronization of a machine, in the shape both versions share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time synchronization of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ntp {
    /// Whether the time service is turned on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Time servers to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub servers: Option<Vec<String>>,
}

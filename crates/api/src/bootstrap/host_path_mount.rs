//! Host paths mounted into control plane components, in the shape both versions share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path of the machine that is mounted into a component's pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPathMount {
    /// Path on the machine.
    #[schemars(length(min = 1, max = 512))]
    pub host_path: String,
    /// Path inside the pod.
    #[schemars(length(min = 1, max = 512))]
    pub mount_path: String,
    /// Name of the volume in the pod.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// What must exist at `hostPath`, such as `DirectoryOrCreate` or `File`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_type: Option<String>,
    /// Mount the volume read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

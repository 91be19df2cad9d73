//! Host paths mounted into control plane components; both versions have the same type.

use hangar_wire::wire;

/// A path of the machine that is mounted into a component's pod.
#[wire]
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
    /// Type of the file that must exist at `hostPath`, such as `DirectoryOrCreate` or `File`.
    pub path_type: Option<String>,
    /// Mount the volume read-only.
    pub read_only: Option<bool>,
}

//! Files for the API server from a ConfigMap or a Secret.

use hangar_wire::wire;
use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, SecretVolumeSource};

/// A ConfigMap or a Secret, mounted read-only. Unless it is optional it must exist: until then nothing of the API server
/// is changed, and a condition names it.
#[wire]
#[schemars(extend("minProperties" = 2, "maxProperties" = 2, "x-kubernetes-validations" = [{
    "rule": "has(self.configMap) != has(self.secret)",
    "message": "exactly one of configMap and secret is needed",
}]))]
pub struct Mount {
    /// Directory in the container: none that the API server uses itself, and none of another mount.
    #[schemars(length(min = 2, max = 1024), extend("pattern" = "^/"))]
    pub path: String,
    /// A ConfigMap in the control plane's namespace.
    pub config_map: Option<ConfigMapVolumeSource>,
    /// A Secret in the control plane's namespace, but none of the control plane's own.
    pub secret: Option<SecretVolumeSource>,
}

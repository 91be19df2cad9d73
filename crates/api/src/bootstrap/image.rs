//! Images and manifests that kubeadm uses; both versions have the same types.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The image of the DNS add-on.
#[wire]
pub struct Dns {
    /// Registry and path that the image is pulled from.
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Tag of the image.
    #[schemars(length(min = 1, max = 256))]
    pub image_tag: Option<String>,
}

/// Patches that kubeadm applies to the manifests it writes.
#[wire]
pub struct Patches {
    /// Directory on the machine that holds the patch files, named `target[suffix][+patchtype].extension`.
    #[schemars(length(min = 1, max = 512))]
    pub directory: Option<String>,
}

/// When images are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// Always, even if the image is there.
    Always,
    /// Only if the image is missing.
    IfNotPresent,
    /// Never; the image must be there.
    Never,
}

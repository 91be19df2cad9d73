//! Files written to a machine before kubeadm runs; both versions have the same types.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file that the bootstrap data writes to the machine.
#[wire]
pub struct File {
    /// Append to an existing file instead of replacing it.
    pub append: Option<bool>,
    /// Content of the file, in the encoding that `encoding` names.
    #[schemars(length(min = 1, max = 10240))]
    pub content: Option<String>,
    /// Where to read the content from instead of `content`.
    pub content_from: Option<FileSource>,
    /// How the content is encoded; plain text when empty.
    pub encoding: Option<Encoding>,
    /// Owner of the file, such as `root:root`.
    #[schemars(length(min = 1, max = 256))]
    pub owner: Option<String>,
    /// Absolute path on the machine. Paths must not repeat within one configuration.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// Octal mode, such as `0640`.
    #[schemars(length(min = 1, max = 16))]
    pub permissions: Option<String>,
}

/// Where the content of a file comes from.
#[wire]
pub struct FileSource {
    /// A key of a Secret in the namespace of the configuration.
    pub secret: SecretKey,
}

/// A key of a Secret in the namespace of the configuration.
#[wire]
pub struct SecretKey {
    /// The key whose value is used.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How the content of a file is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Encoding {
    /// Base64.
    #[serde(rename = "base64")]
    Base64,
    /// Gzip, as raw bytes.
    #[serde(rename = "gzip")]
    Gzip,
    /// Gzip, then base64.
    #[serde(rename = "gzip+base64")]
    GzipBase64,
}

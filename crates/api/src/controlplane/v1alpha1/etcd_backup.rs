//! When etcd is backed up, and where to.

use hangar_wire::wire;

/// Backups of etcd to an S3 bucket. The bucket decides how long they are kept.
#[wire]
pub struct EtcdBackup {
    /// Five cron fields (lists, ranges, steps and names are understood), or `@hourly`, `@daily`, `@weekly`, `@monthly`.
    #[schemars(length(min = 1, max = 256), extend("pattern" = SCHEDULE_PATTERN))]
    pub schedule: String,
    /// The bucket and its credentials.
    pub secret: EtcdBackupSecret,
}

/// A macro, or five fields of comma separated values, ranges and steps. Whether the numbers make sense is checked at
/// admission: a pattern that did would not be readable.
const SCHEDULE_PATTERN: &str = r"^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?(,(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?)*( +(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?(,(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?)*){4})$";

/// The Secret with the bucket and its credentials, and the names of its keys.
#[wire]
pub struct EtcdBackupSecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Secret: empty, or the control plane's own. Others are refused.
    pub namespace: Option<String>,
    /// Key of the access key's id; `accessKeyID` when empty.
    #[serde(rename = "accessKeyIDKey")]
    pub access_key_id_key: Option<String>,
    /// Key of the access key; `secretAccessKey` when empty.
    pub secret_access_key_key: Option<String>,
    /// Key of the S3 host; `host` when empty. The Secret need not have this key.
    pub host_key: Option<String>,
    /// Key of the region; `region` when empty.
    pub region_key: Option<String>,
    /// Key of the bucket; `bucket` when empty. In its value, the text after the first slash is a prefix of the backups'
    /// names.
    pub bucket_key: Option<String>,
}

//! When etcd is backed up, where to, how long backups are kept, and what became of the last one.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Backups of etcd to an S3 bucket.
#[wire]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.encryption) || self.encryption.secretName != self.secret.name",
    "message": "the key that encrypts backups must not be in the Secret of the bucket: who has one would have both",
}]))]
pub struct EtcdBackup {
    /// Five cron fields (lists, ranges, steps and names are understood), or `@hourly`, `@daily`, `@weekly`, `@monthly`,
    /// in UTC. Of the latter each control plane has its own minute, and its own hour between 20:00 and 04:00.
    #[schemars(length(min = 1, max = 256), extend("pattern" = SCHEDULE_PATTERN))]
    pub schedule: String,
    /// The bucket and its credentials.
    pub secret: EtcdBackupSecret,
    /// Which backups are kept; all of them when empty.
    pub retention: Option<EtcdBackupRetention>,
    /// Encrypts backups with a key that is not in the bucket. Only encrypted backups contain the authorities, the service
    /// account keys and the encryption configuration, without which the data of a snapshot cannot be used.
    pub encryption: Option<EtcdBackupEncryption>,
    /// Makes a last backup when the control plane is deleted, after its API servers have ended. The deletion waits for it.
    pub before_deletion: Option<bool>,
    /// Makes no backups, also none before deletion.
    pub suspend: Option<bool>,
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
    /// Key of the S3 host; `host` when empty. The Secret need not have this key: then it is AWS, in the region.
    pub host_key: Option<String>,
    /// Key of the region; `region` when empty. The Secret need not have this key.
    pub region_key: Option<String>,
    /// Key of the bucket; `bucket` when empty. In its value, the text after the first slash is a prefix of the backups'
    /// names.
    pub bucket_key: Option<String>,
    /// Key of the token of temporary credentials; `sessionToken` when empty. The Secret need not have this key.
    pub session_token_key: Option<String>,
    /// Key of the authorities in PEM that the store's certificate may be signed by, besides those that everybody trusts;
    /// `certificateAuthority` when empty. The Secret need not have this key.
    pub certificate_authority_key: Option<String>,
    /// Key of how the bucket is addressed, `path` or `virtualHost`; `addressing` when empty. The Secret need not have this
    /// key: then it is `path`.
    pub addressing_key: Option<String>,
}

impl EtcdBackupSecret {
    /// What a store needs, by its usual name: under which key this Secret has it.
    pub fn keys(&self) -> [(&'static str, &str); 8] {
        let Self {
            name: _,
            namespace: _,
            access_key_id_key,
            secret_access_key_key,
            host_key,
            region_key,
            bucket_key,
            session_token_key,
            certificate_authority_key,
            addressing_key,
        } = self;
        [
            ("accessKeyID", access_key_id_key),
            ("secretAccessKey", secret_access_key_key),
            ("host", host_key),
            ("region", region_key),
            ("bucket", bucket_key),
            ("sessionToken", session_token_key),
            ("certificateAuthority", certificate_authority_key),
            ("addressing", addressing_key),
        ]
        .map(|(usual, given)| (usual, given.as_deref().filter(|key| !key.is_empty()).unwrap_or(usual)))
    }
}

/// Each rule keeps the newest backup of each of the last so many periods that have one. A backup is deleted if no rule
/// keeps it; without rules all are kept. The newest is always kept.
#[wire]
#[serde(default)]
pub struct EtcdBackupRetention {
    /// How many of the newest are kept, whenever they were made.
    #[schemars(range(min = 0, max = 10000))]
    pub last: Option<i32>,
    /// For how many hours one is kept.
    #[schemars(range(min = 0, max = 10000))]
    pub hourly: Option<i32>,
    /// For how many days one is kept.
    #[schemars(range(min = 0, max = 10000))]
    pub daily: Option<i32>,
    /// For how many weeks one is kept; weeks begin on Monday.
    #[schemars(range(min = 0, max = 10000))]
    pub weekly: Option<i32>,
    /// For how many months one is kept.
    #[schemars(range(min = 0, max = 10000))]
    pub monthly: Option<i32>,
    /// For how many years one is kept.
    #[schemars(range(min = 0, max = 10000))]
    pub yearly: Option<i32>,
}

/// The key that encrypts backups.
#[wire]
pub struct EtcdBackupEncryption {
    /// Name of the Secret, in the control plane's namespace. Keep a copy of the key elsewhere: without it no backup can be
    /// restored.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
    /// Which key of the Secret has it: 32 random bytes, as they are or as base64; `key` when empty.
    pub key: Option<String>,
}

/// What became of backups.
#[wire]
#[serde(default)]
pub struct EtcdBackupStatus {
    /// The last backup that was made.
    pub last_success: Option<EtcdBackupSuccess>,
    /// The last try that failed.
    pub last_failure: Option<EtcdBackupFailure>,
    /// The last request (annotation `hangar.cluster.x-k8s.io/backup-requested`) for which a backup was made.
    pub last_request: Option<String>,
}

/// A backup that was made.
#[wire(without_default)]
pub struct EtcdBackupSuccess {
    /// Its name in the bucket.
    pub id: String,
    /// When it was begun. It contains every write that was acknowledged before.
    pub time: Time,
    /// How long it took.
    pub duration_seconds: i64,
    /// Size of the snapshot in bytes.
    pub size: i64,
    /// Size of the object in the bucket in bytes.
    pub stored_size: i64,
    /// Revision of etcd up to which it certainly has all writes.
    pub revision: i64,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// Whether authorities, service account keys and the encryption configuration are part of it.
    pub has_keys: bool,
    /// Whether it is the last one before the control plane's deletion.
    pub before_deletion: Option<bool>,
    /// Why backups that are not kept any longer could not be deleted, where that is so.
    pub retention_failure: Option<String>,
}

/// A try that failed.
#[wire(without_default)]
pub struct EtcdBackupFailure {
    /// When it failed.
    pub time: Time,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// How many have failed since the last backup: 0 when one was made after this.
    pub attempts: i32,
    /// Whose it was: `Secret`, `Store`, `Etcd`, `Namespace` or `Hangar`.
    pub origin: String,
    /// Hash of the settings that were tried.
    pub settings: Option<String>,
    /// The request that was tried.
    pub request: Option<String>,
}

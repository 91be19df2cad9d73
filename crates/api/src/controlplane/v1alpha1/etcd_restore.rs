//! From where etcd takes its data.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{EtcdBackupEncryption, EtcdBackupSecret};

/// The backup, or the member that has survived, that etcd starts from. It is restored once: what was restored is on
/// record, and the field does nothing afterwards.
#[wire]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.backup) != has(self.member)",
        "message": "one of backup and member says where the data is",
    },
    {
        "rule": "!has(self.before) || (has(self.backup) && self.backup == 'latest')",
        "message": "before says which backup is the latest: it needs backup: latest",
    },
    {
        "rule": "!has(self.member) || !(has(self.from) || has(self.secret) || has(self.encryption))",
        "message": "from, secret and encryption are about a backup",
    },
]))]
pub struct EtcdRestore {
    /// Which Cluster's backup it is, if not this one's: then this control plane becomes a clone.
    pub from: Option<EtcdRestoreFrom>,
    /// Id of the backup, such as `20261118T194500Z`, or `latest`.
    #[schemars(extend("pattern" = BACKUP_PATTERN))]
    pub backup: Option<String>,
    /// Name of the member whose data is gone on with, such as `shop-etcd-0`, where a majority has lost theirs. What the
    /// lost members knew alone is gone. It needs `replace`.
    #[schemars(length(min = 1, max = 63))]
    pub member: Option<String>,
    /// With `backup: latest`, the newest backup that was begun at this time or before it.
    pub before: Option<Time>,
    /// The bucket, if it is not that of `spec.etcd.backup`.
    pub secret: Option<EtcdBackupSecret>,
    /// The key that the backup is encrypted with, if it is not that of `spec.etcd.backup`. Where a key is named, only an
    /// encrypted backup is restored.
    pub encryption: Option<EtcdBackupEncryption>,
    /// Consent to replace the data of a control plane that has data: the name of that data, as the condition
    /// `EtcdRestored` says it. Each restore gives the data another name, so a consent holds once.
    #[schemars(length(max = 64))]
    pub replace: Option<String>,
}

/// An id, or the word for the newest one.
const BACKUP_PATTERN: &str = "^(latest|[0-9]{8}T[0-9]{6}Z)$";

/// The Cluster that backups are of, as their names in the bucket begin.
#[wire]
pub struct EtcdRestoreFrom {
    /// Namespace of the Cluster, which need not exist any more.
    #[schemars(length(min = 1, max = 63), extend("pattern" = NAME_PATTERN))]
    pub namespace: String,
    /// Name of the Cluster.
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME_PATTERN))]
    pub name: String,
}

const NAME_PATTERN: &str = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$";

//! The control plane's etcd.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Container, EtcdBackup, EtcdRestore, Placement};
use crate::crd::schema::QUANTITY_PATTERN;

/// Members, volumes and backups of etcd.
#[wire]
#[serde(default)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.autoGrow) || self.autoGrow != has(self.volumeSize)",
        "message": "either volumes grow by themselves (autoGrow) or their size is given (volumeSize)",
    },
    {
        "rule": "!has(self.volumeSize) || quantity(string(self.volumeSize)).compareTo(quantity('2Gi')) >= 0",
        "message": "volumeSize must be at least 2Gi: etcd's logs and snapshots take half of that",
    },
]))]
pub struct Etcd {
    /// The container.
    #[serde(flatten)]
    pub container: Container,
    /// Priority class of the pods.
    pub priority_class_name: Option<String>,
    /// Where the members run, instead of the control plane's `placement`.
    pub placement: Option<Placement>,
    /// Number of members; 3 when empty. With 1, all data may be lost with one node of the management cluster.
    #[schemars(extend("enum" = [1, 3, 5]))]
    pub replicas: Option<i32>,
    /// Storage class of the volumes; the cluster's default when empty. It cannot be changed.
    pub storage_class_name: Option<String>,
    /// Size of each member's volume; 8Gi when empty. It can grow where the storage class can expand volumes, and cannot
    /// shrink.
    #[schemars(extend("pattern" = QUANTITY_PATTERN))]
    pub volume_size: Option<Quantity>,
    /// Lets volumes of 8Gi grow to 11Gi when more than four fifths of etcd's quota is in use: beyond that a volume allows no
    /// larger quota.
    pub auto_grow: Option<bool>,
    /// Backups to an S3 bucket.
    pub backup: Option<EtcdBackup>,
    /// The backup, or the data of one member, that etcd starts from.
    pub restore: Option<EtcdRestore>,
}

//! Status of a hosted control plane: the fields of both contract versions, and the state of etcd.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, Time},
};

use super::EtcdBackupStatus;
use crate::crd::schema::QUANTITY_PATTERN;

/// Observed state of a control plane.
///
/// Counters, `version` and `externalManagedControlPlane` are always written, even when zero: for readers of the
/// contract an absent field means "not supported".
#[wire]
#[serde(default)]
pub struct HostedControlPlaneStatus {
    /// Milestones of the initialization; each stays true once it is reached.
    pub initialization: Option<HostedControlPlaneInitialization>,
    /// Whether the API server has ever served, for readers of the v1beta1 contract. Once true, it stays true.
    pub initialized: Option<bool>,
    /// Whether the API server serves, for readers of the v1beta1 contract.
    pub ready: Option<bool>,
    /// Lowest Kubernetes version that an API server serves with.
    pub version: Option<String>,
    /// Oldest version of a kubelet, as the cluster's Nodes report it. API servers are at most three minor versions newer.
    pub oldest_kubelet_version: Option<String>,
    /// Always true: the control plane has no Machines. Without it, controllers would neither drain nor delete Nodes,
    /// because they would see a cluster without a control plane.
    pub external_managed_control_plane: Option<bool>,
    /// Selects the API server's pods.
    pub selector: Option<String>,
    /// API server pods that exist.
    pub replicas: Option<i32>,
    /// API server pods that are ready.
    pub ready_replicas: Option<i32>,
    /// API server pods that have been ready for a while.
    pub available_replicas: Option<i32>,
    /// API server pods that are up to date.
    pub up_to_date_replicas: Option<i32>,
    /// The same as `upToDateReplicas`, for readers of the v1beta1 contract.
    pub updated_replicas: Option<i32>,
    /// API server pods that are missing or not available, for readers of the v1beta1 contract.
    pub unavailable_replicas: Option<i32>,
    /// Address of the load balancer that serves the cluster's own pods.
    #[serde(rename = "legacyIP")]
    pub legacy_ip: Option<String>,
    /// Size of etcd's volumes.
    #[schemars(extend("pattern" = QUANTITY_PATTERN))]
    pub etcd_volume_size: Option<Quantity>,
    /// Size of the database in the fullest of etcd's volumes, rounded up to about a tenth. Logs and snapshots beside it
    /// are not counted.
    #[schemars(extend("pattern" = QUANTITY_PATTERN))]
    pub etcd_volume_usage: Option<Quantity>,
    /// When the last backup of etcd was begun.
    pub etcd_last_backup_time: Option<Time>,
    /// When the next backup of etcd is due. A moment that has passed is made up for once.
    pub etcd_next_backup_time: Option<Time>,
    /// What became of backups of etcd.
    pub etcd_backup: Option<EtcdBackupStatus>,
    /// When etcd was last defragmented.
    pub etcd_last_defrag_time: Option<Time>,
    /// When a defragmentation of etcd was last begun.
    pub etcd_last_attempted_defrag_time: Option<Time>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Milestones of the initialization; each stays true once it is reached.
#[wire]
#[serde(default)]
pub struct HostedControlPlaneInitialization {
    /// The API server has served: nodes may join.
    pub control_plane_initialized: Option<bool>,
}

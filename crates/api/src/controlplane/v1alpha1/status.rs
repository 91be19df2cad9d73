//! Status of a hosted control plane: the fields of both contract versions, and what etcd is up to.

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, Time},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::schema::QUANTITY_PATTERN;

/// What is known about a control plane.
///
/// Counters, version and the external mark are always written, even when zero: readers take an absent one for "not
/// supported".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HostedControlPlaneStatus {
    /// First-time steps that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<HostedControlPlaneInitialization>,
    /// Whether the API server has ever served, for readers of the v1beta1 contract. Once true, it stays true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialized: Option<bool>,
    /// Whether the API server serves, for readers of the v1beta1 contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Lowest Kubernetes version that any API server runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True: the control plane has no machines. Readers keep draining and deleting worker nodes because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_managed_control_plane: Option<bool>,
    /// Selects the API server's pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// API server pods that exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// API server pods that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// API server pods that have been ready for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// API server pods as they should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// The same as `upToDateReplicas`, for readers of the v1beta1 contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// API server pods that are missing or not available, for readers of the v1beta1 contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable_replicas: Option<i32>,
    /// Address of the load balancer that serves the cluster's own pods.
    #[serde(rename = "legacyIP", skip_serializing_if = "Option::is_none")]
    pub legacy_ip: Option<String>,
    /// Size of etcd's volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = QUANTITY_PATTERN))]
    pub etcd_volume_size: Option<Quantity>,
    /// What the fullest of etcd's volumes holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = QUANTITY_PATTERN))]
    pub etcd_volume_usage: Option<Quantity>,
    /// When etcd was last backed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_last_backup_time: Option<Time>,
    /// When etcd is backed up next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_next_backup_time: Option<Time>,
    /// When etcd was last defragmented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_last_defrag_time: Option<Time>,
    /// When a defragmentation of etcd was last begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_last_attempted_defrag_time: Option<Time>,
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// First-time steps that are done; once true, they stay true.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HostedControlPlaneInitialization {
    /// The API server has served: nodes may join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

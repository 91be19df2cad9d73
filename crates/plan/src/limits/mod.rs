//! What HostedControlPlanes may ask for beyond their own namespace: a small file of the operator of the management
//! cluster.
//!
//! Most of a HostedControlPlane stays in its namespace, where rights and quotas of Kubernetes decide. Some of it does not:
//! an annotation of a Service can take another tenant's address, a priority class can push another tenant's pods off a
//! node, a toleration can lead to nodes that were kept for others. That is what is decided here, by one function ([`excess()`]) for admission and for plans. Without a file the
//! defaults hold; they allow nothing that could touch others.

mod excess;
mod pattern;
mod placement;
mod stores;

use std::net::IpAddr;
use std::num::NonZeroU16;

use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;

pub use excess::excess;
pub use pattern::{Allowed, Pattern};

use crate::quantity::Quantity;

/// The file, with a default for each setting.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Keys of `spec.exposure.loadBalancer.annotations`.
    pub service_annotations: Allowed,
    /// Values of `spec.exposure.loadBalancer.class`.
    pub load_balancer_classes: Allowed,
    /// Priority classes of pods. Those of Kubernetes (`system-`) have to be named: `*` does not allow them.
    pub priority_classes: Allowed,
    /// Registries, or repositories in them, of the images of pods.
    pub registries: Allowed,
    /// Labels of nodes that pods may be bound to, as `key=value`.
    pub node_labels: Allowed,
    /// Keys of taints that pods may tolerate. Those of Kubernetes' own nodes (`node-role.kubernetes.io/`) have to be
    /// named: `*` does not allow them.
    pub tolerations: Allowed,
    /// Host names of endpoints. Addresses are no names and always allowed.
    pub host_names: Allowed,
    /// Networks besides the public ones in which stores of backups may be.
    pub backup_networks: Vec<IpNet>,
    /// How many pods a component may have.
    pub maximum_replicas: MaximumReplicas,
    /// How much memory one container may request or have as its limit.
    pub maximum_memory: Memory,
    /// How many nodes of the management cluster control planes can run on, where the operator says so.
    pub nodes: Option<NonZeroU16>,
    /// Whether `hangar install` made its priority classes. No setting of the file: the manager is told.
    #[serde(skip)]
    pub has_priority_classes: bool,
    /// Addresses of the management cluster's API server, as the manager reaches it. No setting either.
    #[serde(skip)]
    pub api_servers: Vec<IpAddr>,
}

const HARMLESS_LABELS: [&str; 4] = [
    "kubernetes.io/arch=*",
    "kubernetes.io/os=*",
    "topology.kubernetes.io/region=*",
    "topology.kubernetes.io/zone=*",
];

/// How many pods each component may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MaximumReplicas {
    pub api_server: NonZeroU16,
    pub controller_manager: NonZeroU16,
    pub scheduler: NonZeroU16,
    pub etcd: NonZeroU16,
}

/// An amount of memory, as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Memory {
    text: String,
    bytes: u64,
}

impl TryFrom<String> for Memory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match Quantity::parse(&text).and_then(Quantity::bytes).filter(|bytes| *bytes > 0) {
            Some(bytes) => Ok(Self { text, bytes }),
            None => Err(format!("{text:?} must be an amount of memory such as 16Gi")),
        }
    }
}

impl Default for MaximumReplicas {
    fn default() -> Self {
        const FIVE: NonZeroU16 = NonZeroU16::MIN.saturating_add(4);
        Self { api_server: FIVE, controller_manager: FIVE, scheduler: FIVE, etcd: FIVE }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            service_annotations: Allowed::default(),
            load_balancer_classes: Allowed::default(),
            priority_classes: Allowed::default(),
            // Pods run inside the management network: by default only what is published by Kubernetes itself.
            registries: Allowed::only(crate::hosted_control_plane::REGISTRY),
            // Zones and the like separate no tenants, and all nodes have them.
            node_labels: Allowed::all(&HARMLESS_LABELS),
            tolerations: Allowed::default(),
            // A name alone takes nothing from anybody: clients trust the authority of the cluster they expect.
            host_names: Allowed::only("*"),
            backup_networks: Vec::new(),
            maximum_replicas: MaximumReplicas::default(),
            maximum_memory: Memory { text: "16Gi".to_owned(), bytes: 16 << 30 },
            nodes: None,
            has_priority_classes: false,
            api_servers: Vec::new(),
        }
    }
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it is no YAML: {0}")]
    Yaml(String),
    #[error("it must be settings with their names, such as `priorityClasses: [tenants]`")]
    NoSettings,
    #[error("{field}: {why}")]
    Field { field: String, why: String },
}

impl Limits {
    /// Reads the file. One that says nothing is the defaults.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let value: Value = serde_saphyr::from_str(text)
            .map_err(|error| Error::Yaml(error.to_string().lines().next().unwrap_or_default().to_owned()))?;
        if value.is_null() {
            return Ok(Self::default());
        }
        if !value.is_object() {
            return Err(Error::NoSettings);
        }
        serde_path_to_error::deserialize(value)
            .map_err(|error| Error::Field { field: error.path().to_string(), why: error.inner().to_string() })
    }
}

#[cfg(test)]
mod tests;

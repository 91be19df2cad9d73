//! Parts of a Machine's status that both versions share.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One address of the machine.
#[wire(lenient)]
pub struct MachineAddress {
    /// The address.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
    /// What kind of address it is.
    pub r#type: MachineAddressType,
}

/// Kinds of addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineAddressType {
    /// A host name.
    #[default]
    Hostname,
    /// An address that can be reached from outside the cluster's network.
    #[serde(rename = "ExternalIP")]
    ExternalIp,
    /// An address inside the cluster's network.
    #[serde(rename = "InternalIP")]
    InternalIp,
    /// A DNS name that can be resolved outside the cluster's network.
    #[serde(rename = "ExternalDNS")]
    ExternalDns,
    /// A DNS name inside the cluster's network.
    #[serde(rename = "InternalDNS")]
    InternalDns,
}

/// Progress of a Machine's deletion.
#[wire(lenient)]
pub struct MachineDeletionStatus {
    /// When draining of the Node began.
    pub node_drain_start_time: Option<Time>,
    /// When waiting for volumes to be detached began.
    pub wait_for_node_volume_detach_start_time: Option<Time>,
}

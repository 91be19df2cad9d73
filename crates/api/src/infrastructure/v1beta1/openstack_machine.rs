//! `OpenStackMachine`: one server.

use hangar_wire::wire;
use k8s_openapi::api::core::v1::{NodeAddress, TypedLocalObjectReference};
use kube::CustomResource;

use super::{
    AdditionalBlockDevice, IdentityReference, ImageParam, Initialization, MachineResources, Port,
    ResolvedServer, RootVolume, SchedulerHint, SecurityGroupParam, ServerGroupParam, ServerMetadata,
};
use crate::cluster::legacy_condition::LegacyCondition;

/// Properties of an OpenStack server of a cluster.
#[wire(without_default)]
#[derive(CustomResource)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "OpenStackMachine",
    plural = "openstackmachines",
    namespaced,
    status = "OpenStackMachineStatus",
    derive = "PartialEq",
    doc = "An OpenStack server that becomes a node of a cluster. Only identityRef can be changed.",
    shortname = "osm",
    category = "cluster-api",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",
        description = "Cluster of this machine"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.ready",
        description = "Whether the server runs"
    ),
    printcolumn(
        name = "ProviderID",
        type_ = "string",
        json_path = ".spec.providerID",
        description = "Provider id, with the server's UUID"
    ),
    printcolumn(
        name = "Machine",
        type_ = "string",
        json_path = ".metadata.ownerReferences[?(@.kind==\"Machine\")].name",
        description = "Machine that owns this object"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.flavor) || has(self.flavorID))",
    "message": "flavor or flavorID is needed",
}]))]
pub struct OpenStackMachineSpec {
    /// Provider id of the node, `openstack://<region>/<server UUID>`. Written once the server exists.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Name of the flavor.
    #[schemars(length(min = 1))]
    pub flavor: Option<String>,
    /// Id of the flavor; overrides the name.
    #[serde(rename = "flavorID")]
    #[schemars(length(min = 1))]
    pub flavor_id: Option<String>,
    /// The image to boot from.
    pub image: ImageParam,
    /// Key pair that may log in.
    pub ssh_key_name: Option<String>,
    /// Ports of the server; one in the cluster's network when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Further security groups of all ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroupParam>,
    /// Makes the ports trunks. Not supported yet.
    pub trunk: Option<bool>,
    /// Tags of all resources that are created for the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags: Vec<String>,
    /// Metadata of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub server_metadata: Vec<ServerMetadata>,
    /// Attaches a config drive with the server's metadata, besides the metadata service.
    pub config_drive: Option<bool>,
    /// Boots from a volume instead of local disk. Not supported yet.
    pub root_volume: Option<RootVolume>,
    /// Further disks. Not supported yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub additional_block_devices: Vec<AdditionalBlockDevice>,
    /// Server group of the server.
    pub server_group: Option<ServerGroupParam>,
    /// Credentials; the cluster's when empty.
    pub identity_ref: Option<IdentityReference>,
    /// Pool from which the server gets a floating IP. Not supported yet.
    #[serde(rename = "floatingIPPoolRef")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub floating_ip_pool_ref: Option<TypedLocalObjectReference>,
    /// Further hints for Nova's scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scheduler_hint_additional_properties: Vec<SchedulerHint>,
}

/// Observed state of the server.
#[wire]
#[serde(default)]
pub struct OpenStackMachineStatus {
    /// Whether the server runs.
    pub ready: Option<bool>,
    /// Milestones of the initialization; each stays true once it is reached.
    pub initialization: Option<Initialization>,
    /// Addresses of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// UUID of the server.
    #[serde(rename = "instanceID")]
    pub instance_id: Option<String>,
    /// State of the server that the cloud reports.
    pub instance_state: Option<String>,
    /// Parameters, resolved into ids.
    pub resolved: Option<ResolvedServer>,
    /// Resources that were created for the machine.
    pub resources: Option<MachineResources>,
    /// Not written by Hangar: errors are conditions, and no error is terminal.
    pub failure_reason: Option<String>,
    /// Not written by Hangar: errors are conditions, and no error is terminal.
    pub failure_message: Option<String>,
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
}

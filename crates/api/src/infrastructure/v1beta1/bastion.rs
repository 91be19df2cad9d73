//! The bastion: a server with SSH access into the cluster's network.

use hangar_wire::wire;

use super::{MachineResources, OpenStackMachineSpec, ResolvedServer};

/// A bastion host.
#[wire(without_default)]
#[serde(default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!self.enabled || has(self.spec)",
    "message": "an enabled bastion needs a spec",
}]))]
pub struct Bastion {
    /// Whether the bastion exists. Set it to false before you remove `bastion`.
    pub enabled: bool,
    /// The bastion's server.
    pub spec: Option<Box<OpenStackMachineSpec>>,
    /// Its availability zone.
    pub availability_zone: Option<String>,
    /// An existing floating IP to use; a new one when empty.
    #[serde(rename = "floatingIP")]
    #[schemars(extend("format" = "ipv4"))]
    pub floating_ip: Option<String>,
}

impl Default for Bastion {
    fn default() -> Self {
        Self { enabled: true, spec: None, availability_zone: None, floating_ip: None }
    }
}

/// What is known about the bastion.
#[wire]
#[serde(default)]
pub struct BastionStatus {
    /// UUID of its server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Name of its server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Key pair that may log in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_key_name: String,
    /// State of its server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Its address in the cluster's network.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Floating IP of the bastion.
    #[serde(rename = "floatingIP", skip_serializing_if = "String::is_empty")]
    pub floating_ip: String,
    /// Its parameters, resolved into ids.
    pub resolved: Option<ResolvedServer>,
    /// Resources that were created for the bastion.
    pub resources: Option<MachineResources>,
}

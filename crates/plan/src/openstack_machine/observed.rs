//! What is read about one OpenStackMachine, and what it is time for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hangar_api::infrastructure::v1beta1::{IdentityReference, OpenStackMachine};
use hangar_api::names::{OPENSTACK_MACHINE_FINALIZER, PAUSED_ANNOTATION};
use jiff::Timestamp;

use super::{preflight, wanted_ports};
use crate::flow::Read;
use crate::openstack::{Access, CloudTrouble, Flavor, Group, Image, Network, Port, Server, Subnet, owner_id};

/// What a machine reads at its first boot. It prints as its length: there is a token in it.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(pub Vec<u8>);

impl fmt::Debug for UserData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserData({} bytes)", self.0.len())
    }
}

/// What matters of the Machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Where it shall be.
    pub failure_domain: Option<String>,
    /// The Secret with its user data.
    pub data_secret_name: Option<String>,
    /// Whether it belongs to a control plane.
    pub is_control_plane: bool,
}

/// What matters of the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    pub name: String,
    /// Whether its controllers are stopped.
    pub is_paused: bool,
    /// Whether its infrastructure is there.
    pub is_provisioned: bool,
}

/// What matters of the OpenStackCluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InfrastructureFacts {
    /// The credentials it uses.
    pub identity: Option<IdentityReference>,
    /// The cluster's network.
    pub network_id: Option<String>,
    /// The subnets that machines get addresses from.
    pub subnet_ids: Vec<String>,
    /// The managed group of this machine's role.
    pub security_group_id: Option<String>,
    /// Tags of everything in the cluster.
    pub tags: Vec<String>,
    /// Leaves the zone of control plane machines to the cloud.
    pub omits_zone: bool,
    /// Switches filtering off on all ports.
    pub disables_port_security: bool,
}

/// What is found for one wanted port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortFacts {
    /// Its network; only looked for when the port names one.
    pub network: Read<Network>,
    /// Its subnets, in the order of its addresses that name one.
    pub subnets: Vec<Read<Subnet>>,
    /// Its security groups, in their order.
    pub groups: Vec<Read<Group>>,
}

/// What the cloud says.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudFacts {
    /// Servers with our owner id, or the recorded one if it is nobody else's.
    pub servers: Read<Server>,
    /// Ports with our owner id, by name.
    pub ports: BTreeMap<String, Read<Port>>,
    /// What a new server needs; looked for only while there is none.
    pub preflight: Option<Preflight>,
}

/// What a new server needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Preflight {
    pub image: Read<Image>,
    pub flavor: Read<Flavor>,
    /// The server group, its id; absent also when none is asked for.
    pub server_group: Read<String>,
    /// Whether the key exists; absent when none is asked for.
    pub key: Read<bool>,
    /// For each wanted port.
    pub wanted: Vec<PortFacts>,
    /// Security groups of all ports.
    pub groups: Vec<Read<Group>>,
}

impl Default for Preflight {
    fn default() -> Self {
        Self {
            image: Read::unknown("not asked"),
            flavor: Read::unknown("not asked"),
            server_group: Read::Absent,
            key: Read::Absent,
            wanted: Vec::new(),
            groups: Vec::new(),
        }
    }
}

/// Everything a plan looks at.
#[derive(Clone, Debug)]
pub struct Observed {
    pub object: OpenStackMachine,
    pub now: Timestamp,
    /// Random, in case an owner id is minted.
    pub fresh_owner_id: String,
    /// An older object that carries the same owner id: ours was copied from it, with its annotations.
    pub copied_from: Option<String>,
    /// The Machine that owns the object.
    pub machine: Read<MachineFacts>,
    pub cluster: Read<ClusterFacts>,
    /// The OpenStackCluster.
    pub infrastructure: Read<InfrastructureFacts>,
    /// The user data; read only while there is no server.
    pub user_data: Read<UserData>,
    /// What the cloud says; asked from [`Stage::Keep`] and [`Stage::Delete`] on.
    pub cloud: Access<CloudFacts>,
    /// What the last step that did not work said.
    pub trouble: Option<CloudTrouble>,
}

/// What it is time for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing may be changed.
    Paused,
    /// It is not ours to act on.
    Foreign,
    /// Something must happen elsewhere first.
    Wait {
        reason: &'static str,
        /// What is waited for.
        on: &'static str,
    },
    /// Nothing can be said.
    Unknown(String),
    /// Fields that are not supported.
    Unsupported(Vec<String>),
    /// The owner id belongs to another object, by name: nothing may be touched.
    Copied(String),
    /// The ports that were made had these names, and `spec.ports` gives others now.
    PortsChanged(String),
    /// Put the owner id and the finalizer on the object.
    Claim,
    Keep,
    /// Take away what was made.
    Delete,
    /// Nothing of ours is left: let the object go.
    Release,
}

/// What has to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// What there is of the machine in the cloud.
    Servers {
        /// Whether it is there to be deleted.
        is_deleting: bool,
        /// Whether it has to be looked for anew: something is made or deleted. Else what others saw lately is enough.
        is_live: bool,
    },
    /// Everything that a new server needs.
    Preflight,
}

impl Observed {
    /// What to read next before a plan can be made.
    pub fn wanted(&self) -> Option<Wanted> {
        match (&self.cloud, self.stage()) {
            (Access::NotAsked, Stage::Keep) => {
                // It is said once a server runs, failed or is gone, and never before one is made.
                let is_over = self.object.status.as_ref().is_some_and(|status| status.ready.is_some());
                Some(Wanted::Servers { is_deleting: false, is_live: !is_over })
            }
            (Access::NotAsked, Stage::Delete) => Some(Wanted::Servers { is_deleting: true, is_live: true }),
            (Access::Facts(facts), Stage::Keep) if facts.preflight.is_none() && self.needs_server(facts) => {
                Some(Wanted::Preflight)
            }
            _ => None,
        }
    }

    /// What it is time for, from the stores alone.
    pub fn stage(&self) -> Stage {
        if self.is_paused() {
            return Stage::Paused;
        }
        if self.object.metadata.deletion_timestamp.is_some() {
            return match self.owner_id() {
                _ if !self.has_finalizer() => Stage::Foreign,
                None => Stage::Release,
                // What carries the id is the other's.
                Some(_) if self.copied_from.is_some() => Stage::Release,
                Some(_) => self.unless_ports_changed(Stage::Delete),
            };
        }
        let machine = match &self.machine {
            Read::Unknown(unknown) => return Stage::Unknown(unknown.why.clone()),
            Read::One(machine) => machine,
            _ => return Stage::Wait { reason: "WaitingForMachine", on: "a Machine that owns this object" },
        };
        let cluster = match &self.cluster {
            Read::Unknown(unknown) => return Stage::Unknown(unknown.why.clone()),
            Read::One(cluster) => cluster,
            _ => return Stage::Wait { reason: "WaitingForCluster", on: "the Cluster of the Machine" },
        };
        let unsupported = preflight::unsupported(&self.object.spec);
        if !unsupported.is_empty() {
            return Stage::Unsupported(unsupported);
        }
        match &self.infrastructure {
            Read::Unknown(unknown) => return Stage::Unknown(unknown.why.clone()),
            Read::One(_) if cluster.is_provisioned => {}
            _ => {
                let on = "the infrastructure of the Cluster";
                return Stage::Wait { reason: "WaitingForClusterInfrastructure", on };
            }
        }
        if machine.data_secret_name.is_none() && !self.was_made() {
            return Stage::Wait {
                reason: "WaitingForBootstrapData",
                on: "the bootstrap data of the Machine",
            };
        }
        if let Some(other) = &self.copied_from {
            return Stage::Copied(other.clone());
        }
        if self.owner_id().is_none() || !self.has_finalizer() {
            return Stage::Claim;
        }
        self.unless_ports_changed(Stage::Keep)
    }

    /// Ports are found again by their names, which follow from `spec.ports`. Where that was edited, those that exist would
    /// be looked for in vain: others would be made beside them, and a deletion would leave them behind.
    fn unless_ports_changed(&self, stage: Stage) -> Stage {
        let resolved = self.object.status.as_ref().and_then(|status| status.resolved.as_ref());
        let made: BTreeSet<&str> =
            resolved.iter().flat_map(|resolved| &resolved.ports).map(|port| port.name.as_str()).collect();
        let wanted = wanted_ports(&self.server_name(), &self.object.spec, &InfrastructureFacts::default());
        let wanted: BTreeSet<&str> = wanted.iter().map(|port| port.name.as_str()).collect();
        if made.is_empty() || made == wanted {
            return stage;
        }
        Stage::PortsChanged(made.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Whether nothing may be changed.
    pub fn is_paused(&self) -> bool {
        let annotations = self.object.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION))
            || self.cluster.iter().any(|cluster| cluster.is_paused)
    }

    /// The owner id on the object.
    pub fn owner_id(&self) -> Option<String> {
        owner_id(self.object.metadata.annotations.as_ref())
    }

    fn has_finalizer(&self) -> bool {
        let finalizers = self.object.metadata.finalizers.iter().flatten();
        finalizers.into_iter().any(|present| present == OPENSTACK_MACHINE_FINALIZER)
    }

    /// The name of the server: the object's own, which is the Machine's too wherever a set made both.
    pub fn server_name(&self) -> String {
        self.object.metadata.name.clone().unwrap_or_default()
    }

    /// Whether a server was seen before. The provider id survives a move, the status does not.
    pub fn was_made(&self) -> bool {
        self.object.spec.provider_id.is_some()
            || self.object.status.as_ref().is_some_and(|status| status.instance_id.is_some())
    }

    /// Whether there is no server and never was one. One that the cloud only keeps for a while is none.
    fn needs_server(&self, facts: &CloudFacts) -> bool {
        facts.servers.clone().filter(|server| !server.is_gone()).is_absent() && !self.was_made()
    }

    pub(super) fn infrastructure_facts(&self) -> InfrastructureFacts {
        self.infrastructure.iter().next().cloned().unwrap_or_default()
    }
}

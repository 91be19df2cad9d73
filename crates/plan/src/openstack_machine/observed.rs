//! The observation of one OpenStackMachine, and the stage that follows from it.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_api::conditions::Bad;
use hangar_api::infrastructure::v1beta1::{IdentityReference, OpenStackMachine};
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use jiff::Timestamp;

use super::conditions::instance_ready;
use super::unsupported::unsupported;
use crate::flow::Read;
use crate::openstack::server::{ServerFacts, Situation, WantedServer};
use crate::openstack::{
    Access, CloudTrouble, NetworkId, SecurityGroupId, ServerId, SubnetId, owner_id, server_requested_at,
};
use crate::referred;

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
    pub network_id: Option<NetworkId>,
    /// The subnets that machines get addresses from.
    pub subnet_ids: Vec<SubnetId>,
    /// The managed group of this machine's role.
    pub security_group_id: Option<SecurityGroupId>,
    /// Tags of everything in the cluster.
    pub tags: Vec<String>,
    /// Leaves the zone of control plane machines to the cloud.
    pub omits_zone: bool,
    /// Switches filtering off on all ports.
    pub disables_port_security: bool,
}

/// Everything a plan looks at.
#[derive(Clone, Debug)]
pub struct Observed {
    pub object: OpenStackMachine,
    pub now: Timestamp,
    /// Random, in case an owner id is minted.
    pub fresh_owner_id: String,
    /// How long a request may still be carried out after its answer was lost.
    pub settling: Duration,
    /// An older object that carries the same owner id: ours was copied from it, with its annotations.
    pub copied_from: Option<String>,
    /// The Machine that owns the object.
    pub machine: Read<MachineFacts>,
    pub cluster: Read<ClusterFacts>,
    /// The OpenStackCluster.
    pub infrastructure: Read<InfrastructureFacts>,
    /// What the cloud says; asked from [`Stage::Keep`] and [`Stage::Delete`] on.
    pub cloud: Access<ServerFacts>,
    /// The region and the project in which it was asked.
    pub project: Option<String>,
    /// What the last step that did not work said.
    pub trouble: Option<CloudTrouble>,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        object, now, fresh_owner_id, settling, copied_from, machine, cluster, infrastructure, cloud, project,
        trouble,
    };
    OpenStackMachine, MachineFacts, ClusterFacts, InfrastructureFacts,
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
        reason: Bad,
        /// What is waited for.
        on: &'static str,
    },
    /// Nothing can be said.
    Unknown(String),
    /// Fields that are not supported.
    Unsupported(Vec<String>),
    /// The owner id belongs to another object, by name: nothing may be touched.
    Copied(String),
    /// It names a server, and has no owner id: nothing may be touched.
    MadeByAnother,
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
    /// What it is time for, from the stores alone.
    pub fn stage(&self) -> Stage {
        if self.paused().is_some() {
            return Stage::Paused;
        }
        if self.object.metadata.deletion_timestamp.is_some() {
            return match self.owner_id() {
                _ if !self.has_finalizer() => Stage::Foreign,
                None if self.names_something() => Stage::MadeByAnother,
                None => Stage::Release,
                // What carries the id is the other's.
                Some(_) if self.copied_from.is_some() => Stage::Release,
                Some(_) => self.unless_ports_changed(Stage::Delete),
            };
        }
        let machine = match &self.machine {
            Read::Unknown(unknown) => return Stage::Unknown(unknown.why.clone()),
            Read::One(machine) => machine,
            _ => {
                let on = "a Machine that owns this object";
                return Stage::Wait { reason: instance_ready::WAITING_FOR_MACHINE, on };
            }
        };
        let cluster = match &self.cluster {
            Read::Unknown(unknown) => return Stage::Unknown(unknown.why.clone()),
            Read::One(cluster) => cluster,
            _ => {
                let on = "the Cluster of the Machine";
                return Stage::Wait { reason: instance_ready::WAITING_FOR_CLUSTER, on };
            }
        };
        if self.owner_id().is_none() && self.names_something() {
            return Stage::MadeByAnother;
        }
        let unsupported = unsupported(&self.object.spec);
        if !unsupported.is_empty() {
            return Stage::Unsupported(unsupported);
        }
        match &self.infrastructure {
            Read::Unknown(unknown) => return Stage::Unknown(unknown.why.clone()),
            Read::One(_) if cluster.is_provisioned => {}
            _ => {
                let on = "the infrastructure of the Cluster";
                return Stage::Wait { reason: instance_ready::WAITING_FOR_INFRASTRUCTURE, on };
            }
        }
        if machine.data_secret_name.is_none() && !self.was_made() {
            return Stage::Wait {
                reason: instance_ready::WAITING_FOR_BOOTSTRAP_DATA,
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
        let wanted = self.wanted_server();
        let wanted: BTreeSet<&str> = wanted.ports.iter().map(|port| port.name.as_str()).collect();
        if made.is_empty() || made == wanted {
            return stage;
        }
        Stage::PortsChanged(made.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Whether nothing may be changed: until when.
    pub(super) fn paused(&self) -> Option<&'static str> {
        let is_cluster_paused = self.cluster.iter().any(|cluster| cluster.is_paused);
        referred::paused_by(&self.object.metadata, is_cluster_paused)
    }

    /// The owner id on the object.
    pub fn owner_id(&self) -> Option<String> {
        owner_id(self.object.metadata.annotations.as_ref())
    }

    fn has_finalizer(&self) -> bool {
        let finalizers = self.object.metadata.finalizers.iter().flatten();
        finalizers.into_iter().any(|present| present == OPENSTACK_MACHINE_FINALIZER)
    }

    /// When a server was asked for of which nobody knows what became.
    pub(super) fn requested_at(&self) -> Option<Timestamp> {
        server_requested_at(self.object.metadata.annotations.as_ref())
    }

    /// The server that was seen last: the provider id survives a move, the status does not.
    pub fn recorded_id(&self) -> Option<ServerId> {
        let seen = self.object.status.as_ref().and_then(|status| status.instance_id.as_deref());
        let named = self.object.spec.provider_id.as_deref().and_then(|id| id.rsplit('/').next());
        seen.or(named).filter(|id| !id.is_empty()).map(Into::into)
    }

    /// Whether a server or a port was made, by whomever.
    fn names_something(&self) -> bool {
        let resources = self.object.status.as_ref().and_then(|status| status.resources.as_ref());
        self.was_made() || resources.is_some_and(|resources| !resources.ports.is_empty())
    }

    /// Whether a server was seen before.
    pub fn was_made(&self) -> bool {
        self.object.spec.provider_id.is_some() || self.recorded_id().is_some()
    }

    /// Everything that decides about the server.
    pub(super) fn situation<'a>(&'a self, wanted: &'a WantedServer, facts: &'a ServerFacts) -> Situation<'a> {
        Situation {
            wanted,
            facts,
            recorded_id: self.recorded_id(),
            was_made: self.was_made(),
            requested_at: self.requested_at(),
            settling: self.settling,
            now: self.now,
        }
    }
}

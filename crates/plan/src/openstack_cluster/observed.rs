//! The observation of one OpenStackCluster, and the stage that follows from it.

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::infrastructure::v1beta1::OpenStackCluster;
use hangar_api::names::{MANAGED_BY_ANNOTATION, OPENSTACK_CLUSTER_FINALIZER};
use jiff::{SignedDuration, Timestamp};

use super::endpoint;
use crate::flow::Read;
use crate::openstack::{Access, CloudTrouble, Group, Network, Port, Router, Subnet, Zone, owner_id};
use crate::referred;

/// What is known of the Cluster's control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlPlane {
    /// Nobody can tell yet.
    #[default]
    Unknown,
    /// It has no machines: its endpoint is its own affair.
    External,
    /// It runs on machines of this infrastructure.
    Machines,
}

/// What matters of the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    pub name: String,
    /// Whether its controllers are stopped.
    pub is_paused: bool,
    /// Who makes its control plane.
    pub control_plane: ControlPlane,
    /// Whether it has the endpoint of its API server.
    pub has_endpoint: bool,
}

/// What the cloud says.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudFacts {
    /// The external network: by parameter, or all there are.
    pub external_networks: Read<Network>,
    /// Ours by owner id, or the given one.
    pub networks: Read<Network>,
    /// Ours by owner id, or the given ones.
    pub subnets: Read<Subnet>,
    /// Given subnets that were not found once, with what was found instead.
    pub subnet_problems: Vec<String>,
    /// Ours by owner id, or the given one.
    pub routers: Read<Router>,
    /// Ports that connect our router to subnets.
    pub interfaces: Read<Port>,
    /// Our security groups, by owner id.
    pub groups: Read<Group>,
    /// Availability zones; asked for only while none is recorded.
    pub zones: Read<Zone>,
    /// Other ports on our network; asked for only while deleting.
    pub other_ports: Read<Port>,
}

/// Everything a plan looks at.
#[derive(Clone, Debug)]
pub struct Observed {
    pub object: OpenStackCluster,
    pub now: Timestamp,
    /// Random, in case an owner id is minted.
    pub fresh_owner_id: String,
    /// How long a request may still be carried out after its answer was lost.
    pub settling: Duration,
    /// An older object that carries the same owner id: ours was copied from it, with its annotations.
    pub copied_from: Option<String>,
    /// The Cluster that owns the object.
    pub cluster: Read<ClusterFacts>,
    /// Names of the OpenStackMachines of the cluster.
    pub machines: Read<String>,
    /// What the cloud says; asked from [`Stage::Keep`] and [`Stage::Delete`] on.
    pub cloud: Access<CloudFacts>,
    /// The region and the project in which it was asked.
    pub project: Option<String>,
    /// What the last steps that did not work said, by condition.
    pub troubles: BTreeMap<&'static str, CloudTrouble>,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        object, now, fresh_owner_id, settling, copied_from, cluster, machines, cloud, project, troubles,
    }
    CloudFacts {
        external_networks, networks, subnets, subnet_problems, routers, interfaces, groups, zones, other_ports,
    };
    OpenStackCluster, ClusterFacts,
}

/// What it is time for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing may be changed.
    Paused,
    /// Somebody else manages the object.
    Foreign,
    /// No Cluster owns it yet.
    NoOwner,
    /// Nothing can be said.
    Unknown(String),
    /// The owner id belongs to another object, by name: nothing may be touched.
    Copied(String),
    /// It names things in a cloud, and has no owner id: nothing may be touched.
    MadeByAnother,
    /// It asks for an endpoint that cannot be made, and nothing is there yet.
    Unsupported,
    /// Put the owner id and the finalizer on the object.
    Claim,
    Keep,
    /// Take away what was made.
    Delete,
    /// Nothing of ours is left: let the object go.
    Release,
}

/// What has to be read: what there is in the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskCloud {
    /// Whether everything that can be ours is looked for, to be deleted.
    pub is_deleting: bool,
}

impl Observed {
    /// What it is time for, from the stores alone.
    pub fn stage(&self) -> Stage {
        let meta = &self.object.metadata;
        if meta.annotations.as_ref().is_some_and(|all| all.contains_key(MANAGED_BY_ANNOTATION)) {
            return Stage::Foreign;
        }
        if self.paused().is_some() {
            return Stage::Paused;
        }
        if meta.deletion_timestamp.is_some() {
            let is_ours = self.has_finalizer();
            return match self.owner_id() {
                _ if !is_ours => Stage::Foreign,
                None if self.names_something() => Stage::MadeByAnother,
                None => Stage::Release,
                // What carries the id is the other's.
                Some(_) if self.copied_from.is_some() => Stage::Release,
                Some(_) => Stage::Delete,
            };
        }
        match &self.cluster {
            Read::Unknown(unknown) => Stage::Unknown(unknown.why.clone()),
            Read::Absent | Read::Many(_) => Stage::NoOwner,
            Read::One(_) if self.copied_from.is_some() => {
                Stage::Copied(self.copied_from.clone().unwrap_or_default())
            }
            Read::One(_) if self.owner_id().is_none() && self.names_something() => Stage::MadeByAnother,
            Read::One(_) if self.owner_id().is_none() || !self.has_finalizer() => Stage::Claim,
            Read::One(_) if !self.names_something() && endpoint::unsupported(self).is_some() => {
                Stage::Unsupported
            }
            Read::One(_) => Stage::Keep,
        }
    }

    /// Whether something was made or found for it, by whomever.
    fn names_something(&self) -> bool {
        self.object.status.as_ref().is_some_and(|status| {
            let groups = [&status.control_plane_security_group, &status.worker_security_group];
            status.network.is_some() || status.router.is_some() || groups.into_iter().any(Option::is_some)
        })
    }

    /// Whether it was created in the last ten minutes.
    pub(super) fn is_young(&self) -> bool {
        let created = self.object.metadata.creation_timestamp.as_ref();
        created.is_some_and(|created| self.now.duration_since(created.0) < SignedDuration::from_mins(10))
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
        finalizers.into_iter().any(|present| present == OPENSTACK_CLUSTER_FINALIZER)
    }

    /// The name of what is made. The Cluster's name, also while it is going away.
    pub fn resource_name(&self) -> String {
        let meta = &self.object.metadata;
        super::resource_name(meta.namespace.as_deref().unwrap_or_default(), &self.cluster_name())
    }

    /// The Cluster's name; the object's own where no Cluster is known.
    pub fn cluster_name(&self) -> String {
        let meta = &self.object.metadata;
        let label = meta.labels.as_ref().and_then(|all| all.get(hangar_api::names::CLUSTER_NAME_LABEL));
        let owner = self.cluster.iter().next().map(|cluster| &cluster.name);
        owner.or(label).or(meta.name.as_ref()).cloned().unwrap_or_default()
    }

    /// Whether network, subnet and router are made here.
    pub fn is_managed(&self) -> bool {
        !self.object.spec.managed_subnets.is_empty() || self.was_managed()
    }

    /// Whether what goes away had a managed network: one of our name is recorded, and the specification names none.
    /// Somebody took `managedSubnets` out of it, which is no reason to leave the network behind.
    fn was_managed(&self) -> bool {
        let (meta, spec) = (&self.object.metadata, &self.object.spec);
        let recorded = self.object.status.as_ref().and_then(|status| status.network.as_ref());
        meta.deletion_timestamp.is_some()
            && spec.network.is_none()
            && spec.subnets.is_empty()
            && recorded.is_some_and(|network| network.name == self.resource_name())
    }

    pub(super) fn has_no_external_network(&self) -> bool {
        self.object.spec.disable_external_network == Some(true)
    }
}

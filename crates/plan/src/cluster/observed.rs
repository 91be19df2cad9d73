//! Everything that decides about a Cluster, and what has to be read for it.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::names;
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::Timestamp;

use crate::flow::{Read, StepId};
use crate::referred::{self, Referred};

/// Everything that decides about a Cluster.
#[derive(Clone, Debug)]
pub struct Observed {
    pub cluster: Cluster,
    /// The object behind its infrastructure reference, if it has one.
    pub infrastructure: Option<Read<Referred>>,
    /// The object behind its control plane reference, if it has one.
    pub control_plane: Option<Read<Referred>>,
    pub deployments: Read<MachineDeployment>,
    pub sets: Read<MachineSet>,
    pub machines: Read<Machine>,
    /// How its API server answers.
    pub connection: Connection,
    /// Steps that were refused, in the words of who refused.
    pub refusals: BTreeMap<StepId, String>,
    pub now: Timestamp,
}

/// What has to be asked for: whether the tenant's API server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe;

/// How a tenant's API server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    NotTried,
    Answering,
    /// It does not.
    Failing {
        /// What the last call said.
        why: String,
        /// Whether it failed often enough to believe it.
        is_lasting: bool,
    },
}

#[cfg(test)]
impl crate::flow::doubt::Reads for Connection {
    fn reads(&mut self, doubt: &mut crate::flow::doubt::Doubt) {
        if *self == Self::Answering {
            let why = crate::flow::doubt::FAILED.to_owned();
            doubt.here(self, Self::Failing { why, is_lasting: false }, None);
        }
    }
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        cluster, infrastructure, control_plane, deployments, sets, machines, connection, refusals, now,
    };
}

/// Which of the two objects that a Cluster refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    Infrastructure,
    ControlPlane,
}

impl Reference {
    /// What it is called in step names.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure",
            Self::ControlPlane => "control-plane",
        }
    }
}

impl Observed {
    /// The reference to one of the two objects.
    pub fn reference(&self, which: Reference) -> Option<&ContractVersionedObjectReference> {
        match which {
            Reference::Infrastructure => self.cluster.spec.infrastructure_ref.as_ref(),
            Reference::ControlPlane => self.cluster.spec.control_plane_ref.as_ref(),
        }
    }

    pub(super) fn read(&self, which: Reference) -> Option<&Read<Referred>> {
        match which {
            Reference::Infrastructure => self.infrastructure.as_ref(),
            Reference::ControlPlane => self.control_plane.as_ref(),
        }
    }

    /// The object, where it is ours: what another Cluster refers to and owns is left to it, also when we go.
    pub(super) fn object(&self, which: Reference) -> Option<&Referred> {
        match self.read(which) {
            Some(Read::One(object)) if self.taken_by(object).is_none() => Some(object),
            _ => None,
        }
    }

    pub(super) fn taken_by<'object>(&self, object: &'object Referred) -> Option<&'object str> {
        let name = self.cluster.metadata.name.as_deref().unwrap_or_default();
        referred::other_cluster(&object.metadata, name)
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.cluster.metadata.deletion_timestamp.is_some()
    }

    /// Whether the API server should answer.
    pub(super) fn is_control_plane_initialized(&self) -> bool {
        let before = self.cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
        let was = before.is_some_and(|reached| reached.control_plane_initialized == Some(true));
        was || match &self.control_plane {
            Some(_) => self
                .object(Reference::ControlPlane)
                .is_some_and(|object| object.control_plane().is_initialized()),
            None => self.machines.iter().any(is_control_plane_node),
        }
    }
}

/// Without a control plane object, the first control plane Machine with a Node is the sign of life.
pub(super) fn is_control_plane_node(machine: &Machine) -> bool {
    is_control_plane(machine) && machine.status.as_ref().is_some_and(|status| status.node_ref.is_some())
}

pub(super) fn is_control_plane(machine: &Machine) -> bool {
    machine.metadata.labels.iter().flatten().any(|(name, _)| name == names::CONTROL_PLANE_LABEL)
}

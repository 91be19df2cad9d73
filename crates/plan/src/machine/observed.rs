//! Everything that decides about a Machine, and what has to be read from its tenant.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::Timestamp;

use super::{NodeView, PodFacts, delete};
use crate::flow::{Read, StepId};
use crate::referred::{self, Referred};

/// Everything that decides about a Machine.
#[derive(Clone, Debug)]
pub struct Observed {
    pub machine: Machine,
    pub cluster: Read<Cluster>,
    /// The object behind its bootstrap reference, if it has one.
    pub bootstrap: Option<Read<Referred>>,
    /// The object behind its infrastructure reference.
    pub infrastructure: Read<Referred>,
    /// The control plane of the cluster, if the Cluster refers to one.
    pub control_plane: Option<Read<Referred>>,
    /// Whether the cluster has Machines that are control plane nodes.
    pub has_control_plane_machines: bool,
    /// The set that manages it, if one does and is known.
    pub set: Option<MachineSet>,
    /// The deployment that manages the set, if one does and is known.
    pub deployment: Option<MachineDeployment>,
    /// Its Node in the tenant.
    pub node: NodeView,
    /// The pods on that Node; unknown unless they were asked for.
    pub pods: Read<PodFacts>,
    /// Steps that were refused, in the words of who refused.
    pub refusals: BTreeMap<StepId, String>,
    pub now: Timestamp,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        machine, cluster, bootstrap, infrastructure, control_plane, has_control_plane_machines, set, deployment, node,
        pods, refusals, now,
    };
    PodFacts,
}

/// Which of the two objects that a Machine refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    Bootstrap,
    Infrastructure,
}

impl Reference {
    /// What it is called in step names.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Bootstrap => "bootstrap",
            Self::Infrastructure => "infrastructure",
        }
    }
}

/// What to ask the tenant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TenantRead {
    /// The Node with this provider id, and the pods on it if they matter.
    FindNode {
        provider_id: String,
        with_pods: bool,
    },
    Node {
        name: String,
    },
    /// One Node and the pods on it.
    NodeAndPods {
        name: String,
    },
}

impl Observed {
    /// The reference to one of the two objects.
    pub fn reference(&self, which: Reference) -> Option<&ContractVersionedObjectReference> {
        match which {
            Reference::Bootstrap => self.machine.spec.bootstrap.config_ref.as_ref(),
            Reference::Infrastructure => Some(&self.machine.spec.infrastructure_ref),
        }
    }

    pub(super) fn read(&self, which: Reference) -> Option<&Read<Referred>> {
        match which {
            Reference::Bootstrap => self.bootstrap.as_ref(),
            Reference::Infrastructure => Some(&self.infrastructure),
        }
    }

    pub(super) fn object(&self, which: Reference) -> Option<&Referred> {
        match self.read(which) {
            Some(Read::One(object)) => Some(object),
            _ => None,
        }
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn the_cluster(&self) -> Option<&Cluster> {
        match &self.cluster {
            Read::One(cluster) => Some(cluster),
            _ => None,
        }
    }

    pub(super) fn is_paused(&self) -> Option<&'static str> {
        referred::paused(&self.machine.metadata, self.the_cluster())
    }

    pub(super) fn is_control_plane_initialized(&self) -> bool {
        let reached = self.the_cluster().and_then(|cluster| cluster.status.as_ref()?.initialization.as_ref());
        reached.is_some_and(|reached| reached.control_plane_initialized == Some(true))
    }

    pub(super) fn node_name(&self) -> Option<&str> {
        Some(self.machine.status.as_ref()?.node_ref.as_ref()?.name.as_str()).filter(|name| !name.is_empty())
    }
}

/// What the tenant has to be asked before a plan can be made. Everything else of the observation is there already.
pub fn tenant_read(observed: &Observed) -> Option<TenantRead> {
    if observed.is_paused().is_some() || !observed.is_control_plane_initialized() {
        return None;
    }
    match (observed.is_deleting(), observed.node_name()) {
        (true, _) => delete::tenant_read(observed),
        (false, Some(name)) => Some(TenantRead::Node { name: name.to_owned() }),
        (false, None) => {
            let provider_id = observed.machine.spec.provider_id.clone()?;
            Some(TenantRead::FindNode { provider_id, with_pods: false })
        }
    }
}

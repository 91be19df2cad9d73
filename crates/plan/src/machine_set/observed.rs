//! Everything that decides about a MachineSet. All of it is in the stores.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::flow::{Read, StepId};
use crate::referred;

/// Everything that decides about a MachineSet.
#[derive(Clone, Debug)]
pub struct Observed {
    pub set: MachineSet,
    pub cluster: Read<Cluster>,
    /// The version that the hosted control plane of the Cluster serves with. Absent: it has none, or it has not served.
    pub served_version: Read<String>,
    /// The MachineDeployment that manages it, if one does and is known.
    pub deployment: Option<MachineDeployment>,
    /// All Machines of the cluster in its namespace.
    pub machines: Read<Machine>,
    /// The template of bootstrap configurations, if the set names one.
    pub bootstrap_template: Option<Read<Template>>,
    /// The template of servers.
    pub infrastructure_template: Read<Template>,
    /// What exists under the names that the set's Machines refer to, by Machine.
    pub clones: BTreeMap<String, Clones>,
    /// Steps that were refused, in the words of who refused.
    pub refusals: BTreeMap<StepId, String>,
    pub now: Timestamp,
}

/// A template of a kind that is not known here.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The API version that it was read in, and that its clones are written in.
    pub api_version: String,
    pub metadata: ObjectMeta,
    /// Its `spec.template`, which is cloned.
    pub template: Value,
}

/// Which of a Machine's objects exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clones {
    /// Its bootstrap configuration, if it refers to one.
    pub bootstrap: Option<Read<()>>,
    pub infrastructure: Read<()>,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        set, cluster, served_version, deployment, machines, bootstrap_template, infrastructure_template, clones, refusals, now,
    }
    Clones { bootstrap, infrastructure };
    Template,
}

impl Observed {
    /// The Machines that the set manages, in the order of their names.
    pub fn members(&self) -> Vec<&Machine> {
        let uid = self.set.metadata.uid.as_deref().unwrap_or_default();
        self.machines.iter().filter(|machine| referred::is_controlled_by(&machine.metadata, uid)).collect()
    }

    pub(super) fn replicas(&self) -> usize {
        usize::try_from(self.set.spec.replicas.unwrap_or(1)).unwrap_or_default()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.set.metadata.deletion_timestamp.is_some()
    }
}

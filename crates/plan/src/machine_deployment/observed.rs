//! Everything that decides about a MachineDeployment. All of it is in the stores.

use std::collections::BTreeMap;

use hangar_api::cluster::rollout::RolloutStrategyType;
use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::conditions::Waiting;
use jiff::Timestamp;

use super::{Limits, revision};
use crate::flow::{Read, StepId};
use crate::machine_set::{template_obstacle, version_obstacle};
use crate::referred;

/// Everything that decides about a MachineDeployment.
#[derive(Clone, Debug)]
pub struct Observed {
    pub deployment: MachineDeployment,
    pub cluster: Read<Cluster>,
    /// The version that the hosted control plane of the Cluster serves with. Absent: it has none, or it has not served.
    pub served_version: Read<String>,
    /// All MachineSets of the cluster in its namespace.
    pub sets: Read<MachineSet>,
    /// All Machines of the cluster in its namespace.
    pub machines: Read<Machine>,
    /// The template of bootstrap configurations, if the deployment names one.
    pub bootstrap_template: Option<Read<()>>,
    /// The template of servers.
    pub infrastructure_template: Read<()>,
    /// Steps that were refused, in the words of who refused.
    pub refusals: BTreeMap<StepId, String>,
    pub now: Timestamp,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        deployment, cluster, served_version, sets, machines, bootstrap_template, infrastructure_template, refusals, now,
    };
}

impl Observed {
    /// The sets that the deployment manages, oldest first.
    pub fn members(&self) -> Vec<&MachineSet> {
        let uid = self.deployment.metadata.uid.as_deref().unwrap_or_default();
        let mut members: Vec<&MachineSet> =
            self.sets.iter().filter(|set| referred::is_controlled_by(&set.metadata, uid)).collect();
        members.sort_by_key(|set| {
            let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (created, set.metadata.name.clone())
        });
        members
    }

    pub(super) fn desired(&self) -> i32 {
        self.deployment.spec.replicas.unwrap_or(1).max(0)
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.deployment.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn is_paused_by_itself(&self) -> bool {
        self.deployment.spec.paused == Some(true)
    }

    /// Sets are replaced only when their Machines are, and this strategy waits for people to do that.
    pub(super) fn is_on_delete(&self) -> bool {
        let strategy = self.deployment.spec.rollout.as_ref().and_then(|rollout| rollout.strategy.as_ref());
        strategy.is_some_and(|strategy| strategy.r#type == RolloutStrategyType::OnDelete)
    }

    /// What has to happen before the set of the current template can be made; none when it can, or is there.
    pub(super) fn obstacle(&self) -> Option<Waiting> {
        let is_current = |set: &&MachineSet| {
            let is_living = set.metadata.deletion_timestamp.is_none();
            is_living && revision::is_current(&self.deployment, set, self.now)
        };
        if self.is_deleting() || self.members().iter().any(is_current) {
            return None;
        }
        let (bootstrap, infrastructure) = (&self.bootstrap_template, &self.infrastructure_template);
        let spec = &self.deployment.spec.template.spec;
        version_obstacle(spec, &self.served_version)
            .or_else(|| template_obstacle(spec, bootstrap.as_ref(), infrastructure))
    }

    pub(super) fn is_obstacle_unknown(&self) -> bool {
        let templates = self.bootstrap_template.iter().chain([&self.infrastructure_template]);
        self.served_version.is_unknown() || templates.into_iter().any(Read::is_unknown)
    }

    pub(super) fn limits(&self) -> Limits {
        let strategy = self.deployment.spec.rollout.as_ref().and_then(|rollout| rollout.strategy.as_ref());
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone()).unwrap_or_default();
        Limits::new(self.desired(), rolling.max_surge.as_ref(), rolling.max_unavailable.as_ref())
    }
}

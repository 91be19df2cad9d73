//! What the machines of a cluster share in OpenStack: a network with its subnet and router, and security groups.
//!
//! With `managedSubnets` the network, the subnet and the router are ours: made, kept, deleted. Without it they are
//! found by id or filter and only recorded. Security groups are ours when `managedSecurityGroups` is given.
//!
//! Invariants
//! - Nothing is created before the owner id and the finalizer are on the object, and nothing from an unknown read.
//! - Ours is what carries the owner id; everything else is left alone, also when it has our name.
//! - For a hosted control plane no floating IP and no load balancer is made. Its endpoint is written by the control
//!   plane; that it is not there yet is no error and does not keep the infrastructure from being ready.
//! - Deleting goes from the outside in: router interface, router, subnet, network, then groups; each waits for the one
//!   before to be gone in the cloud's own words.

mod assumed;
mod delete;
mod endpoint;
mod fold;
mod network;
mod observed;
mod security_groups;
mod status;
mod step;
mod unsupported;

#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::cluster::legacy_condition::LegacyCondition;
use hangar_api::conditions::Actor;
use hangar_api::infrastructure::v1beta1::OpenStackClusterStatus;
use hangar_api::names::OPENSTACK_CLUSTER_FINALIZER;
use jiff::Timestamp;
use kube::core::DynamicObject;

pub use observed::{AskCloud, CloudFacts, ClusterFacts, ControlPlane, Observed, Stage};
pub use security_groups::{ROLES, Role, group_name, rules_of};
pub use step::{Kind, NetworkStep, Step};

use crate::flow::{Identified as _, Never, Outcome, Plan, Planner, Wake};
use crate::openstack::{self, Access, CloudTrouble, Noted, Subject};

/// The name of the network, the subnet and the router of a cluster. People and tools know it.
pub fn resource_name(namespace: &str, cluster: &str) -> String {
    format!("k8s-clusterapi-cluster-{namespace}-{cluster}")
}

impl Planner for Observed {
    type Wanted = AskCloud;
    type Own = Never;
    type Tenant = Never;
    type Cloud = NetworkStep;
    type Status = OpenStackClusterStatus;
    type Object = DynamicObject;

    fn wanted(&self) -> Option<AskCloud> {
        match (&self.cloud, self.stage()) {
            (Access::NotAsked, Stage::Keep) => Some(AskCloud { is_deleting: false }),
            (Access::NotAsked, Stage::Delete) => Some(AskCloud { is_deleting: true }),
            _ => None,
        }
    }

    fn assume(&mut self, _: AskCloud) -> Option<AskCloud> {
        self.cloud = Access::Facts(CloudFacts::assumed(&self.object.spec));
        None
    }

    fn recall(&mut self, before: &Self) {
        self.cloud = before.cloud.clone();
    }

    fn plan(&self) -> Plan<Step, OpenStackClusterStatus> {
        let mut draft = Draft::new(self);
        match self.stage() {
            Stage::Paused | Stage::Foreign => draft.wake = Wake::OnChange,
            Stage::NoOwner => draft.wait(
                "Ready",
                "WaitingForCluster",
                Actor::Controller("the controller of Clusters".to_owned()),
                "a Cluster that owns this object",
            ),
            Stage::Unknown(why) => draft.unknown("Ready", &why),
            Stage::Copied(other) => draft.copied(&other),
            Stage::Release => {
                draft.step(openstack::release(&self.object.metadata, OPENSTACK_CLUSTER_FINALIZER));
            }
            Stage::Claim => draft.claim(),
            Stage::Delete => draft.with_cloud(delete::draft),
            Stage::Keep => draft.with_cloud(keep),
        }
        status::forget(&mut draft);
        draft.finish()
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        let condition = match step {
            Step::Write(_) => "Ready",
            Step::Cloud(step) => step.condition(),
            Step::Own(never) | Step::Tenant(never) => match *never {},
        };
        if let Some(id) = outcome.made() {
            self.troubles.remove(condition);
            fold::done(self, step, id);
        } else {
            let trouble = CloudTrouble::of_step("OpenStackRefused", &step.id(), outcome);
            self.troubles.insert(condition, trouble);
        }
        if outcome.ends_the_pass() {
            fold::forget(self, &step.id());
        }
    }
}

fn keep(draft: &mut Draft<'_>, facts: &CloudFacts) {
    network::draft(draft, facts);
    security_groups::draft(draft, facts);
    endpoint::draft(draft);
    unsupported::draft(draft);
    status::failure_domains(draft, facts);
    if draft.noted.iter().filter(|noted| noted.is_essential).all(Noted::is_good) {
        draft.status.ready = true;
        draft.status.initialization.get_or_insert_default().provisioned = Some(true);
    }
}

/// A plan in the making.
type Draft<'a> = openstack::Draft<'a, Observed>;

impl Subject for Observed {
    type Step = Step;
    type Status = OpenStackClusterStatus;
    type Facts = CloudFacts;

    /// As upstream looks at everything again: a repair of what people changed in the cloud.
    const RESYNC: Duration = Duration::from_secs(10 * 60);
    const POLL: Duration = Duration::from_secs(10);
    const MAIN_CONDITION: &'static str = "Ready";
    const ACCESS_CONDITION: &'static str = "OpenStackAuthenticationSucceeded";

    fn now(&self) -> Timestamp {
        self.now
    }

    fn is_paused(&self) -> bool {
        self.is_paused()
    }

    fn status(&self) -> Option<&OpenStackClusterStatus> {
        self.object.status.as_ref()
    }

    fn cloud(&self) -> &Access<CloudFacts> {
        &self.cloud
    }

    fn trouble_about(&self, type_: &str) -> Option<&CloudTrouble> {
        self.troubles.get(type_)
    }

    fn claim(&self) -> Step {
        openstack::claim(&self.object.metadata, &self.fresh_owner_id, OPENSTACK_CLUSTER_FINALIZER).into()
    }

    fn conditions(status: &mut OpenStackClusterStatus) -> &mut Vec<LegacyCondition> {
        &mut status.conditions
    }
}

//! Plans what the workers of a cluster share in OpenStack: a network with its subnet and router, and security groups.
//!
//! With `managedSubnets` the network, the subnet and the router are ours: we create, keep and delete them. Without it
//! they are found by id or filter and only recorded. Security groups are ours if `managedSecurityGroups` is given.
//!
//! Invariants
//! - Nothing is created before the owner id and the finalizer are on the object, and nothing from an unknown read.
//! - Only what carries the owner id is ours; everything else is left alone, even if it has the same name.
//! - For a hosted control plane no floating IP and no load balancer is created. The control plane writes its endpoint;
//!   until then its absence is no error, and the infrastructure can be ready without it.
//! - Deletion starts at the router: router interface, router, subnet, network, then groups. Each waits until the cloud
//!   no longer shows the one before.

mod assumed;
pub(crate) mod conditions;
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

use hangar_api::conditions::Finding;
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackClusterStatus};
use hangar_api::names::OPENSTACK_CLUSTER_FINALIZER;
use kube::core::DynamicObject;

pub use observed::{AskCloud, CloudFacts, ClusterFacts, ControlPlane, Observed, Stage};
pub use security_groups::{ROLES, Role, group_name};
pub use step::{NetworkStep, NewSubnet, ObjectId, Step};

use crate::flow::{self, Identified as _, Never, Outcome, Plan, Planner, has_root};
use crate::openstack::conditions::cloud;
use crate::openstack::{Access, CloudTrouble, InCloud};
use conditions::{api_endpoint_ready, authentication, ready, settings_effective};

/// As upstream reads everything again: a repair of what people changed in the cloud.
const RESYNC: Duration = Duration::from_secs(10 * 60);
/// While the object is young: a create whose answer was lost may come late, beside the one that replaced it.
const YOUNG_RESYNC: Duration = Duration::from_secs(60);

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
        let is_paused = draft.is_paused(self.paused());
        let stage = self.stage();
        if is_paused || stage == Stage::Foreign {
            return draft.finish();
        }
        draft.again(if self.is_young() { YOUNG_RESYNC } else { RESYNC });
        match stage {
            Stage::Paused | Stage::Foreign => {}
            Stage::NoOwner => draft.say(ready::WAITING_FOR_CLUSTER.waits("a Cluster that owns this object")),
            Stage::Unknown(why) => draft.unknown(ready::TYPE, &why),
            Stage::Copied(other) => draft.copied(&other),
            Stage::MadeByAnother => draft.made_by_another(),
            Stage::Unsupported => endpoint::draft(&mut draft),
            Stage::Release => draft.release(),
            Stage::Claim => draft.claim(),
            Stage::Delete => draft.with_cloud(authentication::TYPE, |draft, facts| {
                draft.say(authentication::AUTHENTICATED);
                delete::draft(draft, facts);
            }),
            Stage::Keep => draft.with_cloud(authentication::TYPE, keep),
        }
        draft.conclude(ready::TYPE, ready::READY);
        draft.finish()
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        let condition = match step {
            Step::Write(_) => ready::TYPE,
            Step::Cloud(step) => step.condition(),
            Step::Own(never) | Step::Tenant(never) => match *never {},
        };
        if let Some(id) = outcome.made() {
            self.troubles.remove(condition);
            fold::done(self, step, id);
        } else {
            let trouble = CloudTrouble::of_step(cloud::OPENSTACK_REFUSED, &step.id(), outcome);
            self.troubles.insert(condition, trouble);
        }
        if outcome.ends_the_pass() {
            fold::forget(self, &step.id());
        }
    }
}

fn keep(draft: &mut Draft<'_>, facts: &CloudFacts) {
    draft.say(authentication::AUTHENTICATED);
    network::draft(draft, facts);
    security_groups::draft(draft, facts);
    endpoint::draft(draft);
    unsupported::draft(draft);
    status::failure_domains(draft, facts);
    if draft.blocker().is_none() {
        draft.status.ready = true;
        draft.status.initialization.get_or_insert_default().provisioned = Some(true);
    }
}

type Draft<'a> = flow::Draft<'a, Observed>;

has_root!(OpenStackCluster in object);

impl InCloud for Observed {
    type Facts = CloudFacts;

    const POLL: Duration = Duration::from_secs(10);
    const FINALIZER: &'static str = OPENSTACK_CLUSTER_FINALIZER;
    const MAIN: &'static str = ready::TYPE;

    fn cloud(&self) -> &Access<CloudFacts> {
        &self.cloud
    }

    fn fresh_owner_id(&self) -> &str {
        &self.fresh_owner_id
    }

    fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    fn settling(&self) -> Duration {
        self.settling
    }

    fn trouble_about(&self, type_: &str) -> Option<&CloudTrouble> {
        self.troubles.get(type_)
    }

    /// The cluster is ready without fields that do nothing, and before the control plane says where it is.
    fn is_essential(finding: &Finding) -> bool {
        let is_beside = finding.type_() == settings_effective::TYPE
            || finding.reason() == api_endpoint_ready::WAITING_FOR_ENDPOINT.reason().name;
        !finding.is_good() && !is_beside
    }
}

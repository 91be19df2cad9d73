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

mod delete;
mod endpoint;
mod network;
mod observed;
mod security_groups;
mod status;
mod step;
mod unsupported;

#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::infrastructure::v1beta1::OpenStackClusterStatus;
use jiff::Timestamp;

pub use observed::{CloudFacts, ClusterFacts, ControlPlane, Observed, Stage};
pub use security_groups::{ROLES, Role, group_name, rules_of};
pub use step::{Kind, Step, fold};

use crate::flow::{self, Frontier, Plan, Report, Wake};
use crate::openstack::{Access, Noted, OWNER_ID_ANNOTATION};

/// As upstream looks at everything again: a repair of what people changed in the cloud.
const RESYNC: Duration = Duration::from_secs(10 * 60);
/// The cloud is working, or something that is not watched must change.
const POLL: Duration = Duration::from_secs(10);

/// The name of the network, the subnet and the router of a cluster. People and tools know it.
pub fn resource_name(namespace: &str, cluster: &str) -> String {
    format!("k8s-clusterapi-cluster-{namespace}-{cluster}")
}

/// What to do about one OpenStackCluster.
pub fn plan(observed: &Observed) -> Plan<Step, OpenStackClusterStatus, ()> {
    let mut draft = Draft::new(observed);
    match observed.stage() {
        Stage::Paused | Stage::Foreign => draft.wake = Wake::OnChange,
        Stage::NoOwner => draft.wait(
            "Ready",
            "WaitingForCluster",
            Actor::Controller("the controller of Clusters".to_owned()),
            "a Cluster that owns this object",
        ),
        Stage::Unknown(why) => draft.unknown("Ready", &why),
        Stage::Copied(other) => draft.broken(
            "Ready",
            "OwnerIdCopied",
            &format!("the annotation {OWNER_ID_ANNOTATION} to be removed"),
            &format!("it was copied from {other}, and what carries it in the cloud belongs there"),
        ),
        Stage::Release => draft.steps.push(Step::Release),
        Stage::Claim => draft.claim(),
        Stage::Delete => draft.with_cloud(delete::draft),
        Stage::Keep => draft.with_cloud(keep),
    }
    draft.finish()
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
struct Draft<'a> {
    observed: &'a Observed,
    steps: Frontier<Step>,
    status: OpenStackClusterStatus,
    noted: Vec<Noted>,
    report: Report,
    wake: Wake,
}

impl<'a> Draft<'a> {
    fn new(observed: &'a Observed) -> Self {
        Self {
            observed,
            steps: Frontier::default(),
            status: observed.object.status.clone().unwrap_or_default(),
            noted: Vec::new(),
            report: Report::default(),
            wake: Wake::after(observed.now, RESYNC),
        }
    }

    fn now(&self) -> Timestamp {
        self.observed.now
    }

    fn claim(&mut self) {
        self.report
            .decide("mark the object with an owner id", "everything that is made for it carries that id");
        self.steps.push(Step::Claim { owner_id: self.observed.fresh_owner_id.clone() });
        self.wait("Ready", "Starting", Actor::Hangar, "the owner id to be written");
    }

    fn with_cloud(&mut self, work: fn(&mut Draft<'a>, &CloudFacts)) {
        const TYPE: &str = "OpenStackAuthenticationSucceeded";
        match &self.observed.cloud {
            Access::NotAsked => self.unknown(TYPE, "the cloud was not asked"),
            Access::Trouble(trouble) => {
                let waiting = Waiting::new(trouble.actor.clone(), "access to the cloud")
                    .because(trouble.message.clone());
                self.report.wait(trouble.message.clone(), None, flow::Actor::from(&trouble.actor));
                self.noted.push(Noted::fails(TYPE, trouble.reason, &waiting));
                self.wake = self.wake.sooner(Wake::after(self.now(), POLL));
            }
            Access::Facts(facts) => {
                self.noted.push(Noted::holds(TYPE, "Authenticated"));
                work(self, facts);
            }
        }
    }

    fn wait(&mut self, type_: &str, reason: &str, actor: Actor, on: &str) {
        self.report.wait(on, None, flow::Actor::from(&actor));
        self.noted.push(Noted::waits(type_, reason, &Waiting::new(actor, on)));
    }

    /// Something is being done; what went wrong so far is added.
    fn working(&mut self, type_: &str, on: &str) {
        let waiting = Waiting::new(Actor::Hangar, on);
        match self.observed.trouble_about(type_) {
            None => self.noted.push(Noted::waits(type_, "Working", &waiting)),
            Some(trouble) => {
                let waiting =
                    Waiting { actor: trouble.actor.clone(), ..waiting.because(trouble.message.clone()) };
                self.noted.push(Noted::fails(type_, trouble.reason, &waiting));
                self.wake = self.wake.sooner(Wake::after(self.now(), POLL));
            }
        }
    }

    /// The specification, or what it names, has to change.
    fn broken(&mut self, type_: &str, reason: &str, on: &str, why: &str) {
        self.report.wait(on, None, flow::Actor::ClusterOwner);
        let waiting = Waiting::new(Actor::ClusterOwner, on).because(why);
        self.noted.push(Noted::fails(type_, reason, &waiting));
        self.wake = self.wake.sooner(Wake::after(self.now(), POLL));
    }

    fn unknown(&mut self, type_: &str, why: &str) {
        let waiting = Waiting::new(Actor::Hangar, "a look at what there is").because(why);
        self.report.wait(why, None, flow::Actor::Hangar);
        self.noted.push(Noted::unknown(type_, "NotYetKnown", &waiting));
        self.wake = self.wake.sooner(Wake::after(self.now(), POLL));
    }

    fn finish(mut self) -> Plan<Step, OpenStackClusterStatus, ()> {
        status::conditions(&mut self);
        Plan {
            objects: Vec::new(),
            steps: self.steps,
            status: self.status,
            report: self.report,
            wake: self.wake,
        }
    }
}

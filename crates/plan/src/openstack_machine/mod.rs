//! One OpenStack server that becomes a node: its ports, the server itself, and its end.
//!
//! Invariants
//! - Before anything is created everything it needs is found: image, flavor, networks, subnets, groups, server group,
//!   key, user data of a length that Nova takes. What is missing is reported together.
//! - Ports come first, with names that follow from the machine's and the owner id in their description; the server is
//!   bound to them. A create whose answer was lost is found in the list, which has a server from the moment Nova takes
//!   it; a port that is bound refuses another, and as long as it is bound to a server that no list shows, nothing is
//!   created. Should there be two all the same (Nova takes a second one while the first is being built, and fails it
//!   later), the one that a port is bound to is kept.
//! - A server that was there and is gone is not made again: its node is gone with its disk. The Machine's owner decides.
//! - Which ports a machine has cannot be changed: their names are recorded before the server is made, and as long as
//!   `spec.ports` gives others nothing is made and nothing is deleted. So no port is left behind.
//! - A failed server is told with Nova's own words and left to the Machine's owner; nothing is terminal here.
//! - Deleting takes the server, waits until it is gone, then the ports; only what carries our owner id.

mod delete;
mod observed;
mod ports;
mod preflight;
mod server;
mod status;
mod step;

#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::infrastructure::v1beta1::OpenStackMachineStatus;

pub use observed::{
    CloudFacts, ClusterFacts, InfrastructureFacts, MachineFacts, Observed, PortFacts, Stage, UserData,
};
pub use ports::{WantedFixedIp, WantedPort, wanted_ports};
pub use preflight::MAXIMUM_USER_DATA;
pub use step::{Step, fold};

use crate::flow::{self, Frontier, Plan, Report, Wake};
use crate::openstack::{Access, Noted, OWNER_ID_ANNOTATION};

/// The one that tools look at.
const TYPE: &str = "InstanceReady";
/// A server is being made or deleted.
const BUSY: Duration = Duration::from_secs(2);
/// Something must change that we do not watch.
const POLL: Duration = Duration::from_secs(15);
/// A server that runs is looked at now and then: it may be stopped or deleted by others.
const RESYNC: Duration = Duration::from_secs(2 * 60);

/// What to do about one OpenStackMachine.
pub fn plan(observed: &Observed) -> Plan<Step, OpenStackMachineStatus, ()> {
    let mut draft = Draft::new(observed);
    match observed.stage() {
        Stage::Paused | Stage::Foreign => draft.wake = Wake::OnChange,
        Stage::Wait { reason, on } => {
            let actor = Actor::Controller("Cluster API".to_owned());
            draft.wait(reason, actor, on);
            draft.wake = Wake::OnChange;
        }
        Stage::Unknown(why) => draft.unknown(&why),
        Stage::Unsupported(fields) => {
            let why = fields.join("; ");
            draft.broken("InvalidMachineSpec", "a specification that can be honoured", &why);
        }
        Stage::Copied(other) => draft.broken(
            "OwnerIdCopied",
            &format!("the annotation {OWNER_ID_ANNOTATION} to be removed"),
            &format!("it was copied from {other}, and what carries it in the cloud belongs there"),
        ),
        Stage::PortsChanged(names) => draft.broken(
            "PortsChanged",
            &format!("spec.ports to be what it was; the ports that were made are called {names}"),
            "ports are made once, and would not be found again by other names",
        ),
        Stage::Release => draft.steps.push(Step::Release),
        Stage::Claim => {
            draft.report.decide("mark the object with an owner id", "everything made for it carries that id");
            draft.steps.push(Step::Claim { owner_id: observed.fresh_owner_id.clone() });
            draft.wait("Starting", Actor::Hangar, "the owner id to be written");
        }
        Stage::Delete => draft.with_cloud(delete::draft),
        Stage::Keep => draft.with_cloud(server::draft),
    }
    draft.finish()
}

/// A plan in the making.
struct Draft<'a> {
    observed: &'a Observed,
    steps: Frontier<Step>,
    status: OpenStackMachineStatus,
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

    fn again(&mut self, after: Duration) {
        self.wake = self.wake.sooner(Wake::after(self.observed.now, after));
    }

    fn with_cloud(&mut self, work: fn(&mut Draft<'a>, &CloudFacts)) {
        match &self.observed.cloud {
            Access::NotAsked => self.unknown("the cloud was not asked"),
            Access::Trouble(trouble) => {
                let waiting = Waiting::new(trouble.actor.clone(), "access to the cloud")
                    .because(trouble.message.clone());
                self.report.wait(trouble.message.clone(), None, flow::Actor::from(&trouble.actor));
                self.noted.push(Noted::fails(TYPE, trouble.reason, &waiting));
                self.again(POLL);
            }
            Access::Facts(facts) => work(self, facts),
        }
    }

    fn wait(&mut self, reason: &str, actor: Actor, on: &str) {
        self.report.wait(on, None, flow::Actor::from(&actor));
        self.noted.push(Noted::waits(TYPE, reason, &Waiting::new(actor, on)));
    }

    /// Something is being done; what went wrong so far is added.
    fn working(&mut self, reason: &str, on: &str) {
        match &self.observed.trouble {
            None => self.wait(reason, Actor::Hangar, on),
            Some(trouble) => {
                self.report.wait(trouble.message.clone(), None, flow::Actor::from(&trouble.actor));
                let waiting = Waiting::new(trouble.actor.clone(), on).because(trouble.message.clone());
                self.noted.push(Noted::fails(TYPE, trouble.reason, &waiting));
                self.again(POLL);
            }
        }
    }

    /// The specification, or what it names, has to change.
    fn broken(&mut self, reason: &str, on: &str, why: &str) {
        self.report.wait(on, None, flow::Actor::ClusterOwner);
        let waiting = Waiting::new(Actor::ClusterOwner, on).because(why);
        self.noted.push(Noted::fails(TYPE, reason, &waiting));
        self.again(POLL);
    }

    fn unknown(&mut self, why: &str) {
        let waiting = Waiting::new(Actor::Hangar, "a look at what there is").because(why);
        self.report.wait(why, None, flow::Actor::Hangar);
        self.noted.push(Noted::unknown(TYPE, "NotYetKnown", &waiting));
        self.again(POLL);
    }

    fn finish(mut self) -> Plan<Step, OpenStackMachineStatus, ()> {
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

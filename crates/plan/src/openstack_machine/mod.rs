//! One OpenStack server that becomes a node. How it is made, watched and deleted is in [`crate::openstack::server`].
//!
//! Invariants
//! - A server that was there and is gone is not made again: its node is gone with its disk. The Machine's owner decides.
//! - Which ports a machine has cannot be changed: their names are recorded before the server is made, and as long as
//!   `spec.ports` gives others nothing is made and nothing is deleted. So no port is left behind.
//! - A failed server is told with Nova's own words and left to the Machine's owner; nothing is terminal here.

mod fold;
mod observed;
mod server;
mod status;
#[cfg(test)]
mod tests;
mod unsupported;
mod wanted;

use std::time::Duration;

use hangar_api::cluster::legacy_condition::LegacyCondition;
use hangar_api::conditions::Actor;
use hangar_api::infrastructure::v1beta1::OpenStackMachineStatus;
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use jiff::Timestamp;
use kube::core::DynamicObject;

pub use observed::{ClusterFacts, InfrastructureFacts, MachineFacts, Observed, Stage, Wanted};

use crate::flow::{Identified as _, Never, Outcome, Plan, Planner, Wake};
use crate::openstack::server::{Preflight, ServerFacts, ServerStep, Step};
use crate::openstack::{self, Access, CloudTrouble, Subject};

/// The one that tools look at.
const TYPE: &str = "InstanceReady";
/// Something must change that we do not watch.
const POLL: Duration = Duration::from_secs(15);

impl Planner for Observed {
    type Wanted = Wanted;
    type Own = Never;
    type Tenant = Never;
    type Cloud = ServerStep;
    type Status = OpenStackMachineStatus;
    type Object = DynamicObject;

    fn wanted(&self) -> Option<Wanted> {
        match (&self.cloud, self.stage()) {
            (Access::NotAsked, Stage::Keep) => {
                // It is said once a server runs, failed or is gone, and never before one is made.
                let is_over = self.object.status.as_ref().is_some_and(|status| status.ready.is_some());
                Some(Wanted::Servers { is_deleting: false, is_live: !is_over })
            }
            (Access::NotAsked, Stage::Delete) => Some(Wanted::Servers { is_deleting: true, is_live: true }),
            (Access::Facts(facts), Stage::Keep) if facts.lacks_preflight() && !self.was_made() => {
                Some(Wanted::Preflight)
            }
            _ => None,
        }
    }

    fn assume(&mut self, wanted: Wanted) -> Option<Wanted> {
        let server = self.wanted_server();
        match (wanted, &mut self.cloud) {
            (Wanted::Preflight, Access::Facts(facts)) => facts.preflight = Some(Preflight::assumed(&server)),
            (Wanted::Servers { .. } | Wanted::Preflight, cloud) => {
                *cloud = Access::Facts(ServerFacts::none(&server));
            }
        }
        None
    }

    fn recall(&mut self, before: &Self) {
        self.cloud = before.cloud.clone();
    }

    fn plan(&self) -> Plan<Step, OpenStackMachineStatus> {
        let mut draft = Draft::new(self);
        match self.stage() {
            Stage::Paused | Stage::Foreign => draft.wake = Wake::OnChange,
            Stage::Wait { reason, on } => {
                let actor = Actor::Controller("Cluster API".to_owned());
                draft.wait(TYPE, reason, actor, on);
                draft.wake = Wake::OnChange;
            }
            Stage::Unknown(why) => draft.unknown(TYPE, &why),
            Stage::Unsupported(fields) => {
                let why = fields.join("; ");
                draft.broken(TYPE, "InvalidMachineSpec", "a specification that can be honoured", &why);
            }
            Stage::Copied(other) => draft.copied(&other),
            Stage::PortsChanged(names) => draft.broken(
                TYPE,
                "PortsChanged",
                &format!("spec.ports to be what it was; the ports that were made are called {names}"),
                "ports are made once, and would not be found again by other names",
            ),
            Stage::Release => {
                draft.step(openstack::release(&self.object.metadata, OPENSTACK_MACHINE_FINALIZER));
            }
            Stage::Claim => draft.claim(),
            Stage::Delete => draft.with_cloud(server::delete),
            Stage::Keep => draft.with_cloud(server::keep),
        }
        draft.finish()
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        if let Some(id) = outcome.made() {
            self.trouble = None;
            fold::done(self, step, id);
        } else {
            let reason = match step {
                Step::Cloud(step) => step.reason(),
                Step::Write(_) => "ObjectNotWritten",
                Step::Own(never) | Step::Tenant(never) => match *never {},
            };
            self.trouble = Some(CloudTrouble::of_step(reason, &step.id(), outcome));
        }
        if let (true, Some(facts)) = (outcome.ends_the_pass(), self.cloud.facts_mut()) {
            facts.forget(&format!("the answer to {} was lost", step.id()));
        }
    }
}

/// A plan in the making.
type Draft<'a> = openstack::Draft<'a, Observed>;

impl Subject for Observed {
    type Step = Step;
    type Status = OpenStackMachineStatus;
    type Facts = ServerFacts;

    /// A server that runs is looked at now and then: it may be stopped or deleted by others.
    const RESYNC: Duration = Duration::from_secs(2 * 60);
    const POLL: Duration = POLL;
    const MAIN_CONDITION: &'static str = TYPE;
    const ACCESS_CONDITION: &'static str = TYPE;

    fn now(&self) -> Timestamp {
        self.now
    }

    fn is_paused(&self) -> bool {
        self.is_paused()
    }

    fn status(&self) -> Option<&OpenStackMachineStatus> {
        self.object.status.as_ref()
    }

    fn cloud(&self) -> &Access<ServerFacts> {
        &self.cloud
    }

    fn trouble_about(&self, _: &str) -> Option<&CloudTrouble> {
        self.trouble.as_ref()
    }

    fn claim(&self) -> Step {
        openstack::claim(&self.object.metadata, &self.fresh_owner_id, OPENSTACK_MACHINE_FINALIZER).into()
    }

    fn conditions(status: &mut OpenStackMachineStatus) -> &mut Vec<LegacyCondition> {
        &mut status.conditions
    }
}

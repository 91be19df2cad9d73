//! Plans an OpenStackMachine: one server that becomes a Node. How a server is created, observed and deleted is in
//! [`crate::openstack::server`].
//!
//! Invariants
//! - A server that existed and is gone is not created again, because the Node's disk is gone too. The Machine's owner
//!   decides.
//! - The ports of an OpenStackMachine cannot be changed: their names are recorded before the server is created, and as
//!   long as `spec.ports` differs from them, nothing is created or deleted. So no port is left behind.
//! - A failed server is reported in Nova's own words and left to the Machine's owner; no failure here is terminal.

pub(crate) mod conditions;
mod fold;
mod observed;
mod server;
mod status;
#[cfg(test)]
mod tests;
mod unsupported;
mod wanted;

use std::time::Duration;

use hangar_api::infrastructure::v1beta1::{OpenStackMachine, OpenStackMachineStatus};
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use kube::core::DynamicObject;

pub use observed::{ClusterFacts, InfrastructureFacts, MachineFacts, Observed, Stage, Wanted};

use crate::flow::{self, Identified as _, Never, Outcome, Plan, Planner, has_root};
use crate::openstack::server::{Preflight, ServerFacts, ServerStep, Step};
use crate::openstack::{Access, CloudTrouble, InCloud};
use conditions::{instance_ready, ready};

/// A server that runs is read now and then: it may be stopped or deleted by others.
const RESYNC: Duration = Duration::from_secs(2 * 60);
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
        if draft.is_paused(self.paused()) {
            return draft.finish();
        }
        let stage = self.stage();
        if !matches!(stage, Stage::Foreign | Stage::Wait { .. }) {
            draft.again(RESYNC);
        }
        match stage {
            Stage::Paused | Stage::Foreign => {}
            Stage::Wait { reason, on } => draft.say(reason.waits(on)),
            Stage::Unknown(why) => draft.unknown(instance_ready::TYPE, &why),
            Stage::Unsupported(fields) => draft.broken(
                instance_ready::INVALID_MACHINE_SPEC,
                "a specification that can be honoured",
                fields.join("; "),
            ),
            Stage::Copied(other) => draft.copied(&other),
            Stage::MadeByAnother => draft.made_by_another(),
            Stage::PortsChanged(names) => draft.broken(
                instance_ready::PORTS_CHANGED,
                &format!("spec.ports to be what it was; the ports that were made are called {names}"),
                "ports are made once, and would not be found again by other names",
            ),
            Stage::Release => draft.release(),
            Stage::Claim => draft.claim(),
            Stage::Delete => draft.with_cloud(instance_ready::TYPE, server::delete),
            Stage::Keep => draft.with_cloud(instance_ready::TYPE, server::keep),
        }
        draft.conclude(ready::TYPE, ready::READY);
        draft.finish()
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        if let Some(id) = outcome.made() {
            self.trouble = None;
            fold::done(self, step, id);
        } else {
            let reason = match step {
                Step::Cloud(step) => step.reason(),
                Step::Write(_) => crate::openstack::conditions::server::OBJECT_NOT_WRITTEN,
                Step::Own(never) | Step::Tenant(never) => match *never {},
            };
            self.trouble = Some(CloudTrouble::of_step(reason, &step.id(), outcome));
        }
        if let (true, Some(facts)) = (outcome.ends_the_pass(), self.cloud.facts_mut()) {
            facts.forget(&format!("the answer to {} was lost", step.id()));
        }
    }
}

type Draft<'a> = flow::Draft<'a, Observed>;

has_root!(OpenStackMachine in object);

impl InCloud for Observed {
    type Facts = ServerFacts;

    const POLL: Duration = POLL;
    const FINALIZER: &'static str = OPENSTACK_MACHINE_FINALIZER;
    const MAIN: &'static str = instance_ready::TYPE;

    fn cloud(&self) -> &Access<ServerFacts> {
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

    fn trouble_about(&self, _: &str) -> Option<&CloudTrouble> {
        self.trouble.as_ref()
    }
}

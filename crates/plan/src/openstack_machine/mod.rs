//! One OpenStack server that becomes a node: its ports, the server itself, and its end.
//!
//! Invariants
//! - Before anything is created everything it needs is found: image, flavor, networks, subnets, groups, server group,
//!   key, user data of a length that Nova takes. What is missing is reported together.
//! - Ports come first, with names that follow from the machine's and the owner id in their description; the server is
//!   bound to them. A create whose answer was lost is found in the list, which has a server from the moment Nova takes
//!   it; until then, and as long as a port is bound to a server that no list shows, nothing is created (`request`).
//!   Should there be two all the same, the one that a port is bound to is kept.
//! - A server is ready when it is ACTIVE and all its ports are bound to it.
//! - A server that was there and is gone is not made again: its node is gone with its disk. The Machine's owner decides.
//! - Which ports a machine has cannot be changed: their names are recorded before the server is made, and as long as
//!   `spec.ports` gives others nothing is made and nothing is deleted. So no port is left behind.
//! - A failed server is told with Nova's own words and left to the Machine's owner; nothing is terminal here.
//! - Deleting takes the server, waits until it is gone, then the ports; only what carries our owner id.

mod delete;
mod fold;
mod observed;
mod ports;
mod preflight;
mod request;
mod server;
mod status;
mod step;

#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::cluster::legacy_condition::LegacyCondition;
use hangar_api::conditions::Actor;
use hangar_api::infrastructure::v1beta1::OpenStackMachineStatus;
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use jiff::Timestamp;
use kube::core::DynamicObject;

pub use fold::fold;
pub use observed::{
    CloudFacts, ClusterFacts, InfrastructureFacts, MachineFacts, Observed, PortFacts, Preflight, Stage,
    UserData, Wanted,
};
pub use ports::{WantedFixedIp, WantedPort, wanted_ports};
pub use preflight::MAXIMUM_USER_DATA;
pub use step::{NewServer, ServerStep, Step};

use crate::flow::{Never, Outcome, Plan, Planner, Wake};
use crate::openstack::{self, Access, CloudTrouble, Subject};

/// The one that tools look at.
const TYPE: &str = "InstanceReady";
/// A server is being made or deleted.
const BUSY: Duration = Duration::from_secs(2);
/// Something must change that we do not watch.
const POLL: Duration = Duration::from_secs(15);

/// Decides about OpenStackMachines.
pub struct OpenStackMachinePlanner;

impl Planner for OpenStackMachinePlanner {
    type Observed = Observed;
    type Wanted = Wanted;
    type Own = Never;
    type Tenant = Never;
    type Cloud = ServerStep;
    type Status = OpenStackMachineStatus;
    type Object = DynamicObject;

    fn wanted(observed: &Observed) -> Option<Wanted> {
        observed.wanted()
    }

    fn plan(observed: &Observed) -> Plan<Step, OpenStackMachineStatus> {
        plan(observed)
    }

    fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
        fold(observed, step, outcome);
    }
}

/// What to do about one OpenStackMachine.
pub fn plan(observed: &Observed) -> Plan<Step, OpenStackMachineStatus> {
    let mut draft = Draft::new(observed);
    match observed.stage() {
        Stage::Paused | Stage::Foreign => draft.wake = Wake::OnChange,
        Stage::Wait { reason, on } => {
            let actor = Actor::controller("Cluster API");
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
            draft.step(openstack::release(&observed.object.metadata, OPENSTACK_MACHINE_FINALIZER));
        }
        Stage::Claim => draft.claim(),
        Stage::Delete => draft.with_cloud(delete::draft),
        Stage::Keep => draft.with_cloud(server::draft),
    }
    draft.finish()
}

/// A plan in the making.
type Draft<'a> = openstack::Draft<'a, Observed>;

impl Subject for Observed {
    type Step = Step;
    type Status = OpenStackMachineStatus;
    type Facts = CloudFacts;

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

    fn cloud(&self) -> &Access<CloudFacts> {
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

//! Plans a Machine: from bootstrap data to a server to a Node, and its deletion in the other order.
//!
//! Bootstrap and infrastructure are read by contract, whatever the provider. A Node belongs to the Machine if its
//! provider id names the same server ([`node`]); it is searched only while the Machine has none. Only what the stage
//! needs is read from the tenant ([`tenant_read`]). A tenant that cannot be reached is reported and waited for; its objects
//! never count as absent.
//!
//! Deletion (`delete`): hooks, drain, hooks, server, bootstrap configuration, Node, finalizer. The Node is deleted
//! after its server, because a kubelet that still runs could register it again. Each stage is derived from what still
//! exists.

pub(crate) mod conditions;
mod delete;
pub mod drain;
mod fold;
pub mod node;
mod observed;
mod status;
mod step;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::cluster::v1beta2::{Machine, MachineSet, MachineStatus};
use hangar_api::contract::InfrastructureMachine;
use hangar_api::names;
use kube::core::DynamicObject;
use serde_json::json;

pub use drain::{PodFacts, PodKey};
pub use node::{NodeFacts, NodePatch, NodeView};
pub use observed::{Observed, Reference, TenantRead, tenant_read};
pub use step::{NodeStep, Step};

use crate::flow::{
    self, NOT_CALLED, Never, Outcome, Plan, Planner, Read, StepId, Target, Wake, Write, has_root,
};
use crate::referred::{self, Claiming, Referred};

/// A change of its Node wakes a Machine; this catches what a watch cannot show, such as a tenant that is away.
const NODE_SICK_INTERVAL: Duration = Duration::from_secs(10);
/// Keeps the watch of the tenant's Nodes alive while there are Machines; it costs no call.
const NODE_WELL_INTERVAL: Duration = Duration::from_mins(5);
/// Pods end within their grace period, which is 30 s for most.
const DRAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Objects that are missing are woken by their appearance; this only catches what a watch cannot show.
const MISSING_INTERVAL: Duration = Duration::from_secs(30);

/// What the object is called in step names.
const NAME: &str = "machine";

impl Planner for Observed {
    type Wanted = TenantRead;
    type Own = Never;
    type Tenant = NodeStep;
    type Cloud = Never;
    type Status = MachineStatus;
    type Object = DynamicObject;

    fn wanted(&self) -> Option<TenantRead> {
        if self.node == NodeView::NotLooked { tenant_read(self) } else { None }
    }

    fn assume(&mut self, _: TenantRead) -> Option<TenantRead> {
        self.node = NodeView::Unreachable(NOT_CALLED.to_owned());
        None
    }

    fn plan(&self) -> Plan<Step, MachineStatus> {
        let mut draft = Draft::new(self);
        if draft.is_paused(self.is_paused()) {
            return draft.finish();
        }
        if draft.is_deleting() {
            delete::draft(&mut draft);
        } else {
            draft.say(conditions::deleting::NOT_DELETING);
            if self.cluster.is_unknown() {
                // Whether it is paused cannot be told, so nothing is changed.
                draft.again(MISSING_INTERVAL);
            } else if draft.has_finalizer(names::MACHINE_FINALIZER) {
                provision(&mut draft);
            } else {
                draft.step(Write::add_finalizer(draft.metadata(), names::MACHINE_FINALIZER, NAME));
            }
            draft.wake_at(wake(self));
        }
        status::draft(&mut draft);
        draft.finish()
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        self.refusals.extend(outcome.refusal(step));
        if outcome.is_success() {
            match step {
                Step::Write(write) => self.written(write),
                Step::Tenant(step) => self.done_in_tenant(step),
                Step::Own(never) | Step::Cloud(never) => match *never {},
            }
        }
    }
}

type Draft<'a> = flow::Draft<'a, Observed>;

has_root!(
    Machine in machine,
    conditions::ready::TYPE => "Ready",
    conditions::bootstrap_config_ready::TYPE => "BootstrapReady",
    conditions::infrastructure_ready::TYPE => "InfrastructureReady",
    conditions::node_healthy::TYPE => "NodeHealthy"
);

fn provision(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let Some(cluster) = observed.the_cluster() else { return };
    let metadata = &observed.machine.metadata;
    let name = &observed.machine.spec.cluster_name;
    draft.join(cluster, name, NAME);
    let owner = referred::owner::<Machine>(metadata, true);
    for which in [Reference::Bootstrap, Reference::Infrastructure] {
        let (Some(reference), Some(object)) = (observed.reference(which), observed.object(which)) else {
            continue;
        };
        if object.is_terminating() {
            continue;
        }
        if let Claiming::Needs(claim) = object.claiming(&owner, name, Some(referred::is_kind::<MachineSet>)) {
            let (id, target) =
                (StepId::new("claim", which.as_str(), ""), Target::referred(reference, object.uid()));
            draft.step(Write::claim(id, target, &claim));
        }
    }
    draft.steps.extend(notes(observed));
    if let NodeView::Found(node) = &observed.node
        && let Some(patch) = node::patch(node, &observed.machine)
    {
        draft.steps.push(Step::Tenant(NodeStep::Patch { name: node.name.clone(), patch }));
    }
}

/// Facts that the providers know now and the Machine's spec does not: a step for each provider, since one may be
/// readable while the other is not.
fn notes(observed: &Observed) -> impl Iterator<Item = Step> {
    let spec = &observed.machine.spec;
    let is_empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
    let data_secret_name = observed
        .object(Reference::Bootstrap)
        .map(Referred::bootstrap)
        .filter(|view| view.is_data_secret_created() && is_empty(&spec.bootstrap.data_secret_name))
        .and_then(|view| view.data_secret_name().map(str::to_owned));
    let server = observed.object(Reference::Infrastructure).map(Referred::infrastructure_machine);
    let server = server.filter(InfrastructureMachine::is_provisioned);
    let provider_id = server
        .and_then(|view| view.provider_id().map(str::to_owned))
        .filter(|id| spec.provider_id.as_ref() != Some(id));
    let failure_domain = server
        .and_then(|view| view.failure_domain().map(str::to_owned))
        .filter(|_| is_empty(&spec.failure_domain));
    let bootstrap = data_secret_name.map(|name| json!({ "bootstrap": { "dataSecretName": name } }));
    let mut server = serde_json::Map::new();
    server.extend(provider_id.map(|id| ("providerID".to_owned(), json!(id))));
    server.extend(failure_domain.map(|domain| ("failureDomain".to_owned(), json!(domain))));
    let server = (!server.is_empty()).then_some(json!(server));
    let note = |(which, spec): (Reference, serde_json::Value)| {
        Write::itself(StepId::new("note", which.as_str(), ""), json!({ "spec": spec })).into()
    };
    let bootstrap = bootstrap.map(|spec| (Reference::Bootstrap, spec));
    bootstrap.into_iter().chain(server.map(|spec| (Reference::Infrastructure, spec))).map(note)
}

fn wake(observed: &Observed) -> Wake {
    let after = |length| Wake::after(observed.now, length);
    let is_missing = |which| matches!(observed.read(which), Some(Read::Absent | Read::Unknown(_)));
    let missing = if is_missing(Reference::Bootstrap) || is_missing(Reference::Infrastructure) {
        after(MISSING_INTERVAL)
    } else {
        Wake::OnChange
    };
    let node = match &observed.node {
        NodeView::NotLooked => Wake::OnChange,
        NodeView::Found(node) if node::is_healthy(node) && !node::is_uninitialized(node) => {
            after(NODE_WELL_INTERVAL)
        }
        NodeView::Absent if observed.node_name().is_some() => after(NODE_WELL_INTERVAL),
        NodeView::Found(_) | NodeView::Unreachable(_) | NodeView::Several(_) | NodeView::Absent => {
            after(NODE_SICK_INTERVAL)
        }
    };
    missing.sooner(node).sooner(status::available_at(observed))
}

//! Plans a Cluster: claims its infrastructure and control plane, records its endpoint, and deletes everything in order.
//!
//! Everything is read through contracts, so any provider works. A fact in `status.initialization` stays once it is
//! true. Deletion is a chain of stages (`delete`): workers, then the control plane, then the infrastructure, then the
//! finalizer. The stage is derived in each pass from what still exists, so nothing has to be remembered.

pub(crate) mod conditions;
mod delete;
mod endpoint;
mod fold;
mod observed;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, ClusterStatus};
use hangar_api::names;
use kube::core::DynamicObject;
use serde_json::json;

pub use observed::{Connection, Observed, Probe, Reference};

use crate::flow::{self, NOT_CALLED, Never, Outcome, Plan, Planner, Read, StepId, Target, Write, has_root};
use crate::referred::{self, Claiming};

/// A look at the tenant's API server once a minute: it is the only sign of a cluster that nobody uses.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);
/// What was just tried is tried again soon: the end of an outage should show.
const FAILING_INTERVAL: Duration = Duration::from_secs(10);
/// References whose object is not there are woken by its appearance; this only catches what a watch cannot show, such
/// as a CRD that gets its contract label.
const MISSING_INTERVAL: Duration = Duration::from_secs(30);

/// What the object is called in step names.
const NAME: &str = "cluster";

/// One call: writes to the management cluster, and nothing else.
pub type Step = flow::Step;

impl Planner for Observed {
    type Wanted = Probe;
    type Own = Never;
    type Tenant = Never;
    type Cloud = Never;
    type Status = ClusterStatus;
    type Object = DynamicObject;

    fn wanted(&self) -> Option<Probe> {
        let is_due = self.connection == Connection::NotTried
            && self.is_control_plane_initialized()
            && !self.is_deleting();
        is_due.then_some(Probe)
    }

    fn assume(&mut self, Probe: Probe) -> Option<Probe> {
        self.connection = Connection::Failing { why: NOT_CALLED.to_owned(), is_lasting: false };
        None
    }

    fn plan(&self) -> Plan<Step, ClusterStatus> {
        let mut draft = Draft::new(self);
        if draft.is_paused(referred::paused(draft.metadata(), Some(&self.cluster))) {
            return draft.finish();
        }
        if draft.is_deleting() {
            delete::draft(&mut draft);
            draft.again(MISSING_INTERVAL);
        } else {
            draft.say(conditions::deleting::NOT_DELETING);
            keep(&mut draft);
        }
        status::draft(&mut draft);
        draft.finish()
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        self.refusals.extend(outcome.refusal(step));
        if outcome.is_success() {
            self.written(step.write());
        }
    }
}

type Draft<'a> = flow::Draft<'a, Observed>;

has_root!(
    Cluster in cluster,
    conditions::available::TYPE => "Ready",
    conditions::infrastructure_ready::TYPE => "InfrastructureReady",
    conditions::control_plane_available::TYPE => "ControlPlaneReady",
    conditions::control_plane_initialized::TYPE => "ControlPlaneInitialized"
);

fn keep(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    if draft.has_finalizer(names::CLUSTER_FINALIZER) {
        for which in [Reference::Infrastructure, Reference::ControlPlane] {
            draft.steps.extend(claim(observed, which).map(Step::Write));
        }
        if let endpoint::Choice::Set(endpoint) = endpoint::choose(observed) {
            draft.report.decide(format!("endpoint {endpoint}"), "the Cluster has none of its own");
            let fields = json!({ "spec": { "controlPlaneEndpoint": endpoint } });
            draft.step(Write::itself(StepId::new("set", "endpoint", NAME), fields));
        }
    } else {
        draft.step(Write::add_finalizer(draft.metadata(), names::CLUSTER_FINALIZER, NAME));
    }
    let is_missing = |which| matches!(observed.read(which), Some(Read::Absent | Read::Unknown(_)));
    if is_missing(Reference::Infrastructure) || is_missing(Reference::ControlPlane) {
        draft.again(MISSING_INTERVAL);
    }
    match observed.connection {
        Connection::NotTried => {}
        Connection::Answering => draft.again(PROBE_INTERVAL),
        Connection::Failing { .. } => draft.again(FAILING_INTERVAL),
    }
}

fn claim(observed: &Observed, which: Reference) -> Option<Write> {
    let (reference, object) = (observed.reference(which)?, observed.object(which)?);
    if object.is_terminating() {
        return None;
    }
    // Only a topology manages the objects; otherwise whoever wrote the manifest may have put them under an owner.
    let is_managed = observed.cluster.spec.topology.is_some();
    let owner = referred::owner::<Cluster>(&observed.cluster.metadata, is_managed);
    let name = observed.cluster.metadata.name.as_deref().unwrap_or_default();
    match object.claiming(&owner, name, None) {
        Claiming::Needs(claim) => {
            let target = Target::referred(reference, object.uid());
            Some(Write::claim(StepId::new("claim", which.as_str(), ""), target, &claim))
        }
        Claiming::Held | Claiming::Taken(_) => None,
    }
}

//! Cluster: claims its infrastructure and control plane, says where its API server is, and goes away in order.
//!
//! Everything is read through contracts, so any provider works. Facts that were reached once stay reached
//! (`status.initialization`). Deletion is a chain of stages (`delete`), derived anew from what still exists, so
//! nothing is remembered: workers, then the control plane, then the infrastructure, then the finalizer.

mod delete;
mod endpoint;
mod fold;
mod observed;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::cluster::v1beta2::ClusterStatus;
use hangar_api::names;
use kube::core::DynamicObject;
use serde_json::json;

pub use observed::{Connection, Observed, Part, Probe};

use crate::flow::{self, NOT_CALLED, Never, Outcome, Plan, Planner, Read, StepId, Target, Wake, Write};
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
        let mut plan = Plan::default();
        if let Some(until) = referred::paused(&self.cluster.metadata, Some(&self.cluster)) {
            plan.status = status::paused(self, until);
            return plan;
        }
        if self.is_deleting() {
            let stage = delete::next(self);
            plan.report.waits.push(stage.wait());
            plan.status = status::deleting(self, &stage);
            plan.steps.extend(stage.steps.into_iter().map(Step::Write));
            plan.wake = Wake::after(self.now, MISSING_INTERVAL);
            return plan;
        }
        let finalizers = self.cluster.metadata.finalizers.as_deref().unwrap_or_default();
        if finalizers.iter().any(|finalizer| finalizer == names::CLUSTER_FINALIZER) {
            for part in [Part::Infrastructure, Part::ControlPlane] {
                plan.steps.extend(claim(self, part).map(Step::Write));
            }
            if let endpoint::Choice::Set(endpoint) = endpoint::choose(self) {
                plan.report.decide(format!("endpoint {endpoint}"), "the Cluster has none of its own");
                let fields = json!({ "spec": { "controlPlaneEndpoint": endpoint } });
                plan.steps.push(Write::itself(StepId::new("set", "endpoint", NAME), fields).into());
            }
        } else {
            let metadata = &self.cluster.metadata;
            plan.steps.push(Write::add_finalizer(metadata, names::CLUSTER_FINALIZER, NAME).into());
        }
        plan.status = status::normal(self);
        plan.wake = wake(self);
        plan
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        self.refusals.extend(outcome.refusal(step));
        if outcome.is_success() {
            self.written(step.write());
        }
    }
}

fn claim(observed: &Observed, part: Part) -> Option<Write> {
    let (reference, object) = (observed.reference(part)?, observed.object(part)?);
    if object.is_terminating() {
        return None;
    }
    // Only a topology manages the objects; otherwise whoever wrote the manifest may have put them under an owner.
    let is_managed = observed.cluster.spec.topology.is_some();
    let owner = referred::owner("Cluster", &observed.cluster.metadata, is_managed);
    let name = observed.cluster.metadata.name.as_deref().unwrap_or_default();
    match object.claiming(&owner, name, None) {
        Claiming::Needs(claim) => {
            let target = Target::referred(reference, object.uid());
            Some(Write::claim(StepId::new("claim", part.as_str(), ""), target, &claim))
        }
        Claiming::Held | Claiming::Taken(_) => None,
    }
}

fn wake(observed: &Observed) -> Wake {
    let is_missing = |part| matches!(observed.read(part), Some(Read::Absent | Read::Unknown(_)));
    let missing = if is_missing(Part::Infrastructure) || is_missing(Part::ControlPlane) {
        Wake::after(observed.now, MISSING_INTERVAL)
    } else {
        Wake::OnChange
    };
    let probe = match observed.connection {
        Connection::NotTried => Wake::OnChange,
        Connection::Answering => Wake::after(observed.now, PROBE_INTERVAL),
        Connection::Failing { .. } => Wake::after(observed.now, FAILING_INTERVAL),
    };
    missing.sooner(probe)
}

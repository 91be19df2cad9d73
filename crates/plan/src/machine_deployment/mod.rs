//! MachineDeployment: one MachineSet per template, and the way from one to the next.
//!
//! The set of a template is named from the deployment's uid and the template (`revision`), so a second attempt to make
//! it finds the first. How many Machines each set may have follows from the counts alone (`rollout`): nothing is
//! remembered between passes, and a rollout that is interrupted, reversed or overtaken by another continues from what
//! is there.

mod fold;
mod observed;
mod revision;
mod rollout;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, MachineDeployment, MachineDeploymentStatus, MachineSet};
use hangar_api::names;
use kube::core::{Selector, SelectorExt as _};
use serde_json::json;

pub use observed::Observed;
pub use revision::is_current;
pub use rollout::{Counts, Intents, Limits, intents};

use crate::flow::{self, Action, Never, Outcome, Plan, Planner, Read, StepId, Target, Wake, Write};
use crate::referred::{self, Claiming};

/// The annotation on MachineSets that this controller applied: it may then keep them as they should be.
pub const APPLIED_MARK: &str = "applied.hangar.cluster.x-k8s.io/hangar-machine-deployment";

/// A watch that is broken tells nobody when it works again.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// What the object is called in step names.
const NAME: &str = "machine-deployment";

/// One call: writes to the management cluster, and nothing else.
pub type Step = flow::Step;
type DeploymentPlan = Plan<Step, MachineDeploymentStatus, MachineSet>;

impl Planner for Observed {
    type Wanted = Never;
    type Own = Never;
    type Tenant = Never;
    type Cloud = Never;
    type Status = MachineDeploymentStatus;
    type Object = MachineSet;

    /// The objects are the current set, where it is ours to keep.
    fn plan(&self) -> DeploymentPlan {
        let mut plan = Plan::default();
        let cluster = self.cluster.iter().next();
        let until = referred::paused(&self.deployment.metadata, cluster);
        let until = until.or_else(|| {
            (self.is_paused_by_itself() && !self.is_deleting()).then_some("spec.paused to be unset")
        });
        if let Some(until) = until {
            plan.status = status::paused(self, until);
            return plan;
        }
        if self.cluster.is_unknown() {
            // Whether it is paused cannot be told, so nothing is made and nothing deleted.
            plan.status = status::normal(self);
            plan.wake = wake(self);
            return plan;
        }
        let finalizers = self.deployment.metadata.finalizers.as_deref().unwrap_or_default();
        let has_finalizer =
            finalizers.iter().any(|finalizer| finalizer == names::MACHINE_DEPLOYMENT_FINALIZER);
        if self.is_deleting() {
            if has_finalizer && !self.sets.is_unknown() {
                delete_all(self, &mut plan);
            }
        } else if !has_finalizer {
            let metadata = &self.deployment.metadata;
            plan.steps.push(Write::add_finalizer(metadata, names::MACHINE_DEPLOYMENT_FINALIZER, NAME).into());
        } else if !self.sets.is_unknown() && !is_cluster_going(self) {
            let deployment = &self.deployment;
            let name = &deployment.spec.cluster_name;
            if let Some(claim) =
                cluster.and_then(|cluster| referred::claim_for_cluster(&deployment.metadata, cluster, name))
            {
                plan.steps.push(Write::itself(StepId::new("claim", NAME, ""), claim.fields()).into());
            }
            adopt(self, &mut plan);
            roll(self, &mut plan);
        }
        plan.status = status::normal(self);
        plan.wake = wake(self);
        plan
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        self.refusals.extend(outcome.refusal(step));
        if let Some(uid) = outcome.made() {
            self.written(step.write(), uid);
        }
    }
}

/// A Cluster that is going deletes us next; a rollout in between would only make Machines to be deleted.
fn is_cluster_going(observed: &Observed) -> bool {
    !matches!(&observed.cluster, Read::One(cluster) if cluster.metadata.deletion_timestamp.is_none())
}

fn delete_all(observed: &Observed, plan: &mut DeploymentPlan) {
    let members = observed.members();
    if members.is_empty() {
        let metadata = &observed.deployment.metadata;
        plan.steps.push(Write::remove_finalizer(metadata, names::MACHINE_DEPLOYMENT_FINALIZER, NAME).into());
    }
    for set in members {
        push_delete(set, plan);
    }
}

fn push_delete(set: &MachineSet, plan: &mut DeploymentPlan) {
    if set.metadata.deletion_timestamp.is_none() {
        let target = Target::of::<MachineSet>(&set.metadata);
        plan.steps.push(Write::delete(StepId::new("delete", "machine-set", &target.name), target).into());
    }
}

fn adopt(observed: &Observed, plan: &mut DeploymentPlan) {
    let Ok(selector) = Selector::try_from(observed.deployment.spec.selector.clone()) else { return };
    if selector.selects_all() {
        return;
    }
    let owner = referred::owner::<MachineDeployment>(&observed.deployment.metadata, true);
    for set in observed.sets.iter() {
        let metadata = &set.metadata;
        let labels = metadata.labels.clone().unwrap_or_default();
        let is_orphan = referred::controller(metadata).is_none() && metadata.deletion_timestamp.is_none();
        if !is_orphan || !selector.matches(&labels) {
            continue;
        }
        let cluster = &observed.deployment.spec.cluster_name;
        if let Claiming::Needs(claim) =
            referred::claiming(metadata, &owner, cluster, Some(referred::is_kind::<Cluster>))
        {
            let target = Target::of::<MachineSet>(metadata);
            let id = StepId::new("adopt", "machine-set", &target.name);
            plan.steps.push(Write::claim(id, target, &claim).into());
        }
    }
}

/// The current set and the others, oldest first.
fn split<'a>(
    observed: &'a Observed,
    members: &[&'a MachineSet],
) -> (Option<&'a MachineSet>, Vec<&'a MachineSet>) {
    let living: Vec<&MachineSet> =
        members.iter().copied().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
    let mut current = revision::current(&observed.deployment, &living, observed.now);
    if current.is_none() && observed.is_on_delete() {
        // What is there stays until people delete it: the latest set is the one that is kept at size.
        current = living.last().copied();
    }
    let others =
        members.iter().copied().filter(|set| current.is_none_or(|current| !std::ptr::eq(*set, current)));
    (current, others.collect())
}

fn roll(observed: &Observed, plan: &mut DeploymentPlan) {
    let members = observed.members();
    let (current, others) = split(observed, &members);
    let limits = observed.limits();
    let counts: Vec<Counts> = others.iter().map(|set| Counts::of(set)).collect();
    let intents = intents(&limits, current.map(Counts::of), &counts);
    let annotations = revision::numbers(&limits);
    let highest = revision::highest(&others);
    match current {
        None => {
            let set =
                revision::set(&observed.deployment, intents.current, highest + 1, &limits, observed.now);
            let name = set.metadata.name.clone().unwrap_or_default();
            plan.report.decide(format!("MachineSet {name}"), "no set has the template of the deployment");
            plan.steps.push(Write::create(StepId::new("create", "machine-set", name), &set, true).into());
        }
        Some(current) => {
            keep_current(observed, plan, current, intents.current, highest);
        }
    }
    for (set, replicas) in others.iter().zip(&intents.others) {
        push_scale(set, *replicas, &annotations, plan);
    }
    if let Some(current) = current
        && is_complete(&limits, current, &others)
    {
        for set in others {
            push_delete(set, plan);
        }
    }
}

fn keep_current(
    observed: &Observed,
    plan: &mut DeploymentPlan,
    current: &MachineSet,
    replicas: i32,
    highest: i64,
) {
    let limits = observed.limits();
    // A set whose template came back is the latest again.
    let number = revision::of(current).filter(|own| *own > highest).unwrap_or(highest + 1);
    let is_current = revision::is_current(&observed.deployment, current, observed.now);
    let is_ours = current.metadata.annotations.iter().flatten().any(|(name, _)| name == APPLIED_MARK);
    if is_ours && is_current {
        plan.objects.push(revision::kept(&observed.deployment, current, replicas, number, &limits));
    } else {
        push_scale(current, replicas, &revision::numbers(&limits), plan);
    }
    let shown = observed.deployment.metadata.annotations.as_ref();
    let shown = shown.and_then(|annotations| annotations.get(names::REVISION_ANNOTATION));
    if is_current && shown != Some(&number.to_string()) {
        let annotations = json!({ names::REVISION_ANNOTATION: number.to_string() });
        let fields = json!({ "metadata": { "annotations": annotations } });
        plan.steps.push(Write::itself(StepId::new("set", "revision", NAME), fields).into());
    }
}

fn push_scale(
    set: &MachineSet,
    replicas: i32,
    annotations: &BTreeMap<String, String>,
    plan: &mut DeploymentPlan,
) {
    if set.spec.replicas.unwrap_or(1) != replicas && set.metadata.deletion_timestamp.is_none() {
        let target = Target::of::<MachineSet>(&set.metadata);
        let id = StepId::new("scale", "machine-set", &target.name);
        let fields = json!({ "metadata": { "annotations": annotations }, "spec": { "replicas": replicas } });
        plan.steps.push(Write { id, action: Action::Change { target, fields } }.into());
    }
}

/// Every Machine is of the current set and available, and the others are empty.
fn is_complete(limits: &Limits, current: &MachineSet, others: &[&MachineSet]) -> bool {
    let counts = Counts::of(current);
    let is_full =
        [counts.wanted, counts.existing, counts.available].iter().all(|count| *count == limits.desired);
    let is_empty = |set: &&MachineSet| {
        let counts = Counts::of(set);
        let status = set.status.as_ref();
        let is_seen = status.is_some_and(|status| status.observed_generation == set.metadata.generation);
        counts.wanted == 0 && counts.existing == 0 && is_seen
    };
    is_full && others.iter().all(is_empty)
}

/// A rollout that is due later begins by itself, and what could not be read is looked at again.
fn wake(observed: &Observed) -> Wake {
    let after = observed.deployment.spec.rollout.as_ref().and_then(|rollout| rollout.after.as_ref());
    let due = match after {
        Some(after) if after.0 > observed.now => Wake::At(after.0),
        _ => Wake::OnChange,
    };
    let is_unread =
        observed.cluster.is_unknown() || observed.sets.is_unknown() || observed.machines.is_unknown();
    if is_unread { due.sooner(Wake::after(observed.now, READ_AGAIN)) } else { due }
}

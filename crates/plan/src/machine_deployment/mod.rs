//! Plans a MachineDeployment: one MachineSet per template, and the rollout from one to the next.
//!
//! The set of a template is named from the deployment's uid and the template (`revision`), so a second attempt to
//! create it finds the first. How many Machines each set may have follows from the counts alone (`rollout`): nothing is
//! remembered between passes, and a rollout that is interrupted, reversed or overtaken by another continues from what
//! exists.
//!
//! No set is made of templates that do not exist: a name that nobody can follow would take Machines from the sets that
//! work. Until they exist the latest set stays the one that is kept at size. The same holds for a version whose minor is
//! newer than that of the control plane: kubelets follow API servers.

pub(crate) mod conditions;
mod fold;
mod observed;
mod revision;
mod rollout;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::cluster::v1beta2::{
    MachineDeployment, MachineDeploymentStatus, MachineSet, MachineTemplateSpec,
};
use hangar_api::names;
use serde_json::json;

pub use observed::Observed;
pub use revision::is_current;
pub use rollout::{Counts, Intents, Limits, intents};

use crate::flow::{self, Action, Never, Outcome, Plan, Planner, Read, StepId, Target, Wake, Write, has_root};
use crate::machine_set::timeouts;
use crate::referred;

/// The annotation on MachineSets that this controller applied: it may then keep them as they should be.
pub const APPLIED_MARK: &str = "applied.hangar.cluster.x-k8s.io/hangar-machine-deployment";

/// A watch that is broken tells nobody when it works again, and neither does a CRD that is installed.
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

    /// The objects are the sets that are ours to keep.
    fn plan(&self) -> DeploymentPlan {
        let mut draft = Draft::new(self);
        let cluster = self.cluster.iter().next();
        let until = referred::paused(draft.metadata(), cluster);
        let is_paused_by_itself = self.is_paused_by_itself() && !draft.is_deleting();
        let is_paused =
            draft.is_paused(until.or_else(|| is_paused_by_itself.then_some("spec.paused to be unset")));
        if !self.sets.is_unknown() {
            status::counts(&mut draft.status, self);
        }
        if is_paused {
            return draft.finish();
        }
        let has_finalizer = draft.has_finalizer(names::MACHINE_DEPLOYMENT_FINALIZER);
        if self.cluster.is_unknown() {
            // Whether it is paused cannot be told, so nothing is made and nothing deleted.
        } else if draft.is_deleting() {
            if has_finalizer && !self.sets.is_unknown() {
                delete_all(&mut draft);
            }
        } else if !has_finalizer {
            draft.step(Write::add_finalizer(draft.metadata(), names::MACHINE_DEPLOYMENT_FINALIZER, NAME));
        } else if !self.sets.is_unknown() && !is_cluster_going(self) {
            let spec = &self.deployment.spec;
            if let Some(cluster) = cluster {
                draft.join(cluster, &spec.cluster_name, NAME);
            }
            draft.adopt("machine-set", &spec.selector, &spec.cluster_name, self.sets.iter());
            roll(&mut draft);
        }
        status::draft(&mut draft);
        draft.wake_at(wake(self));
        draft.finish()
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        self.refusals.extend(outcome.refusal(step));
        if let Some(uid) = outcome.made() {
            self.written(step.write(), uid);
        }
    }
}

type Draft<'a> = flow::Draft<'a, Observed>;

has_root!(
    MachineDeployment in deployment,
    conditions::available::TYPE => "Ready",
    conditions::available::TYPE => "Available"
);

/// A Cluster that is going deletes us next; a rollout in between would only make Machines to be deleted.
fn is_cluster_going(observed: &Observed) -> bool {
    !matches!(&observed.cluster, Read::One(cluster) if cluster.metadata.deletion_timestamp.is_none())
}

fn delete_all(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let members = observed.members();
    if members.is_empty() {
        let metadata = &observed.deployment.metadata;
        draft.step(Write::remove_finalizer(metadata, names::MACHINE_DEPLOYMENT_FINALIZER, NAME));
    }
    for set in members {
        draft.delete("machine-set", set);
        release(draft, set);
    }
}

/// A set that is being deleted follows the timeouts, which it passes on: they end drains that are stuck.
fn release(draft: &mut Draft<'_>, set: &MachineSet) {
    let of = |spec: &MachineTemplateSpec| timeouts(spec.spec.deletion.as_ref());
    let wanted = of(&draft.observed.deployment.spec.template);
    if set.metadata.deletion_timestamp.is_some() && is_ours(set) && of(&set.spec.template) != wanted {
        let target = Target::of::<MachineSet>(&set.metadata);
        let id = StepId::new("release", "machine-set", &target.name);
        let fields = json!({ "spec": { "template": { "spec": { "deletion": wanted } } } });
        draft.step(Write { id, action: Action::Change { target, fields } });
    }
}

fn is_ours(set: &MachineSet) -> bool {
    set.metadata.annotations.iter().flatten().any(|(name, _)| name == APPLIED_MARK)
}

/// The current set and the others, oldest first.
fn split<'a>(
    observed: &'a Observed,
    members: &[&'a MachineSet],
) -> (Option<&'a MachineSet>, Vec<&'a MachineSet>) {
    let living: Vec<&MachineSet> =
        members.iter().copied().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
    let mut current = revision::current(&observed.deployment, &living, observed.now);
    if current.is_none() && (observed.is_on_delete() || observed.obstacle().is_some()) {
        // What is there stays until people delete it, or can be replaced: the latest set is kept at size.
        current = living.into_iter().max_by_key(|set| revision::of(set));
    }
    let others =
        members.iter().copied().filter(|set| current.is_none_or(|current| !std::ptr::eq(*set, current)));
    (current, others.collect())
}

fn roll(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let members = observed.members();
    let (current, others) = split(observed, &members);
    let obstacle = observed.obstacle();
    if obstacle.is_some() && observed.is_obstacle_unknown() {
        return;
    }
    let limits = observed.limits();
    let counts: Vec<Counts> = others.iter().map(|set| Counts::of(set)).collect();
    let intents = intents(&limits, current.map(Counts::of), &counts);
    let highest = revision::highest(&others);
    match current {
        None if obstacle.is_some() => {}
        None => {
            let set =
                revision::set(&observed.deployment, intents.current, highest + 1, &limits, observed.now);
            let name = set.metadata.name.clone().unwrap_or_default();
            draft.report.decide(format!("MachineSet {name}"), "no set has the template of the deployment");
            draft.step(Write::create(StepId::new("create", "machine-set", name), &set, true));
        }
        Some(current) => {
            keep_current(draft, current, intents.current, highest);
        }
    }
    for (set, replicas) in others.iter().zip(&intents.others) {
        follow(draft, set, *replicas);
        release(draft, set);
    }
    if let Some(current) = current
        && is_complete(&limits, current, &others)
    {
        for set in others {
            draft.delete("machine-set", set);
        }
    }
}

fn keep_current(draft: &mut Draft<'_>, current: &MachineSet, replicas: i32, highest: i64) {
    let observed = draft.observed;
    let limits = observed.limits();
    // A set whose template came back is the latest again.
    let number = revision::of(current).filter(|own| *own > highest).unwrap_or(highest + 1);
    let is_current = revision::is_current(&observed.deployment, current, observed.now);
    if is_ours(current) && is_current {
        draft.objects.push(revision::kept(&observed.deployment, current, replicas, number, &limits));
    } else {
        follow(draft, current, replicas);
    }
    let shown = observed.deployment.metadata.annotations.as_ref();
    let shown = shown.and_then(|annotations| annotations.get(names::REVISION_ANNOTATION));
    if is_current && shown != Some(&number.to_string()) {
        let annotations = json!({ names::REVISION_ANNOTATION: number.to_string() });
        let fields = json!({ "metadata": { "annotations": annotations } });
        draft.step(Write::itself(StepId::new("set", "revision", NAME), fields));
    }
}

/// A set of an older template: it gets another size, and what changes in place if it is ours.
fn follow(draft: &mut Draft<'_>, set: &MachineSet, replicas: i32) {
    let limits = draft.observed.limits();
    if is_ours(set) && set.metadata.deletion_timestamp.is_none() {
        let followed = revision::followed(&draft.observed.deployment, set, replicas, &limits);
        draft.objects.push(followed);
    } else if set.spec.replicas.unwrap_or(1) != replicas && set.metadata.deletion_timestamp.is_none() {
        let target = Target::of::<MachineSet>(&set.metadata);
        let id = StepId::new("scale", "machine-set", &target.name);
        let annotations = revision::numbers(&limits);
        let fields = json!({ "metadata": { "annotations": annotations }, "spec": { "replicas": replicas } });
        draft.step(Write { id, action: Action::Change { target, fields } });
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
    // Templates wake us when they come; the CRD of a kind that nothing can be read of does not.
    if is_unread || observed.obstacle().is_some() {
        due.sooner(Wake::after(observed.now, READ_AGAIN))
    } else {
        due
    }
}

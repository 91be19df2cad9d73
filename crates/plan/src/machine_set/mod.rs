//! Plans a MachineSet: a number of Machines of one template, with the objects that they refer to.
//!
//! A Machine is named from the set's uid and a slot (`naming`). So a planner that does not see the latest Machine yet
//! chooses its name again and collides with it, instead of creating one too many. No slot is used twice: before
//! anything is made for a Machine, the set records that its slot is used, so that a name never comes back while a
//! server, a Node or a volume of that name may still exist. The Machine is created first; its
//! bootstrap configuration and its server are cloned from their templates under the Machine's name and belong to it
//! from the start. After a crash, whatever is missing is created. A Machine that is deleted takes with it what was made
//! for it, so nothing is left to clean up.
//!
//! Machines that are being deleted still count: a replacement is created when the old one is gone.

mod clone;
pub(crate) mod conditions;
mod desired;
mod fold;
mod naming;
mod observed;
pub(crate) mod status;
mod surplus;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet, MachineSetStatus};
use hangar_api::conditions::{Actor, Waiting};
use hangar_api::names;
use jiff::Timestamp;
use serde_json::json;

pub use clone::kind as clone_kind;
pub(crate) use clone::{obstacle as template_obstacle, version_obstacle};
pub(crate) use desired::{timeouts, travels};
pub use naming::{NEXT_SLOT_ANNOTATION, NamingError, SLOT_ANNOTATION, machine_name};
pub(crate) use naming::{suffix, with_suffix};
pub use observed::{Clones, Observed, Template};
#[cfg(test)]
pub(crate) use surplus::Traits;

use crate::conditions::shared::unreadable;
use crate::flow::{self, Action, Never, Outcome, Plan, Planner, Read, StepId, Target, Write, has_root};
use crate::machine_deployment;
use crate::referred::{self, Claim};

/// Templates that are missing are woken by their appearance; this only catches what a watch cannot show, and a watch that
/// is broken.
const MISSING_INTERVAL: Duration = Duration::from_secs(30);

/// What the object is called in step names.
const NAME: &str = "machine-set";

/// One call: writes to the management cluster, and nothing else.
pub type Step = flow::Step;
type SetPlan = Plan<Step, MachineSetStatus, Machine>;

impl Planner for Observed {
    type Wanted = Never;
    type Own = Never;
    type Tenant = Never;
    type Cloud = Never;
    type Status = MachineSetStatus;
    type Object = Machine;

    /// The objects are the Machines that exist, with what a change of the template changes in place.
    fn plan(&self) -> SetPlan {
        let mut draft = Draft::new(self);
        let cluster = self.cluster.iter().next();
        if draft.is_paused(referred::paused(draft.metadata(), cluster)) {
            return draft.finish();
        }
        let has_finalizer = draft.has_finalizer(names::MACHINE_SET_FINALIZER);
        if self.cluster.is_unknown() {
            // Whether it is paused cannot be told, so nothing is made and nothing deleted.
        } else if draft.is_deleting() {
            if has_finalizer {
                delete_all(&mut draft);
            }
        } else if has_finalizer {
            let spec = &self.set.spec;
            if let Some(cluster) = cluster {
                draft.join(cluster, &spec.cluster_name, NAME);
            }
            own_templates(&mut draft);
            draft.adopt("machine", &spec.selector, &spec.cluster_name, self.machines.iter());
            scale(&mut draft);
            record_slots(&mut draft);
            release(&mut draft);
            complete(&mut draft);
            draft.objects = desired::in_place(self);
        } else {
            draft.step(Write::add_finalizer(draft.metadata(), names::MACHINE_SET_FINALIZER, NAME));
        }
        let is_waiting = self.members().len() < self.replicas() && obstacle(self).is_some();
        if is_waiting || self.cluster.is_unknown() || self.machines.is_unknown() {
            draft.again(MISSING_INTERVAL);
        }
        status::draft(&mut draft);
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
    MachineSet in set,
    conditions::machines_ready::TYPE => "MachinesReady"
);

fn delete_all(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    if observed.machines.is_unknown() {
        return;
    }
    let members = observed.members();
    if members.is_empty() {
        let metadata = &observed.set.metadata;
        draft.step(Write::remove_finalizer(metadata, names::MACHINE_SET_FINALIZER, NAME));
    }
    for machine in members {
        draft.delete("machine", machine);
    }
    release(draft);
}

/// Machines that are being deleted follow the template's timeouts, or a drain that is stuck could not be ended by them.
fn release(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let wanted = desired::timeouts(observed.set.spec.template.spec.deletion.as_ref());
    for machine in observed.members() {
        let is_ours = machine.metadata.deletion_timestamp.is_some() && naming::slot(machine).is_some();
        if is_ours && desired::timeouts(machine.spec.deletion.as_ref()) != wanted {
            let target = Target::of::<Machine>(&machine.metadata);
            let id = StepId::new("release", "machine", &target.name);
            let fields = json!({ "spec": { "deletion": wanted } });
            draft.step(Write { id, action: Action::Change { target, fields } });
        }
    }
}

/// The Cluster becomes an owner, one of several where Clusters share a template.
fn own_templates(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let Some(cluster) = observed.cluster.iter().find(|cluster| cluster.metadata.deletion_timestamp.is_none())
    else {
        return;
    };
    let owner = referred::owner::<Cluster>(&cluster.metadata, false);
    let spec = &observed.set.spec.template.spec;
    let bootstrap = spec.bootstrap.config_ref.as_ref().zip(observed.bootstrap_template.as_ref());
    let templates =
        bootstrap.into_iter().chain([(&spec.infrastructure_ref, &observed.infrastructure_template)]);
    for (reference, template) in templates {
        let Read::One(Template { metadata, .. }) = template else { continue };
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        if metadata.deletion_timestamp.is_some() || owners.iter().any(|present| present.uid == owner.uid) {
            continue;
        }
        let owner_references = owners.iter().cloned().chain([owner.clone()]).collect();
        let claim = Claim { owner_references, labels: BTreeMap::new() };
        let target = Target::referred(reference, metadata.uid.clone().unwrap_or_default());
        let id = StepId::new("own", "template", format!("{}/{}", target.kind, target.name));
        draft.step(Write::claim(id, target, &claim));
    }
}

/// What has to happen before a Machine may be made; none when it may.
fn obstacle(observed: &Observed) -> Option<Waiting> {
    let owner = |on: String| Some(Waiting::new(Actor::ClusterOwner, on));
    let annotations = observed.set.metadata.annotations.iter().flatten();
    let is_disabled = annotations
        .into_iter()
        .any(|(name, value)| name == names::DISABLE_MACHINE_CREATE_ANNOTATION && value == "true");
    if is_disabled {
        return owner("the annotation cluster.x-k8s.io/disable-machine-create to be removed".to_owned());
    }
    match &observed.cluster {
        Read::Unknown(unknown) => return Some(unreadable("the Cluster", unknown)),
        Read::One(cluster) if cluster.metadata.deletion_timestamp.is_none() => {}
        Read::One(_) => return Some(Waiting::new(Actor::Hangar, "the Cluster to be gone")),
        Read::Absent | Read::Many(_) => return owner("the Cluster to be created".to_owned()),
    }
    let (bootstrap, infrastructure) = (&observed.bootstrap_template, &observed.infrastructure_template);
    let spec = &observed.set.spec.template.spec;
    version_obstacle(spec, &observed.served_version)
        .or_else(|| template_obstacle(spec, bootstrap.as_ref(), infrastructure))
}

fn scale(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    if observed.machines.is_unknown() {
        return;
    }
    let (members, wanted) = (observed.members(), observed.replicas());
    if members.len() > wanted {
        let surplus = members.len() - wanted;
        let order = observed.set.spec.deletion.as_ref().and_then(|deletion| deletion.order);
        for machine in surplus::choose(members, surplus, order.unwrap_or_default(), observed.now) {
            draft.delete("machine", machine);
        }
        return;
    }
    if members.len() == wanted || obstacle(observed).is_some() {
        return;
    }
    // One at a time: a slot whose answer was lost is tried again before the next one is used.
    let Ok((slot, name)) = next_name(observed, &members) else { return };
    draft
        .report
        .decide(format!("Machine {name}"), format!("slot {slot}, {} of {wanted} exist", members.len()));
    let machine = desired::machine(&observed.set, &name, slot);
    draft.step(Write::create(StepId::new("create", "machine", name), &machine, true));
}

fn next_name(observed: &Observed, members: &[&Machine]) -> Result<(u32, String), NamingError> {
    let taken = observed.machines.iter().filter_map(|machine| machine.metadata.name.clone()).collect();
    naming::next(&observed.set, members, &taken)
}

/// Records the slots that are used, if that is not recorded yet.
fn record_slots(draft: &mut Draft<'_>) {
    let set = &draft.observed.set;
    let Ok(recorded) = naming::recorded(set) else { return };
    if let Some(next) = naming::after(set, &draft.observed.members()).filter(|next| *next > recorded) {
        let annotations = json!({ NEXT_SLOT_ANNOTATION: next.to_string() });
        let fields = json!({ "metadata": { "annotations": annotations } });
        draft.step(Write::itself(StepId::new("record", "slots", NAME), fields));
    }
}

/// Objects that Machines of this set refer to and that were never there.
fn complete(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    for machine in observed.members() {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        // What has no server yet can come back under its name, and nothing else can.
        let is_recorded = naming::used_slot(&observed.set, machine)
            .is_none_or(|slot| naming::recorded(&observed.set).is_ok_and(|next| slot < next));
        if machine.metadata.deletion_timestamp.is_some() || !is_recorded {
            continue;
        }
        let Some(clones) = observed.clones.get(name) else { continue };
        for object in clone::missing(observed, machine, clones) {
            let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
            let id = StepId::new("create", "clone", format!("{kind}/{name}"));
            draft.step(Write::create(id, &object, false));
        }
    }
}

/// Whether a Machine is what its set, and the deployment above it, want now.
pub fn is_up_to_date(
    machine: &Machine,
    set: &MachineSet,
    deployment: Option<&MachineDeployment>,
    now: Timestamp,
) -> bool {
    let template = &set.spec.template.spec;
    let is_version = template.version.is_none() || template.version == machine.spec.version;
    let is_domain =
        template.failure_domain.is_none() || template.failure_domain == machine.spec.failure_domain;
    let is_current = deployment.is_none_or(|deployment| machine_deployment::is_current(deployment, set, now));
    is_version && is_domain && is_current
}

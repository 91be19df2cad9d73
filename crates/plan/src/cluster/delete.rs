//! The stages of deletion, each derived from what still exists.

use hangar_api::cluster::v1beta2::{Machine, MachineDeployment, MachineSet};
use hangar_api::conditions::{Actor, Waiting};
use hangar_api::names;
use kube::core::ObjectMeta;

use super::observed::is_control_plane;
use super::{NAME, Observed, Part};
use crate::flow::{Read, StepId, Target, Unknown, Wait, Write};
use crate::referred;

/// Names that are listed in a message; the rest is counted.
const SHOWN: usize = 3;

pub(super) struct Stage {
    pub(super) steps: Vec<Write>,
    pub(super) reason: &'static str,
    pub(super) waiting: Waiting,
}

impl Stage {
    pub(super) fn wait(&self) -> Wait {
        Wait { what: self.waiting.on.clone(), since: None, who: (&self.waiting.actor).into() }
    }
}

/// Where deletion stands, and what it does next.
pub(super) fn next(observed: &Observed) -> Stage {
    match workers(observed) {
        Ok(Some(stage)) => return stage,
        Ok(None) => {}
        Err(unknown) => return undecided("a complete list of the workers", &unknown),
    }
    for (part, reason) in [
        (Part::ControlPlane, "WaitingForControlPlaneDeletion"),
        (Part::Infrastructure, "WaitingForInfrastructureDeletion"),
    ] {
        if let Some(stage) = part_stage(observed, part, reason) {
            return stage;
        }
    }
    let waiting = Waiting::new(Actor::Hangar, "the finalizer to be removed");
    let release = Write::remove_finalizer(&observed.cluster.metadata, names::CLUSTER_FINALIZER, NAME);
    Stage { steps: vec![release], reason: "DeletionCompleted", waiting }
}

fn undecided(what: &str, unknown: &Unknown) -> Stage {
    let waiting = Waiting::new(Actor::Operator, what).because(unknown.why.clone());
    Stage { steps: Vec::new(), reason: "DeletionStateUnknown", waiting }
}

/// Everything that makes workers, and the workers. Control plane Machines go with their control plane.
fn workers(observed: &Observed) -> Result<Option<Stage>, Unknown> {
    let deployments = observed.deployments.clone().known()?;
    let sets = observed.sets.clone().known()?;
    let machines = observed.machines.clone().known()?;
    let has_control_plane = !matches!(observed.control_plane, None | Some(Read::Absent));
    let mut steps = Vec::new();
    let mut left = Vec::new();
    let mut take = |kind: &'static str, target: Target, metadata: &ObjectMeta, is_always_ours: bool| {
        left.push(format!("{} {}", target.kind, target.name));
        let is_ours = is_always_ours || referred::controller(metadata).is_none();
        if metadata.deletion_timestamp.is_none() && is_ours {
            steps.push(Write::delete(StepId::new("delete", kind, &target.name), target));
        }
    };
    for MachineDeployment { metadata, .. } in &deployments {
        take("machine-deployment", Target::of::<MachineDeployment>(metadata), metadata, true);
    }
    for MachineSet { metadata, .. } in &sets {
        take("machine-set", Target::of::<MachineSet>(metadata), metadata, false);
    }
    for machine in machines.iter().filter(|machine| !(has_control_plane && is_control_plane(machine))) {
        let metadata = &machine.metadata;
        take("machine", Target::of::<Machine>(metadata), metadata, false);
    }
    if left.is_empty() {
        return Ok(None);
    }
    let hidden = left.len().saturating_sub(SHOWN);
    left.truncate(SHOWN);
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    let waiting = Waiting::new(Actor::Hangar, format!("{}{more} to be gone", left.join(", ")));
    Ok(Some(Stage { steps, reason: "WaitingForWorkersDeletion", waiting }))
}

fn part_stage(observed: &Observed, part: Part, reason: &'static str) -> Option<Stage> {
    let reference = observed.reference(part)?;
    let what = format!("{} {}", reference.kind, reference.name);
    match observed.read(part)? {
        Read::Absent | Read::Many(_) => None,
        Read::Unknown(unknown) => Some(undecided(&format!("a look at {what}"), unknown)),
        // It was never ours.
        Read::One(object) if observed.taken_by(object).is_some() => None,
        Read::One(object) => {
            let mut steps = Vec::new();
            if !object.is_terminating() {
                let target = Target::referred(reference, object.uid());
                steps.push(Write::delete(StepId::new("delete", part.as_str(), ""), target));
            }
            let controller = Actor::Controller(format!("the controller of {}", reference.kind));
            let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
            let mut waiting = Waiting::new(controller, format!("{what} to be gone"));
            if object.is_terminating() && !finalizers.is_empty() {
                waiting = waiting.because(format!("{what} has the finalizers {}", finalizers.join(", ")));
            }
            Some(Stage { steps, reason, waiting })
        }
    }
}

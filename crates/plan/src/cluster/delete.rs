//! The stages of a Cluster's deletion, each derived from what still exists.

use hangar_api::cluster::v1beta2::{Machine, MachineDeployment, MachineSet};
use hangar_api::conditions::{Bad, Finding};
use hangar_api::names;
use kube::core::ObjectMeta;

use super::conditions::deleting;
use super::observed::is_control_plane;
use super::{Draft, NAME, Reference};
use crate::conditions::shared;
use crate::flow::{Read, StepId, Target, Unknown, Write};
use crate::referred::{self, Referred};

/// Says where deletion stands, and does what is next.
pub(super) fn draft(draft: &mut Draft<'_>) {
    let finding = match workers(draft) {
        Err(unknown) => deleting::STATE_UNKNOWN.waiting(shared::unreadable("the workers", &unknown)),
        Ok(Some(finding)) => finding,
        Ok(None) => delete_referred(draft, Reference::ControlPlane, deleting::WAITING_FOR_CONTROL_PLANE)
            .or_else(|| {
                delete_referred(draft, Reference::Infrastructure, deleting::WAITING_FOR_INFRASTRUCTURE)
            })
            .unwrap_or_else(|| {
                draft.step(Write::remove_finalizer(draft.metadata(), names::CLUSTER_FINALIZER, NAME));
                deleting::COMPLETED.waits("the finalizer to be removed")
            }),
    };
    draft.say(finding);
}

/// Everything that makes workers, and the workers. Control plane Machines go with their control plane.
fn workers(draft: &mut Draft<'_>) -> Result<Option<Finding>, Unknown> {
    let observed = draft.observed;
    let deployments = observed.deployments.clone().known()?;
    let sets = observed.sets.clone().known()?;
    let machines = observed.machines.clone().known()?;
    let has_control_plane = !matches!(observed.control_plane, None | Some(Read::Absent));
    let mut left = Vec::new();
    let mut take = |kind: &'static str, target: Target, metadata: &ObjectMeta, is_always_ours: bool| {
        left.push(format!("{} {}", target.kind, target.name));
        let is_ours = is_always_ours || referred::controller(metadata).is_none();
        if metadata.deletion_timestamp.is_none() && is_ours {
            draft.step(Write::delete(StepId::new("delete", kind, &target.name), target));
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
    let waits =
        || deleting::WAITING_FOR_WORKERS.waits(format!("{} to be gone", shared::listed(left.clone())));
    Ok((!left.is_empty()).then(waits))
}

fn delete_referred(draft: &mut Draft<'_>, which: Reference, reason: Bad) -> Option<Finding> {
    let observed = draft.observed;
    let (reference, read) = (observed.reference(which)?, observed.read(which)?);
    let is_anothers = |object: &Referred| observed.taken_by(object).is_some();
    let reasons = (reason, deleting::STATE_UNKNOWN);
    let (finding, target) = shared::leaving(reasons, reference, read, is_anothers)?;
    if let Some(target) = target {
        draft.step(Write::delete(StepId::new("delete", which.as_str(), ""), target));
    }
    Some(finding)
}

//! The status of a MachineDeployment.

use hangar_api::cluster::v1beta2::machine_deployment::MachineDeploymentStatusV1Beta1;
use hangar_api::cluster::v1beta2::{Machine, MachineDeploymentPhase, MachineDeploymentStatus, MachineSet};
use hangar_api::conditions::{Actor, Finding};
use kube::ResourceExt as _;
use kube::core::Selector;

use super::conditions::{available, rolling_out};
use super::{Draft, Observed, revision, split};
use crate::conditions::shared::{merged, unlisted, unreadable};
use crate::flow::Read;
use crate::machine_set::conditions::{machines_ready, machines_up_to_date, replicas, scaling_up};
use crate::machine_set::status as machine_set;
use crate::referred;

pub(super) fn draft(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let (existing, is_deleting) = (draft.status.replicas.unwrap_or_default(), draft.is_deleting());
    let sets = observed.members().iter().map(|set| set.name_any()).collect();
    draft.say(machine_set::deleting(is_deleting, "MachineSet", sets));
    draft.say(available(draft));
    draft.say(rolling_out(observed));
    draft.say(scaling_up(observed, existing));
    let desired = if is_deleting { 0 } else { observed.desired() };
    draft.say(machine_set::scaling_down(existing, desired, Vec::new()));
    let machines = machines(observed);
    for (type_, source) in [(machines_ready::TYPE, "Ready"), (machines_up_to_date::TYPE, "UpToDate")] {
        draft.say(merged(type_, &observed.machines, &machines, source, replicas::NO_REPLICAS.about(type_)));
    }
    draft.status.phase = Some(phase(observed, existing));
}

pub(super) fn counts(status: &mut MachineDeploymentStatus, observed: &Observed) {
    let members = observed.members();
    let (current, _) = split(observed, &members);
    let sum = |field: &dyn Fn(&MachineSet) -> Option<i32>| {
        Some(members.iter().filter_map(|set| field(set)).sum::<i32>())
    };
    status.replicas = sum(&|set| set.status.as_ref()?.replicas);
    status.ready_replicas = sum(&|set| set.status.as_ref()?.ready_replicas);
    status.available_replicas = sum(&|set| set.status.as_ref()?.available_replicas);
    let is_current = |set: &&MachineSet| revision::is_current(&observed.deployment, set, observed.now);
    let updated = current.filter(is_current).and_then(|set| set.status.as_ref());
    status.up_to_date_replicas = Some(updated.and_then(|status| status.replicas).unwrap_or_default());
    status.selector = Selector::try_from(observed.deployment.spec.selector.clone())
        .ok()
        .map(|selector| selector.to_string())
        .filter(|text| !text.is_empty());
    let missing = observed.desired() - status.available_replicas.unwrap_or_default();
    let old = MachineDeploymentStatusV1Beta1 {
        ready_replicas: status.ready_replicas,
        available_replicas: status.available_replicas,
        updated_replicas: status.up_to_date_replicas,
        unavailable_replicas: Some(missing.max(0)),
        ..status.deprecated.clone().and_then(|old| old.v1beta1).unwrap_or_default()
    };
    status.deprecated.get_or_insert_default().v1beta1 = Some(old);
}

fn phase(observed: &Observed, existing: i32) -> MachineDeploymentPhase {
    let desired = observed.desired();
    if observed.is_deleting() || existing > desired {
        MachineDeploymentPhase::ScalingDown
    } else if existing < desired {
        MachineDeploymentPhase::ScalingUp
    } else {
        MachineDeploymentPhase::Running
    }
}

fn available(draft: &Draft<'_>) -> Finding {
    let observed = draft.observed;
    if let Some(finding) = unlisted(available::TYPE, "MachineSet", &observed.sets) {
        return finding;
    }
    if draft.is_deleting() {
        return available::DELETING.waits("the MachineDeployment to be gone");
    }
    let there = draft.status.available_replicas.unwrap_or_default();
    let needed = observed.limits().min_available();
    if there >= needed {
        return available::AVAILABLE.into();
    }
    available::NOT_AVAILABLE
        .waits("Machines to be available")
        .because(format!("{there} Machines are available, at least {needed} must be"))
}

fn rolling_out(observed: &Observed) -> Finding {
    let members = observed.members();
    let outdated: i32 = members
        .iter()
        .filter(|set| !revision::is_current(&observed.deployment, set, observed.now))
        .filter_map(|set| set.status.as_ref()?.replicas)
        .sum();
    if outdated == 0 || observed.is_deleting() {
        return rolling_out::NOT_ROLLING_OUT.into();
    }
    let finding = if observed.is_on_delete() {
        let on = "strategy RollingUpdate: replacing Machines that people delete (OnDelete) is not built yet";
        rolling_out::ROLLING_OUT.by(Actor::ClusterOwner, on)
    } else if let Some(obstacle) = observed.obstacle() {
        return rolling_out::ROLLING_OUT.waiting(obstacle);
    } else {
        rolling_out::ROLLING_OUT.waits("them to be replaced")
    };
    finding.because(format!("{outdated} Machines have an older template"))
}

fn scaling_up(observed: &Observed, existing: i32) -> Finding {
    let desired = observed.desired();
    if observed.is_deleting() || existing >= desired {
        return scaling_up::NOT_SCALING_UP.into();
    }
    let missing = scaling_up::SCALING_UP;
    match (&observed.cluster, observed.refusals.iter().next()) {
        (Read::One(_), None) => observed.obstacle().map_or_else(
            || machine_set::growing(existing, desired, None),
            |obstacle| missing.waiting(obstacle),
        ),
        (Read::One(_), refused) | (_, refused @ Some(_)) => machine_set::growing(existing, desired, refused),
        (Read::Unknown(unknown), None) => missing.waiting(unreadable("the Cluster", unknown)),
        (Read::Absent | Read::Many(_), None) => missing.by(Actor::ClusterOwner, "the Cluster to be created"),
    }
}

/// The Machines of all sets of the deployment.
fn machines(observed: &Observed) -> Vec<&Machine> {
    let members = observed.members();
    let is_member = |machine: &&Machine| {
        let uid = |set: &&&MachineSet| set.metadata.uid.as_deref().unwrap_or_default().to_owned();
        members.iter().any(|set| referred::is_controlled_by(&machine.metadata, &uid(&set)))
    };
    observed.machines.iter().filter(is_member).collect()
}

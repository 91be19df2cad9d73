//! What is said about a MachineDeployment.

use hangar_api::cluster::v1beta2::machine_deployment::MachineDeploymentStatusV1Beta1;
use hangar_api::cluster::v1beta2::{Machine, MachineDeploymentPhase, MachineDeploymentStatus, MachineSet};
use hangar_api::conditions::{self, Actor, Finding, Waiting};
use kube::ResourceExt as _;
use kube::core::Selector;

use super::{Observed, revision, split};
use crate::findings::{self, PAUSED, unlisted};
use crate::flow::Read;
use crate::referred;

const AVAILABLE: &str = "Available";
const ROLLING_OUT: &str = "RollingOut";
const SCALING_UP: &str = "ScalingUp";
const SCALING_DOWN: &str = "ScalingDown";
const MACHINES_READY: &str = "MachinesReady";
const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
const DELETING: &str = "Deleting";

fn set(status: &mut MachineDeploymentStatus, observed: &Observed, finding: Finding) {
    conditions::set(status, finding, observed.deployment.metadata.generation, observed.now);
}

pub(super) fn paused(observed: &Observed, until: &str) -> MachineDeploymentStatus {
    let mut status = observed.deployment.status.clone().unwrap_or_default();
    if !observed.sets.is_unknown() {
        counts(&mut status, observed);
    }
    set(&mut status, observed, findings::paused(until));
    status.observed_generation = observed.deployment.metadata.generation;
    status
}

pub(super) fn normal(observed: &Observed) -> MachineDeploymentStatus {
    let mut status = observed.deployment.status.clone().unwrap_or_default();
    if !observed.sets.is_unknown() {
        counts(&mut status, observed);
    }
    set(&mut status, observed, Finding::clear(PAUSED, "NotPaused"));
    set(&mut status, observed, deleting(observed));
    let available = available(&status, observed);
    set(&mut status, observed, available);
    set(&mut status, observed, rolling_out(observed));
    let existing = status.replicas.unwrap_or_default();
    set(&mut status, observed, scaling_up(observed, existing));
    set(&mut status, observed, scaling_down(observed, existing));
    set(&mut status, observed, merged(observed, MACHINES_READY, "Ready"));
    set(&mut status, observed, merged(observed, MACHINES_UP_TO_DATE, "UpToDate"));
    legacy(&mut status, observed);
    status.phase = Some(phase(observed, existing));
    status.observed_generation = observed.deployment.metadata.generation;
    status
}

fn counts(status: &mut MachineDeploymentStatus, observed: &Observed) {
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

fn deleting(observed: &Observed) -> Finding {
    if !observed.is_deleting() {
        return Finding::clear(DELETING, "NotDeleting");
    }
    let sets: Vec<String> = observed.members().iter().map(|set| set.name_any()).collect();
    let on = if sets.is_empty() {
        "the finalizer to be removed".to_owned()
    } else {
        format!("MachineSet {} to be gone", sets.join(", "))
    };
    Finding::raised(DELETING, DELETING, &Waiting::new(Actor::Hangar, on))
}

fn available(status: &MachineDeploymentStatus, observed: &Observed) -> Finding {
    if let Some(finding) = unlisted(AVAILABLE, "MachineSets", &observed.sets) {
        return finding;
    }
    let (there, needed) = (status.available_replicas.unwrap_or_default(), observed.limits().min_available());
    if observed.is_deleting() {
        let waiting = Waiting::new(Actor::Hangar, "the MachineDeployment to be gone");
        return Finding::fails(AVAILABLE, "Deleting", &waiting);
    }
    if there >= needed {
        return Finding::holds(AVAILABLE, AVAILABLE);
    }
    let waiting = Waiting::new(Actor::Hangar, "Machines to be available")
        .because(format!("{there} Machines are available, at least {needed} must be"));
    Finding::fails(AVAILABLE, "NotAvailable", &waiting)
}

fn rolling_out(observed: &Observed) -> Finding {
    let members = observed.members();
    let outdated: i32 = members
        .iter()
        .filter(|set| !revision::is_current(&observed.deployment, set, observed.now))
        .filter_map(|set| set.status.as_ref()?.replicas)
        .sum();
    if outdated == 0 || observed.is_deleting() {
        return Finding::clear(ROLLING_OUT, "NotRollingOut");
    }
    let detail = format!("{outdated} Machines have an older template");
    let waiting = if observed.is_on_delete() {
        Waiting::new(
            Actor::ClusterOwner,
            "strategy RollingUpdate: replacing Machines that people delete (OnDelete) is not built yet",
        )
    } else {
        Waiting::new(Actor::Hangar, "them to be replaced")
    };
    Finding::raised(ROLLING_OUT, ROLLING_OUT, &waiting.because(detail))
}

fn scaling_up(observed: &Observed, existing: i32) -> Finding {
    let desired = observed.desired();
    if observed.is_deleting() || existing >= desired {
        return Finding::clear(SCALING_UP, "NotScalingUp");
    }
    let detail = format!("{existing} of {desired} Machines exist");
    let waiting = match observed.refusals.iter().next() {
        Some((step, words)) => {
            Waiting::new(Actor::ClusterOwner, format!("{step} to be allowed")).because(words.clone())
        }
        None => blocked(observed)
            .unwrap_or_else(|| Waiting::new(Actor::Hangar, "the other Machines").because(detail)),
    };
    Finding::raised(SCALING_UP, SCALING_UP, &waiting)
}

/// Without its Cluster a deployment makes nothing.
fn blocked(observed: &Observed) -> Option<Waiting> {
    match &observed.cluster {
        Read::One(_) => None,
        Read::Unknown(unknown) => {
            Some(Waiting::new(Actor::Operator, "a look at the Cluster").because(unknown.why.clone()))
        }
        Read::Absent | Read::Many(_) => Some(Waiting::new(Actor::ClusterOwner, "the Cluster to be created")),
    }
}

fn scaling_down(observed: &Observed, existing: i32) -> Finding {
    let desired = if observed.is_deleting() { 0 } else { observed.desired() };
    if existing <= desired {
        return Finding::clear(SCALING_DOWN, "NotScalingDown");
    }
    let waiting = Waiting::new(Actor::Hangar, "surplus Machines to be gone")
        .because(format!("{existing} Machines exist, {desired} are wanted"));
    Finding::raised(SCALING_DOWN, SCALING_DOWN, &waiting)
}

fn merged(observed: &Observed, type_: &str, source: &str) -> Finding {
    if let Some(finding) = unlisted(type_, "Machines", &observed.machines) {
        return finding;
    }
    let members = observed.members();
    let is_member = |machine: &&Machine| {
        let uid = |set: &&&MachineSet| set.metadata.uid.as_deref().unwrap_or_default().to_owned();
        members.iter().any(|set| referred::is_controlled_by(&machine.metadata, &uid(&set)))
    };
    let machines: Vec<&Machine> = observed.machines.iter().filter(is_member).collect();
    if machines.is_empty() {
        return Finding::holds(type_, "NoReplicas");
    }
    findings::merged(type_, &machines, source)
}

/// The same in the older contract's shape.
fn legacy(status: &mut MachineDeploymentStatus, observed: &Observed) {
    let pairs = [(AVAILABLE, "Ready"), (AVAILABLE, AVAILABLE)];
    findings::older(status, &pairs, observed.now, |status| {
        let old = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
        old.conditions.get_or_insert_default()
    });
}

//! What is said about a MachineSet.

use hangar_api::cluster::v1beta2::machine_set::MachineSetStatusV1Beta1;
use hangar_api::cluster::v1beta2::{Machine, MachineSetStatus};
use hangar_api::conditions::{self, Actor, Finding, Waiting, is_true};
use kube::ResourceExt as _;
use kube::core::Selector;

use super::{Observed, is_up_to_date, naming, obstacle};
use crate::findings::{self, PAUSED, unlisted};
use crate::flow::Unknown;

const SCALING_UP: &str = "ScalingUp";
const SCALING_DOWN: &str = "ScalingDown";
const MACHINES_READY: &str = "MachinesReady";
const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
const DELETING: &str = "Deleting";

/// Why no Machine is made.
pub(super) enum Obstacle {
    Disabled,
    Unknown(Unknown),
    NoCluster,
    ClusterDeleting,
    NoTemplate(String),
    NoTemplateKind(String),
}

impl Obstacle {
    fn waiting(self) -> Waiting {
        match self {
            Self::Disabled => Waiting::new(
                Actor::ClusterOwner,
                "the annotation cluster.x-k8s.io/disable-machine-create to go",
            ),
            Self::Unknown(unknown) => {
                Waiting::new(Actor::Operator, "a look at the Cluster and the templates").because(unknown.why)
            }
            Self::NoCluster => Waiting::new(Actor::ClusterOwner, "the Cluster to be created"),
            Self::ClusterDeleting => Waiting::new(Actor::Hangar, "the Cluster to be gone"),
            Self::NoTemplate(what) => Waiting::new(Actor::ClusterOwner, format!("{what} to be created")),
            Self::NoTemplateKind(what) => {
                Waiting::new(Actor::ClusterOwner, format!("a reference to a template instead of {what}"))
            }
        }
    }
}

fn set(status: &mut MachineSetStatus, observed: &Observed, finding: Finding) {
    conditions::set(status, finding, observed.set.metadata.generation, observed.now);
}

pub(super) fn paused(observed: &Observed, until: &str) -> MachineSetStatus {
    let mut status = observed.set.status.clone().unwrap_or_default();
    set(&mut status, observed, findings::paused(until));
    status.observed_generation = observed.set.metadata.generation;
    status
}

pub(super) fn normal(observed: &Observed) -> MachineSetStatus {
    let mut status = observed.set.status.clone().unwrap_or_default();
    let members = observed.members();
    if !observed.machines.is_unknown() {
        counts(&mut status, observed, &members);
    }
    set(&mut status, observed, Finding::clear(PAUSED, "NotPaused"));
    set(&mut status, observed, deleting(observed, &members));
    set(&mut status, observed, scaling_up(observed, &members));
    set(&mut status, observed, scaling_down(observed, &members));
    set(&mut status, observed, merged(observed, &members, MACHINES_READY, "Ready"));
    set(&mut status, observed, merged(observed, &members, MACHINES_UP_TO_DATE, "UpToDate"));
    legacy(&mut status, observed);
    status.observed_generation = observed.set.metadata.generation;
    status
}

fn counts(status: &mut MachineSetStatus, observed: &Observed, members: &[&Machine]) {
    let count = |claim: &dyn Fn(&Machine) -> bool| {
        Some(i32::try_from(members.iter().filter(|machine| claim(machine)).count()).unwrap_or(i32::MAX))
    };
    let holds = |machine: &Machine, type_: &str| {
        machine.metadata.deletion_timestamp.is_none()
            && machine.status.as_ref().is_some_and(|status| is_true(status, type_))
    };
    status.replicas = count(&|_| true);
    status.ready_replicas = count(&|machine| holds(machine, "Ready"));
    status.available_replicas = count(&|machine| holds(machine, "Available"));
    status.up_to_date_replicas =
        count(&|machine| is_up_to_date(machine, &observed.set, observed.deployment.as_ref(), observed.now));
    status.selector = Selector::try_from(observed.set.spec.selector.clone())
        .ok()
        .map(|selector| selector.to_string())
        .filter(|text| !text.is_empty());
    let wanted = observed.set.spec.template.metadata.clone().unwrap_or_default().labels.unwrap_or_default();
    let old = MachineSetStatusV1Beta1 {
        ready_replicas: status.ready_replicas,
        available_replicas: status.available_replicas,
        fully_labeled_replicas: count(&|machine| {
            wanted.iter().all(|(name, value)| machine.labels().get(name) == Some(value))
        }),
        ..status.deprecated.clone().and_then(|old| old.v1beta1).unwrap_or_default()
    };
    status.deprecated.get_or_insert_default().v1beta1 = Some(old);
}

fn deleting(observed: &Observed, members: &[&Machine]) -> Finding {
    if !observed.is_deleting() {
        return Finding::clear(DELETING, "NotDeleting");
    }
    let names = names(members);
    let on = if names.is_empty() {
        "the finalizer to be removed".to_owned()
    } else {
        format!("{names} to be gone")
    };
    Finding::raised(DELETING, DELETING, &Waiting::new(Actor::Hangar, on))
}

fn names(members: &[&Machine]) -> String {
    let mut names: Vec<String> = members.iter().map(|machine| machine.name_any()).collect();
    let hidden = names.len().saturating_sub(3);
    names.truncate(3);
    match (names.len(), hidden) {
        (0, _) => String::new(),
        (_, 0) => format!("Machine {}", names.join(", ")),
        _ => format!("Machine {} and {hidden} more", names.join(", ")),
    }
}

fn scaling_up(observed: &Observed, members: &[&Machine]) -> Finding {
    if let Some(finding) = unlisted(SCALING_UP, "Machines", &observed.machines) {
        return finding;
    }
    let wanted = observed.replicas();
    if observed.is_deleting() || members.len() >= wanted {
        return Finding::clear(SCALING_UP, "NotScalingUp");
    }
    let detail = format!("{} of {wanted} Machines exist", members.len());
    let naming = naming::machine_name(&observed.set, 0).err();
    let refused = observed.refusals.iter().next();
    let waiting = match (obstacle(observed), naming, refused) {
        (Some(obstacle), _, _) => obstacle.waiting(),
        (None, Some(error), _) => Waiting::new(Actor::ClusterOwner, "a naming template that can be followed")
            .because(error.to_string()),
        (None, None, Some((step, words))) => {
            Waiting::new(Actor::ClusterOwner, format!("{step} to be allowed")).because(words.clone())
        }
        (None, None, None) => Waiting::new(Actor::Hangar, "the other Machines").because(detail),
    };
    Finding::raised(SCALING_UP, SCALING_UP, &waiting)
}

fn scaling_down(observed: &Observed, members: &[&Machine]) -> Finding {
    if let Some(finding) = unlisted(SCALING_DOWN, "Machines", &observed.machines) {
        return finding;
    }
    let wanted = if observed.is_deleting() { 0 } else { observed.replicas() };
    if members.len() <= wanted {
        return Finding::clear(SCALING_DOWN, "NotScalingDown");
    }
    let going: Vec<&Machine> =
        members.iter().copied().filter(|machine| machine.metadata.deletion_timestamp.is_some()).collect();
    let on = if going.is_empty() { "surplus Machines".to_owned() } else { names(&going) };
    let detail = format!("{} Machines exist, {wanted} are wanted", members.len());
    let waiting = Waiting::new(Actor::Hangar, format!("{on} to be gone")).because(detail);
    Finding::raised(SCALING_DOWN, SCALING_DOWN, &waiting)
}

fn merged(observed: &Observed, members: &[&Machine], type_: &str, source: &str) -> Finding {
    if let Some(finding) = unlisted(type_, "Machines", &observed.machines) {
        return finding;
    }
    if members.is_empty() {
        return Finding::holds(type_, "NoReplicas");
    }
    findings::merged(type_, members, source)
}

/// The same in the older contract's shape.
fn legacy(status: &mut MachineSetStatus, observed: &Observed) {
    let pairs = [(MACHINES_READY, MACHINES_READY)];
    findings::older(status, &pairs, observed.now, |status| {
        let old = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
        old.conditions.get_or_insert_default()
    });
}

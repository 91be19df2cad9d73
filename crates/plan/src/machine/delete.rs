//! The stages of a Machine's deletion, each derived from what still exists.

use std::time::Duration;

use hangar_api::cluster::v1beta2::{Machine, MachineSet};
use hangar_api::conditions::{Actor, Waiting};
use hangar_api::names;
use jiff::Timestamp;

use super::drain::{self, Drain};
use super::node::{self, NodeFacts};
use super::{
    DRAIN_INTERVAL, Look, MISSING_INTERVAL, NAME, NODE_SICK_INTERVAL, NodeStep, NodeView, Observed, Part,
    Step,
};
use crate::flow::{Read, StepId, Target, Wait, Wake, Write};
use crate::referred::{self, Claiming, Referred};

/// How long to try to delete a Node that cannot be reached, if the Machine does not say.
const NODE_DELETION_SECONDS: i32 = 10;
/// Pods that are named in a message; the rest is counted.
const SHOWN: usize = 3;

pub(super) struct Stage {
    pub(super) steps: Vec<Step>,
    pub(super) reason: &'static str,
    pub(super) waiting: Waiting,
    /// Whether the Node is being emptied: the status remembers since when.
    pub(super) is_draining: bool,
    after: Duration,
}

impl Stage {
    fn new(reason: &'static str, waiting: Waiting) -> Self {
        Self { steps: Vec::new(), reason, waiting, is_draining: false, after: MISSING_INTERVAL }
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(super) fn wake(&self, now: Timestamp) -> Wake {
        Wake::after(now, self.after)
    }

    pub(super) fn wait(&self) -> Wait {
        Wait { what: self.waiting.on.clone(), since: None, who: (&self.waiting.actor).into() }
    }
}

/// Why the Node is left alone; none when it is drained and deleted.
fn excuse(observed: &Observed) -> Option<&'static str> {
    if observed.node_name().is_none() {
        return Some("the Machine has no Node");
    }
    let Some(cluster) = observed.the_cluster() else { return Some("there is no Cluster") };
    if cluster.metadata.deletion_timestamp.is_some() {
        return Some("the whole Cluster is being deleted");
    }
    match &observed.control_plane {
        Some(Read::One(plane)) if plane.is_terminating() => Some("the control plane is being deleted"),
        // Without Machines there is a control plane only where it says that it needs none.
        Some(Read::One(plane)) if plane.control_plane().is_externally_managed() => None,
        _ if observed.has_control_plane_machines => None,
        _ => Some("there is no control plane"),
    }
}

/// What the tenant has to be asked for the next stage.
pub(super) fn look(observed: &Observed, name: Option<&str>) -> Option<Look> {
    let name = name.filter(|_| excuse(observed).is_none())?.to_owned();
    Some(if drain_excuse(observed).is_none() { Look::NodeAndPods { name } } else { Look::Node { name } })
}

pub(super) fn next(observed: &Observed) -> Stage {
    if let Some(stage) = unread(observed)
        .or_else(|| hook(observed, names::PRE_DRAIN_HOOK_PREFIX, "WaitingForPreDrainHook"))
        .or_else(|| draining(observed))
        .or_else(|| hook(observed, names::PRE_TERMINATE_HOOK_PREFIX, "WaitingForPreTerminateHook"))
        .or_else(|| part(observed, Part::Infrastructure, "WaitingForInfrastructureDeletion"))
        .or_else(|| part(observed, Part::Bootstrap, "WaitingForBootstrapDeletion"))
        .or_else(|| node_deletion(observed))
    {
        return stage;
    }
    let waiting = Waiting::new(Actor::Hangar, "the finalizer to be removed");
    let release = Write::remove_finalizer(&observed.machine.metadata, names::MACHINE_FINALIZER, NAME);
    Stage::new("DeletionCompleted", waiting).step(release.into())
}

/// Whether the Cluster is going, and whether it has a control plane, decides about the Node: both have to be known, or a
/// Node that runs would lose its server without being emptied.
fn unread(observed: &Observed) -> Option<Stage> {
    let unread = |what: &str, why: &str| {
        let waiting = Waiting::new(Actor::Operator, format!("a look at {what}")).because(why);
        Some(Stage::new("DeletionStateUnknown", waiting))
    };
    if let Read::Unknown(unknown) = &observed.cluster {
        return unread("the Cluster", &unknown.why);
    }
    let Some(Read::Unknown(unknown)) = &observed.control_plane else { return None };
    let cluster = observed.the_cluster()?;
    let is_decided = observed.node_name().is_none()
        || cluster.metadata.deletion_timestamp.is_some()
        || observed.has_control_plane_machines;
    if is_decided { None } else { unread("the control plane", &unknown.why) }
}

fn hook(observed: &Observed, prefix: &str, reason: &'static str) -> Option<Stage> {
    let annotations = observed.machine.metadata.annotations.iter().flatten();
    let hooks: Vec<&str> =
        annotations.map(|(name, _)| name.as_str()).filter(|name| name.starts_with(prefix)).collect();
    if hooks.is_empty() {
        return None;
    }
    let actor = Actor::Controller("whoever set them".to_owned());
    let waiting = Waiting::new(actor, format!("the annotations {} to be removed", hooks.join(", ")));
    Some(Stage::new(reason, waiting))
}

/// Why a Node is not emptied though it will be deleted; none when it is emptied.
fn drain_excuse(observed: &Observed) -> Option<&'static str> {
    let mut annotations = observed.machine.metadata.annotations.iter().flatten();
    if annotations.any(|(name, _)| name == names::EXCLUDE_NODE_DRAINING_ANNOTATION) {
        return Some("the Machine says so");
    }
    if is_drain_over(observed) {
        return Some("it took too long");
    }
    match &observed.infrastructure {
        Read::Absent => Some("the server is gone"),
        Read::One(server) if server.is_terminating() => Some("the server is being deleted"),
        _ => None,
    }
}

fn is_drain_over(observed: &Observed) -> bool {
    let limit =
        observed.machine.spec.deletion.as_ref().and_then(|deletion| deletion.node_drain_timeout_seconds);
    let status = observed.machine.status.as_ref().and_then(|status| status.deletion.as_ref());
    let since = status.and_then(|deletion| deletion.node_drain_start_time.as_ref());
    match (limit.filter(|limit| *limit > 0), since) {
        (Some(limit), Some(since)) => observed.now.duration_since(since.0).as_secs() >= i64::from(limit),
        _ => false,
    }
}

fn draining(observed: &Observed) -> Option<Stage> {
    if excuse(observed).is_some() || drain_excuse(observed).is_some() {
        return None;
    }
    let unreachable = |why: &str| {
        let actor = Actor::Controller("the control plane".to_owned());
        let waiting = Waiting::new(actor, "an answer of the API server").because(why);
        let mut stage = Stage::new("DrainingNode", waiting);
        stage.is_draining = true;
        stage.after = NODE_SICK_INTERVAL;
        Some(stage)
    };
    let node = match &observed.node {
        NodeView::Absent | NodeView::Several(_) => return None,
        NodeView::NotLooked => return unreachable("the Node was not asked for yet"),
        NodeView::Unreachable(why) => return unreachable(why),
        NodeView::Found(node) => node,
    };
    if let Read::Unknown(unknown) = &observed.pods {
        return unreachable(&unknown.why);
    }
    let is_silent = node::is_silent(node);
    let drain = drain::drain(observed.pods.iter(), &observed.refusals, is_silent, observed.now);
    // Also an empty Node is closed first: pods could still come.
    if drain.is_done() && node.is_cordoned {
        return None;
    }
    Some(drain_stage(node, &drain, is_silent))
}

fn drain_stage(node: &NodeFacts, drain: &Drain, is_silent: bool) -> Stage {
    let (actor, on) = match (drain.blocked.first(), drain.awaited.first()) {
        (Some(_), _) => (Actor::ClusterOwner, "the pods' disruption budgets to allow it".to_owned()),
        (None, Some(pod)) if drain.leaving.is_empty() && drain.evict.is_empty() => {
            (Actor::ClusterOwner, format!("pod {pod} to complete"))
        }
        _ => (Actor::Hangar, format!("the pods of Node {} to leave", node.name)),
    };
    let mut waiting = Waiting::new(actor, on);
    if !drain.is_done() {
        waiting = waiting.because(described(drain));
    }
    let mut stage = Stage::new("DrainingNode", waiting);
    stage.is_draining = true;
    stage.after = DRAIN_INTERVAL;
    if !node.is_cordoned {
        stage = stage.step(Step::Tenant(NodeStep::Cordon { name: node.name.clone() }));
    }
    for (pod, uid) in &drain.evict {
        let grace_seconds = is_silent.then_some(1);
        let evict = NodeStep::Evict { pod: pod.clone(), uid: uid.clone(), grace_seconds };
        stage = stage.step(Step::Tenant(evict));
    }
    stage
}

fn described(drain: &Drain) -> String {
    let listed = |pods: Vec<String>, words: &str| {
        let hidden = pods.len().saturating_sub(SHOWN);
        let shown: Vec<String> = pods.into_iter().take(SHOWN).collect();
        let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
        (!shown.is_empty()).then(|| format!("{words} {}{more}", shown.join(", ")))
    };
    let names = |pods: &[drain::PodKey]| pods.iter().map(ToString::to_string).collect::<Vec<_>>();
    let blocked = drain.blocked.iter().map(|blocked| format!("{} ({})", blocked.pod, blocked.why)).collect();
    let asked = drain.evict.iter().map(|(pod, _)| pod.to_string()).collect();
    let parts = [
        listed(blocked, "held:"),
        listed(names(&drain.leaving), "leaving:"),
        listed(asked, "asked to leave:"),
        listed(names(&drain.awaited), "to complete:"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What the Machine refers to and never could claim stays with its owner. The uid does not count: a Machine that was
/// restored has another one, and is still the same.
fn is_anothers(observed: &Observed, object: &Referred) -> bool {
    let metadata = &observed.machine.metadata;
    let itself = format!("Machine {}", metadata.name.as_deref().unwrap_or_default());
    let owner = referred::owner::<Machine>(metadata, true);
    let claiming =
        object.claiming(&owner, &observed.machine.spec.cluster_name, Some(referred::is_kind::<MachineSet>));
    matches!(claiming, Claiming::Taken(by) if by != itself)
}

fn part(observed: &Observed, part: Part, reason: &'static str) -> Option<Stage> {
    let reference = observed.reference(part)?;
    let what = format!("{} {}", reference.kind, reference.name);
    match observed.read(part)? {
        Read::Absent | Read::Many(_) => None,
        Read::Unknown(unknown) => {
            let waiting =
                Waiting::new(Actor::Operator, format!("a look at {what}")).because(unknown.why.clone());
            Some(Stage::new("DeletionStateUnknown", waiting))
        }
        Read::One(object) if is_anothers(observed, object) => None,
        Read::One(object) => {
            let actor = Actor::Controller(format!("the controller of {}", reference.kind));
            let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
            let mut waiting = Waiting::new(actor, format!("{what} to be gone"));
            if object.is_terminating() && !finalizers.is_empty() {
                waiting = waiting.because(format!("{what} has the finalizers {}", finalizers.join(", ")));
            }
            let stage = Stage::new(reason, waiting);
            if object.is_terminating() {
                return Some(stage);
            }
            let target = Target::referred(reference, object.uid());
            Some(stage.step(Write::delete(StepId::new("delete", part.as_str(), ""), target).into()))
        }
    }
}

fn node_deletion(observed: &Observed) -> Option<Stage> {
    if excuse(observed).is_some() {
        return None;
    }
    let name = observed.node_name()?;
    let why = match &observed.node {
        NodeView::Absent | NodeView::Several(_) => return None,
        NodeView::Found(_) => observed.refusals.get(&StepId::new("delete", "node", name)).cloned(),
        NodeView::Unreachable(why) => Some(why.clone()),
        NodeView::NotLooked => Some("the Node was not asked for yet".to_owned()),
    };
    if why.is_some() && is_node_deletion_over(observed) {
        return None;
    }
    let actor = Actor::Controller("the control plane".to_owned());
    let mut waiting = Waiting::new(actor, format!("Node {name} to be gone"));
    if let Some(why) = &why {
        waiting = waiting.because(why.clone());
    }
    let mut stage = Stage::new("WaitingForNodeDeletion", waiting);
    stage.after = NODE_SICK_INTERVAL;
    if let NodeView::Found(node) = &observed.node {
        let delete = NodeStep::Delete { name: name.to_owned(), uid: node.uid.clone() };
        stage = stage.step(Step::Tenant(delete));
    }
    Some(stage)
}

/// A Node that cannot be deleted holds its Machine only for a while; without its server it does nothing.
fn is_node_deletion_over(observed: &Observed) -> bool {
    let limit =
        observed.machine.spec.deletion.as_ref().and_then(|deletion| deletion.node_deletion_timeout_seconds);
    let limit = limit.unwrap_or(NODE_DELETION_SECONDS);
    let since = observed.machine.metadata.deletion_timestamp.as_ref();
    limit != 0
        && since.is_some_and(|since| observed.now.duration_since(since.0).as_secs() >= i64::from(limit))
}

//! The stages of a Machine's deletion, each derived from what still exists.

use hangar_api::cluster::v1beta2::{Machine, MachineSet};
use hangar_api::conditions::{Bad, Finding};
use hangar_api::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::conditions::deleting;
use super::drain::{self, Drain};
use super::node::{self, NodeFacts};
use super::status::whole_seconds;
use super::{
    DRAIN_INTERVAL, Draft, MISSING_INTERVAL, NAME, NODE_SICK_INTERVAL, NodeStep, NodeView, Observed,
    Reference, Step, TenantRead,
};
use crate::conditions::{
    shared,
    who::{CONTROL_PLANE, OWNER},
};
use crate::flow::{Read, StepId, Write};
use crate::referred::{self, Claiming, Referred};

/// How long to try to delete a Node that cannot be reached, if the Machine does not say.
const NODE_DELETION_SECONDS: i32 = 10;
const NOT_ASKED: &str = "the Node was not asked for yet";

/// Why the Node is left alone; none when it is drained and deleted.
fn excuse(observed: &Observed) -> Option<&'static str> {
    if has_no_node(observed) {
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

/// Whether there cannot be a Node. One that registered since the last look is not in the status yet: it is searched by
/// the server's id, if there is a server and an API server that it could register with.
fn has_no_node(observed: &Observed) -> bool {
    let can_have = observed.machine.spec.provider_id.is_some() && observed.is_control_plane_initialized();
    observed.node_name().is_none() && !can_have
}

/// What the tenant has to be asked for the next stage.
pub(super) fn tenant_read(observed: &Observed) -> Option<TenantRead> {
    if excuse(observed).is_some() {
        return None;
    }
    let with_pods = drain_excuse(observed).is_none();
    match observed.node_name().map(str::to_owned) {
        Some(name) if with_pods => Some(TenantRead::NodeAndPods { name }),
        Some(name) => Some(TenantRead::Node { name }),
        None => {
            let provider_id = observed.machine.spec.provider_id.clone()?;
            Some(TenantRead::FindNode { provider_id, with_pods })
        }
    }
}

/// Says where deletion stands, and does what is next.
pub(super) fn draft(draft: &mut Draft<'_>) {
    let finding = unread(draft.observed)
        .or_else(|| hook(draft.observed, names::PRE_DRAIN_HOOK_PREFIX, deleting::PRE_DRAIN_HOOK))
        .or_else(|| drain_node(draft))
        .or_else(|| hook(draft.observed, names::PRE_TERMINATE_HOOK_PREFIX, deleting::PRE_TERMINATE_HOOK))
        .or_else(|| delete_referred(draft, Reference::Infrastructure, deleting::WAITING_FOR_INFRASTRUCTURE))
        .or_else(|| delete_referred(draft, Reference::Bootstrap, deleting::WAITING_FOR_BOOTSTRAP))
        .or_else(|| delete_node(draft))
        .unwrap_or_else(|| {
            draft.step(Write::remove_finalizer(draft.metadata(), names::MACHINE_FINALIZER, NAME));
            deleting::COMPLETED.waits("the finalizer to be removed")
        });
    draft.say(finding);
    draft.again(MISSING_INTERVAL);
}

/// Whether the Cluster is going, whether it has a control plane, and whether the server is there decides about the Node:
/// all have to be known, or a Node that runs would lose its server without being emptied.
fn unread(observed: &Observed) -> Option<Finding> {
    let unread =
        |what: &str, unknown| Some(deleting::STATE_UNKNOWN.waiting(shared::unreadable(what, unknown)));
    if let Read::Unknown(unknown) = &observed.cluster {
        return unread("the Cluster", unknown);
    }
    if let Read::Unknown(unknown) = &observed.infrastructure {
        let reference = &observed.machine.spec.infrastructure_ref;
        return unread(&format!("{} {}", reference.kind, reference.name), unknown);
    }
    let Some(Read::Unknown(unknown)) = &observed.control_plane else { return None };
    let cluster = observed.the_cluster()?;
    let is_decided = has_no_node(observed)
        || cluster.metadata.deletion_timestamp.is_some()
        || observed.has_control_plane_machines;
    if is_decided { None } else { unread("the control plane", unknown) }
}

fn hook(observed: &Observed, prefix: &str, reason: Bad) -> Option<Finding> {
    let annotations = observed.machine.metadata.annotations.iter().flatten();
    let hooks: Vec<&str> =
        annotations.map(|(name, _)| name.as_str()).filter(|name| name.starts_with(prefix)).collect();
    let waits = || reason.waits(format!("the annotations {} to be removed", hooks.join(", ")));
    (!hooks.is_empty()).then(waits)
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

fn drain_node(draft: &mut Draft<'_>) -> Option<Finding> {
    let observed = draft.observed;
    if excuse(observed).is_some() || drain_excuse(observed).is_some() {
        return None;
    }
    let why = match (&observed.node, &observed.pods) {
        (NodeView::Absent | NodeView::Several(_), _) => return None,
        // A Node that was never seen is searched for a while only.
        (NodeView::Unreachable(_), _)
            if observed.node_name().is_none() && is_node_deletion_over(observed) =>
        {
            return None;
        }
        (NodeView::NotLooked, _) => NOT_ASKED,
        (NodeView::Unreachable(why), _) => why,
        (NodeView::Found(_), Read::Unknown(unknown)) => &unknown.why,
        (NodeView::Found(node), pods) => {
            let is_silent = node::is_silent(node);
            let drain = drain::drain(pods.iter(), &observed.refusals, is_silent, observed.now);
            // Also an empty Node is closed first: pods could still come.
            if drain.is_done() && node.is_cordoned {
                return None;
            }
            begin_drain(draft);
            draft.again(DRAIN_INTERVAL);
            return Some(evict(draft, node, &drain, is_silent));
        }
    };
    begin_drain(draft);
    draft.again(NODE_SICK_INTERVAL);
    Some(deleting::DRAINING.by(CONTROL_PLANE, "an answer of the API server").because(why))
}

/// The status remembers since when the Node is being emptied. Whole seconds, as they are stored.
fn begin_drain(draft: &mut Draft<'_>) {
    let now = whole_seconds(draft.observed.now);
    let deletion = draft.status.deletion.get_or_insert_default();
    deletion.node_drain_start_time.get_or_insert(Time(now));
}

fn evict(draft: &mut Draft<'_>, node: &NodeFacts, drain: &Drain, is_silent: bool) -> Finding {
    if !node.is_cordoned {
        draft.steps.push(Step::Tenant(NodeStep::Cordon { name: node.name.clone() }));
    }
    for (pod, uid) in &drain.evict {
        let grace_seconds = is_silent.then_some(1);
        let evict = NodeStep::Evict { pod: pod.clone(), uid: uid.clone(), grace_seconds };
        draft.steps.push(Step::Tenant(evict));
    }
    let finding = match (drain.blocked.first(), drain.awaited.first()) {
        (Some(_), _) => deleting::DRAINING.by(OWNER, "the pods' disruption budgets to allow it"),
        (None, Some(pod)) if drain.leaving.is_empty() && drain.evict.is_empty() => {
            deleting::DRAINING.by(OWNER, format!("pod {pod} to complete"))
        }
        _ => deleting::DRAINING.waits(format!("the pods of Node {} to leave", node.name)),
    };
    finding.because_of((!drain.is_done()).then(|| described(drain)))
}

fn described(drain: &Drain) -> String {
    let listed = |pods: Vec<String>, what: &str| {
        (!pods.is_empty()).then(|| format!("{what} {}", shared::listed(pods)))
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

fn delete_referred(draft: &mut Draft<'_>, which: Reference, reason: Bad) -> Option<Finding> {
    let observed = draft.observed;
    let (reference, read) = (observed.reference(which)?, observed.read(which)?);
    let reasons = (reason, deleting::STATE_UNKNOWN);
    let (finding, target) =
        shared::leaving(reasons, reference, read, |object| is_anothers(observed, object))?;
    if let Some(target) = target {
        draft.step(Write::delete(StepId::new("delete", which.as_str(), ""), target));
    }
    Some(finding)
}

fn delete_node(draft: &mut Draft<'_>) -> Option<Finding> {
    let observed = draft.observed;
    if excuse(observed).is_some() {
        return None;
    }
    let name = match &observed.node {
        NodeView::Found(node) => node.name.as_str(),
        _ => observed.node_name().or(observed.machine.spec.provider_id.as_deref()).unwrap_or_default(),
    };
    let why = match &observed.node {
        NodeView::Absent | NodeView::Several(_) => return None,
        NodeView::Found(_) => observed.refusals.get(&StepId::new("delete", "node", name)).map(String::as_str),
        NodeView::Unreachable(why) => Some(why.as_str()),
        NodeView::NotLooked => Some(NOT_ASKED),
    };
    if why.is_some() && is_node_deletion_over(observed) {
        return None;
    }
    if let NodeView::Found(node) = &observed.node {
        let delete = NodeStep::Delete { name: name.to_owned(), uid: node.uid.clone() };
        draft.steps.push(Step::Tenant(delete));
    }
    draft.again(NODE_SICK_INTERVAL);
    Some(deleting::WAITING_FOR_NODE.waits(format!("Node {name} to be gone")).because_of(why))
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

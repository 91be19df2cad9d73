//! The status of a Machine: one function per condition, then the summaries of these conditions.

use hangar_api::cluster::machine_status::{MachineAddress, MachineAddressType};
use hangar_api::cluster::v1beta2::machine::NodeReference;
use hangar_api::cluster::v1beta2::{Machine, MachinePhase, MachineSet, MachineStatus};
use hangar_api::conditions::{self, Actor, Bad, Finding, Term};
use hangar_api::contract::InfrastructureMachine;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::conditions::{
    available, bootstrap_config_ready, deleting, infrastructure_ready, node_healthy, node_ready, nodes,
    ready, up_to_date,
};
use super::{Draft, NodeFacts, NodeView, Observed, Reference, node};
use crate::cluster::conditions::remote_connection_probe;
use crate::conditions::shared::{self, Absence};
use crate::conditions::who::CONTROL_PLANE;
use crate::flow::{Read, Wake};
use crate::machine_set::is_up_to_date;
use crate::referred::{self, Claiming, Referred};

/// How long the last word about a Node counts while its API server does not answer: as long as upstream's.
const BELIEVED_FOR: SignedDuration = SignedDuration::from_mins(5);

/// Everything but what is said about deletion.
pub(super) fn draft(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    facts(&mut draft.status, observed);
    let phase = phase(&draft.status, observed);
    if draft.status.phase != Some(phase) {
        draft.status.phase = Some(phase);
        draft.status.last_updated = Some(Time(whole_seconds(observed.now)));
    }
    draft.say(bootstrap_ready(observed));
    draft.say(infrastructure_ready(observed));
    for finding in node_findings(draft).into_iter().flatten().chain(up_to_date(observed)) {
        draft.say(finding);
    }
    let mut terms = vec![
        Term::negative(deleting::TYPE),
        Term::positive(bootstrap_config_ready::TYPE),
        Term::positive(infrastructure_ready::TYPE),
        Term::positive(node_healthy::TYPE),
        Term::positive("HealthCheckSucceeded").optional(),
    ];
    terms.extend(shared::gates(observed.machine.spec.readiness_gates.as_ref()));
    draft.summarise(ready::TYPE, &terms);
    draft.say(available(draft));
}

/// As it is stored: a finer time would differ from what is read back.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// What is copied from the providers and the Node.
fn facts(status: &mut MachineStatus, observed: &Observed) {
    let has_data =
        observed.machine.spec.bootstrap.data_secret_name.as_deref().is_some_and(|name| !name.is_empty());
    let server = observed.object(Reference::Infrastructure).map(Referred::infrastructure_machine);
    let server = server.filter(InfrastructureMachine::is_provisioned);
    let is_provisioned = server.is_some() && observed.machine.spec.provider_id.is_some();
    if has_data || is_provisioned {
        let reached = status.initialization.get_or_insert_default();
        if has_data {
            reached.bootstrap_data_secret_created = Some(true);
        }
        if is_provisioned {
            reached.infrastructure_provisioned = Some(true);
        }
    }
    if let Some(server) = server {
        let addresses: Vec<MachineAddress> = server
            .addresses()
            .into_iter()
            .filter_map(|address| {
                Some(MachineAddress { r#type: kind(&address.type_)?, address: address.address })
            })
            .collect();
        status.addresses = Some(addresses).filter(|addresses| !addresses.is_empty());
    }
    if let NodeView::Found(node) = &observed.node {
        status.node_ref.get_or_insert_with(|| NodeReference { name: node.name.clone() });
        status.node_info.clone_from(&node.info);
    }
}

fn kind(text: &str) -> Option<MachineAddressType> {
    match text {
        "Hostname" => Some(MachineAddressType::Hostname),
        "ExternalIP" => Some(MachineAddressType::ExternalIp),
        "InternalIP" => Some(MachineAddressType::InternalIp),
        "ExternalDNS" => Some(MachineAddressType::ExternalDns),
        "InternalDNS" => Some(MachineAddressType::InternalDns),
        _ => None,
    }
}

fn phase(status: &MachineStatus, observed: &Observed) -> MachinePhase {
    let reached = status.initialization.clone().unwrap_or_default();
    let is_provisioned = reached.infrastructure_provisioned == Some(true);
    if observed.is_deleting() {
        MachinePhase::Deleting
    } else if status.node_ref.is_some() && is_provisioned {
        MachinePhase::Running
    } else if is_provisioned && observed.machine.spec.provider_id.is_some() {
        MachinePhase::Provisioned
    } else if reached.bootstrap_data_secret_created == Some(true) {
        MachinePhase::Provisioning
    } else {
        MachinePhase::Pending
    }
}

/// What is said while the object behind a reference cannot be read, or is somebody else's.
fn absent(type_: &'static str, observed: &Observed, which: Reference, was_there: bool) -> Option<Finding> {
    let metadata = &observed.machine.metadata;
    let absence = match (observed.is_deleting(), was_there) {
        (true, _) => Absence::Deleting("the Machine to be gone"),
        (false, true) => Absence::Lost("the Machine to be deleted"),
        (false, false) if referred::controller(metadata).is_some() => Absence::NotCreated(Actor::Hangar),
        (false, false) => Absence::NotCreated(Actor::ClusterOwner),
    };
    let owner = |object: &Referred| {
        let ours = referred::owner::<Machine>(metadata, true);
        match object.claiming(
            &ours,
            &observed.machine.spec.cluster_name,
            Some(referred::is_kind::<MachineSet>),
        ) {
            Claiming::Taken(by) => Some(by),
            Claiming::Held | Claiming::Needs(_) => None,
        }
    };
    shared::absent(type_, observed.reference(which)?, observed.read(which)?, absence, owner)
}

fn reached(observed: &Observed) -> (bool, bool) {
    let reached = observed.machine.status.as_ref().and_then(|status| status.initialization.clone());
    let reached = reached.unwrap_or_default();
    (reached.bootstrap_data_secret_created == Some(true), reached.infrastructure_provisioned == Some(true))
}

fn bootstrap_ready(observed: &Observed) -> Finding {
    let type_ = bootstrap_config_ready::TYPE;
    let reference = observed.reference(Reference::Bootstrap);
    if reference.is_none() {
        return bootstrap_config_ready::DATA_SECRET_PROVIDED.into();
    }
    let (was_there, _) = reached(observed);
    // The data has been used by then: a configuration that is gone afterwards is no loss.
    let is_gone = matches!(observed.bootstrap, Some(Read::Absent));
    if was_there && is_gone && !observed.is_deleting() {
        return bootstrap_config_ready::DATA_SECRET_CREATED.into();
    }
    if let Some(finding) = absent(type_, observed, Reference::Bootstrap, was_there) {
        return finding;
    }
    let view = observed.object(Reference::Bootstrap).map(Referred::bootstrap);
    let flag = view.is_some_and(|view| view.is_data_secret_created());
    let source = view.and_then(|view| view.ready_condition());
    shared::mirrored(type_, reference, (source.as_ref(), flag), "the bootstrap data")
}

fn infrastructure_ready(observed: &Observed) -> Finding {
    let type_ = infrastructure_ready::TYPE;
    if let Some(finding) = absent(type_, observed, Reference::Infrastructure, reached(observed).1) {
        return finding;
    }
    let view = observed.object(Reference::Infrastructure).map(Referred::infrastructure_machine);
    let flag = view.is_some_and(|view| view.is_provisioned());
    let source = view.and_then(|view| view.ready_condition());
    let reference = observed.reference(Reference::Infrastructure);
    shared::mirrored(type_, reference, (source.as_ref(), flag), "the server")
}

/// What a Node says about itself.
fn of_node(node: &NodeFacts) -> [Finding; 2] {
    let complaints = node::complaints(node);
    let bad = |reason: Bad, why: &str| reason.waits("a healthy Node").because(why);
    let silent = |type_| nodes::NODE_NOT_HEARD_OF.about(type_);
    let healthy = match (complaints.is_empty(), node::is_silent(node)) {
        (true, _) => node_healthy::NODE_HEALTHY.into(),
        (false, true) => bad(silent(node_healthy::TYPE), &complaints.join("; ")),
        (false, false) => bad(node_healthy::NODE_NOT_HEALTHY, &complaints.join("; ")),
    };
    let ready = match node.conditions.get("Ready") {
        Some((status, ..)) if status == "True" => node_ready::NODE_READY.into(),
        Some((status, _, message)) if status == "Unknown" => bad(silent(node_ready::TYPE), message),
        Some((_, _, message)) => bad(node_ready::NODE_NOT_READY, message),
        None => bad(node_ready::NOT_YET_REPORTED, "no condition yet"),
    };
    [healthy, ready]
}

/// Whether the Cluster's API server has not answered for so long that what was said about the Node may be wrong.
fn is_long_away(observed: &Observed) -> bool {
    let status = observed.the_cluster().and_then(|cluster| cluster.status.as_ref());
    let probe = status.and_then(|status| conditions::get(status, remote_connection_probe::TYPE));
    probe.is_some_and(|probe| {
        let since = observed.now.duration_since(probe.last_transition_time.0);
        probe.status != "True" && since >= BELIEVED_FOR
    })
}

/// `NodeHealthy` and `NodeReady`; none keeps what was said before.
fn node_findings(draft: &Draft<'_>) -> Option<[Finding; 2]> {
    let observed = draft.observed;
    let finding = match &observed.node {
        NodeView::Found(node) => return Some(of_node(node)),
        NodeView::Absent if observed.node_name().is_some() && observed.is_deleting() => {
            nodes::NODE_DELETED.by(Actor::Hangar, "the Machine to be gone")
        }
        NodeView::Absent if observed.node_name().is_some() => {
            nodes::NODE_DELETED.waits("the Machine to be deleted").because("the Node was deleted")
        }
        NodeView::Absent => {
            let id = observed.machine.spec.provider_id.as_deref().unwrap_or_default();
            nodes::NODE_DOES_NOT_EXIST.waits(format!("a Node with the provider id {id}"))
        }
        NodeView::Several(names) => nodes::SEVERAL_NODES
            .waits("one Node per server")
            .because(format!("the Nodes {} have the same provider id", names.join(", "))),
        // One failed call is no news about a Node, and a short outage is none; the Cluster says that its API server is
        // away.
        NodeView::Unreachable(_)
            if draft.condition(node_healthy::TYPE).is_some() && !is_long_away(observed) =>
        {
            return None;
        }
        NodeView::Unreachable(why) => {
            nodes::API_SERVER_UNREACHABLE.waits("an answer of the API server").because(why)
        }
        NodeView::NotLooked if observed.node_name().is_some() => return None,
        NodeView::NotLooked if observed.machine.spec.provider_id.is_none() => {
            nodes::WAITING_FOR_SERVER.waits("a server")
        }
        NodeView::NotLooked => {
            nodes::WAITING_FOR_SERVER.by(CONTROL_PLANE, "the API server to answer for the first time")
        }
    };
    Some([finding.clone().about(node_healthy::TYPE), finding.about(node_ready::TYPE)])
}

fn up_to_date(observed: &Observed) -> Option<Finding> {
    let set = observed.set.as_ref()?;
    if is_up_to_date(&observed.machine, set, observed.deployment.as_ref(), observed.now) {
        return Some(up_to_date::UP_TO_DATE.into());
    }
    let not = up_to_date::NOT_UP_TO_DATE.waits("the Machine to be replaced");
    Some(not.because("its template has changed"))
}

fn ready_since(ready: &Condition) -> Option<Timestamp> {
    (ready.status == "True").then_some(ready.last_transition_time.0)
}

fn patience(observed: &Observed) -> SignedDuration {
    SignedDuration::from_secs(i64::from(observed.machine.spec.min_ready_seconds.unwrap_or_default()))
}

fn available(draft: &Draft<'_>) -> Finding {
    let observed = draft.observed;
    let Some(since) = draft.condition(ready::TYPE).as_ref().and_then(ready_since) else {
        return available::NOT_READY.waits("the Machine to be ready");
    };
    if observed.now.duration_since(since) >= patience(observed) {
        return available::AVAILABLE.into();
    }
    let seconds = patience(observed).as_secs();
    available::WAITING_FOR_MIN_READY_SECONDS.waits(format!("{seconds} s of being ready"))
}

/// When a Machine that stays ready becomes available.
pub(super) fn available_at(observed: &Observed) -> Wake {
    let status = observed.machine.status.as_ref();
    let since = status.and_then(|status| conditions::get(status, ready::TYPE)).and_then(ready_since);
    match since.and_then(|since| since.checked_add(patience(observed)).ok()) {
        Some(at) if at > observed.now => Wake::At(at),
        _ if since.is_none() && !patience(observed).is_zero() => {
            let length = patience(observed).unsigned_abs();
            Wake::after(observed.now, length)
        }
        _ => Wake::OnChange,
    }
}

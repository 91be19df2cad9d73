//! What is said about a Machine: one function per condition, then the summaries that rest on them.

use hangar_api::cluster::machine_status::{MachineAddress, MachineAddressType};
use hangar_api::cluster::v1beta2::machine::NodeReference;
use hangar_api::cluster::v1beta2::{Machine, MachinePhase, MachineSet, MachineStatus};
use hangar_api::conditions::{self, Actor, Finding, Part as SummaryPart, Waiting, summary};
use hangar_api::contract::InfrastructureMachine;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::delete::Stage;
use super::{NodeFacts, NodeView, Observed, Part, node};
use crate::findings::{self, Absence, PAUSED};
use crate::flow::{Read, Wake};
use crate::machine_set::is_up_to_date;
use crate::referred::{self, Claiming, Referred};

const READY: &str = "Ready";
const AVAILABLE: &str = "Available";
const UP_TO_DATE: &str = "UpToDate";
const BOOTSTRAP_READY: &str = "BootstrapConfigReady";
const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
const NODE_HEALTHY: &str = "NodeHealthy";
const NODE_READY: &str = "NodeReady";
const DELETING: &str = "Deleting";

fn set(status: &mut MachineStatus, observed: &Observed, finding: Finding) {
    conditions::set(status, finding, observed.machine.metadata.generation, observed.now);
}

pub(super) fn paused(observed: &Observed, until: &str) -> MachineStatus {
    let mut status = observed.machine.status.clone().unwrap_or_default();
    set(&mut status, observed, findings::paused(until));
    status.observed_generation = observed.machine.metadata.generation;
    status
}

pub(super) fn normal(observed: &Observed) -> MachineStatus {
    let mut status = observed.machine.status.clone().unwrap_or_default();
    facts(&mut status, observed);
    let phase = phase(&status, observed);
    set(&mut status, observed, Finding::clear(DELETING, "NotDeleting"));
    everything(&mut status, observed, phase);
    status
}

pub(super) fn deleting(observed: &Observed, stage: &Stage) -> MachineStatus {
    let mut status = observed.machine.status.clone().unwrap_or_default();
    facts(&mut status, observed);
    if stage.is_draining {
        let deletion = status.deletion.get_or_insert_default();
        deletion.node_drain_start_time.get_or_insert_with(|| Time(whole_seconds(observed.now)));
    }
    set(&mut status, observed, Finding::raised(DELETING, stage.reason, &stage.waiting));
    everything(&mut status, observed, MachinePhase::Deleting);
    status
}

/// As it is stored: a finer time would differ from what is read back.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn everything(status: &mut MachineStatus, observed: &Observed, phase: MachinePhase) {
    if status.phase != Some(phase) {
        status.phase = Some(phase);
        status.last_updated = Some(Time(whole_seconds(observed.now)));
    }
    set(status, observed, Finding::clear(PAUSED, "NotPaused"));
    set(status, observed, bootstrap_ready(observed));
    set(status, observed, infrastructure_ready(observed));
    if let Some((healthy, ready)) = node_findings(observed) {
        set(status, observed, healthy);
        set(status, observed, ready);
    }
    if let Some(finding) = up_to_date(observed) {
        set(status, observed, finding);
    }
    let mut parts = vec![
        SummaryPart::negative(DELETING),
        SummaryPart::positive(BOOTSTRAP_READY),
        SummaryPart::positive(INFRASTRUCTURE_READY),
        SummaryPart::positive(NODE_HEALTHY),
        SummaryPart::positive("HealthCheckSucceeded").optional(),
    ];
    parts.extend(findings::gates(observed.machine.spec.readiness_gates.as_ref()));
    let ready = summary(status, READY, &parts);
    set(status, observed, ready);
    let available = available(status, observed);
    set(status, observed, available);
    legacy(status, observed);
    status.observed_generation = observed.machine.metadata.generation;
}

/// What is copied from the providers and the Node.
fn facts(status: &mut MachineStatus, observed: &Observed) {
    let has_data =
        observed.machine.spec.bootstrap.data_secret_name.as_deref().is_some_and(|name| !name.is_empty());
    let server = observed.object(Part::Infrastructure).map(Referred::infrastructure_machine);
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
    if status.node_ref.is_some() && is_provisioned {
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
fn unread(type_: &str, observed: &Observed, part: Part, was_there: bool) -> Option<Finding> {
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
    findings::unread(type_, observed.reference(part)?, observed.read(part)?, absence, owner)
}

fn mirrored(type_: &str, observed: &Observed, part: Part, source: Option<&Condition>, flag: bool) -> Finding {
    let on = match part {
        Part::Bootstrap => "the bootstrap data",
        Part::Infrastructure => "the server",
    };
    findings::mirrored(type_, observed.reference(part), (source, flag), on)
}

fn reached(observed: &Observed) -> (bool, bool) {
    let reached = observed.machine.status.as_ref().and_then(|status| status.initialization.clone());
    let reached = reached.unwrap_or_default();
    (reached.bootstrap_data_secret_created == Some(true), reached.infrastructure_provisioned == Some(true))
}

fn bootstrap_ready(observed: &Observed) -> Finding {
    let type_ = BOOTSTRAP_READY;
    if observed.reference(Part::Bootstrap).is_none() {
        return Finding::holds(type_, "DataSecretProvided");
    }
    let (was_there, _) = reached(observed);
    // The data has been used by then: a configuration that is gone afterwards is no loss.
    let is_gone = matches!(observed.bootstrap, Some(Read::Absent));
    if was_there && is_gone && !observed.is_deleting() {
        return Finding::holds(type_, "DataSecretCreated");
    }
    if let Some(finding) = unread(type_, observed, Part::Bootstrap, was_there) {
        return finding;
    }
    let view = observed.object(Part::Bootstrap).map(Referred::bootstrap);
    let flag = view.is_some_and(|view| view.is_data_secret_created());
    let source = view.and_then(|view| view.ready_condition());
    mirrored(type_, observed, Part::Bootstrap, source.as_ref(), flag)
}

fn infrastructure_ready(observed: &Observed) -> Finding {
    let type_ = INFRASTRUCTURE_READY;
    if let Some(finding) = unread(type_, observed, Part::Infrastructure, reached(observed).1) {
        return finding;
    }
    let view = observed.object(Part::Infrastructure).map(Referred::infrastructure_machine);
    let flag = view.is_some_and(|view| view.is_provisioned());
    let source = view.and_then(|view| view.ready_condition());
    mirrored(type_, observed, Part::Infrastructure, source.as_ref(), flag)
}

/// What a Node says about itself.
fn of_node(node: &NodeFacts) -> (Finding, Finding) {
    let complaints = node::complaints(node);
    let tenant = Actor::Controller("the Node's kubelet".to_owned());
    let waiting = |words: String| Waiting::new(tenant.clone(), "a healthy Node").because(words);
    let healthy = match (complaints.is_empty(), node::is_silent(node)) {
        (true, _) => Finding::holds(NODE_HEALTHY, NODE_HEALTHY),
        (false, true) => Finding::unknown(NODE_HEALTHY, "NodeNotHeardOf", &waiting(complaints.join("; "))),
        (false, false) => Finding::fails(NODE_HEALTHY, "NodeNotHealthy", &waiting(complaints.join("; "))),
    };
    let ready = match node.conditions.get(READY) {
        Some((status, ..)) if status == "True" => Finding::holds(NODE_READY, NODE_READY),
        Some((status, _, message)) if status == "Unknown" => {
            Finding::unknown(NODE_READY, "NodeNotHeardOf", &waiting(message.clone()))
        }
        Some((_, _, message)) => Finding::fails(NODE_READY, "NodeNotReady", &waiting(message.clone())),
        None => Finding::unknown(NODE_READY, "NotYetReported", &waiting("no condition yet".to_owned())),
    };
    (healthy, ready)
}

/// `NodeHealthy` and `NodeReady`; none keeps what was said before.
fn node_findings(observed: &Observed) -> Option<(Finding, Finding)> {
    let both = |make: &dyn Fn(&str) -> Finding| Some((make(NODE_HEALTHY), make(NODE_READY)));
    let plane = || Actor::Controller("the control plane".to_owned());
    match &observed.node {
        NodeView::Found(node) => Some(of_node(node)),
        NodeView::Absent if observed.node_name().is_some() && observed.is_deleting() => both(&|type_| {
            Finding::fails(type_, "NodeDeleted", &Waiting::new(Actor::Hangar, "the Machine to be gone"))
        }),
        NodeView::Absent if observed.node_name().is_some() => both(&|type_| {
            let waiting = Waiting::new(Actor::ClusterOwner, "the Machine to be deleted")
                .because("the Node was deleted");
            Finding::fails(type_, "NodeDeleted", &waiting)
        }),
        NodeView::Absent => both(&|type_| {
            let id = observed.machine.spec.provider_id.as_deref().unwrap_or_default();
            let server = Actor::Controller("the server's kubelet".to_owned());
            let waiting = Waiting::new(server, format!("a Node with the provider id {id}"));
            Finding::fails(type_, "NodeDoesNotExist", &waiting)
        }),
        NodeView::Several(names) => both(&|type_| {
            let waiting = Waiting::new(Actor::ClusterOwner, "one Node per server")
                .because(format!("the Nodes {} have the same provider id", names.join(", ")));
            Finding::fails(type_, "SeveralNodes", &waiting)
        }),
        NodeView::Unreachable(why) => {
            let status = observed.machine.status.as_ref();
            let was_said = status.is_some_and(|status| conditions::get(status, NODE_HEALTHY).is_some());
            // One failed call is no news about a Node; the Cluster says that its API server is away.
            if was_said {
                return None;
            }
            both(&|type_| {
                let waiting = Waiting::new(plane(), "an answer of the API server").because(why.clone());
                Finding::unknown(type_, "NotReadable", &waiting)
            })
        }
        NodeView::NotLooked if observed.node_name().is_some() => None,
        NodeView::NotLooked => both(&|type_| {
            let (actor, on) = if observed.machine.spec.provider_id.is_none() {
                (Actor::Hangar, "a server")
            } else {
                (plane(), "an API server that has served once")
            };
            Finding::fails(type_, "WaitingForServer", &Waiting::new(actor, on))
        }),
    }
}

fn up_to_date(observed: &Observed) -> Option<Finding> {
    let set = observed.set.as_ref()?;
    if is_up_to_date(&observed.machine, set, observed.deployment.as_ref(), observed.now) {
        return Some(Finding::holds(UP_TO_DATE, UP_TO_DATE));
    }
    let waiting =
        Waiting::new(Actor::Hangar, "the Machine to be replaced").because("its template has changed");
    Some(Finding::fails(UP_TO_DATE, "NotUpToDate", &waiting))
}

fn ready_since(status: &MachineStatus) -> Option<Timestamp> {
    let ready = conditions::get(status, READY)?;
    (ready.status == "True").then_some(ready.last_transition_time.0)
}

fn patience(observed: &Observed) -> SignedDuration {
    SignedDuration::from_secs(i64::from(observed.machine.spec.min_ready_seconds.unwrap_or_default()))
}

fn available(status: &MachineStatus, observed: &Observed) -> Finding {
    let Some(since) = ready_since(status) else {
        let waiting = Waiting::new(Actor::Hangar, "the Machine to be ready");
        return Finding::fails(AVAILABLE, "NotReady", &waiting);
    };
    if observed.now.duration_since(since) >= patience(observed) {
        return Finding::holds(AVAILABLE, AVAILABLE);
    }
    let seconds = patience(observed).as_secs();
    let waiting = Waiting::new(Actor::Hangar, format!("{seconds} s of being ready"));
    Finding::fails(AVAILABLE, "WaitingForMinReadySeconds", &waiting)
}

/// When a Machine that stays ready becomes available.
pub(super) fn available_at(observed: &Observed) -> Wake {
    let since = observed.machine.status.as_ref().and_then(ready_since);
    match since.and_then(|since| since.checked_add(patience(observed)).ok()) {
        Some(at) if at > observed.now => Wake::At(at),
        _ if since.is_none() && !patience(observed).is_zero() => {
            let length = patience(observed).unsigned_abs();
            Wake::after(observed.now, length)
        }
        _ => Wake::OnChange,
    }
}

/// The same in the older contract's shape.
fn legacy(status: &mut MachineStatus, observed: &Observed) {
    let pairs = [
        (READY, "Ready"),
        (BOOTSTRAP_READY, "BootstrapReady"),
        (INFRASTRUCTURE_READY, "InfrastructureReady"),
        (NODE_HEALTHY, "NodeHealthy"),
    ];
    findings::older(status, &pairs, observed.now, |status| {
        let old = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
        old.conditions.get_or_insert_default()
    });
}

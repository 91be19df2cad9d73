//! What is said about a Cluster: one function per condition, then the summaries that rest on them.

use hangar_api::cluster::condition_gate::ConditionPolarity;
use hangar_api::cluster::replica_counts::ReplicaCounts;
use hangar_api::cluster::v1beta2::cluster::FailureDomain;
use hangar_api::cluster::v1beta2::{ClusterPhase, ClusterStatus};
use hangar_api::conditions::{
    self, Actor, Finding, Part as SummaryPart, Polarity, Severity, Source, Waiting, aggregate, mirror,
    summary,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;

use super::deletion::Stage;
use super::{Connection, Observed, Part, endpoint};
use crate::flow::Read;

const AVAILABLE: &str = "Available";
const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
const CONTROL_PLANE_AVAILABLE: &str = "ControlPlaneAvailable";
const WORKERS_AVAILABLE: &str = "WorkersAvailable";
const REMOTE_CONNECTION: &str = "RemoteConnectionProbe";
const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
const ENDPOINT_CONFLICT: &str = "EndpointConflict";
const DELETING: &str = "Deleting";
const PAUSED: &str = "Paused";

struct Writer<'observed> {
    observed: &'observed Observed,
    status: ClusterStatus,
}

impl Writer<'_> {
    fn set(&mut self, finding: Finding) {
        let generation = self.observed.cluster.metadata.generation;
        conditions::set(&mut self.status, finding, generation, self.observed.now);
    }

    fn done(mut self) -> ClusterStatus {
        self.status.observed_generation = self.observed.cluster.metadata.generation;
        self.status
    }
}

fn writer(observed: &Observed) -> Writer<'_> {
    Writer { observed, status: observed.cluster.status.clone().unwrap_or_default() }
}

/// Nothing is looked at while paused, so nothing else is said.
pub(super) fn paused(observed: &Observed, until: &str) -> ClusterStatus {
    let mut writer = writer(observed);
    writer.set(Finding::raised(PAUSED, PAUSED, &Waiting::new(Actor::ClusterOwner, until)));
    writer.done()
}

pub(super) fn normal(observed: &Observed) -> ClusterStatus {
    let mut writer = writer(observed);
    facts(&mut writer);
    writer.status.phase = Some(phase(&writer.status, observed));
    writer.set(Finding::clear(DELETING, "NotDeleting"));
    everything(&mut writer);
    writer.done()
}

pub(super) fn deleting(observed: &Observed, stage: &Stage) -> ClusterStatus {
    let mut writer = writer(observed);
    facts(&mut writer);
    writer.status.phase = Some(ClusterPhase::Deleting);
    writer.set(Finding::raised(DELETING, stage.reason, &stage.waiting));
    everything(&mut writer);
    writer.done()
}

/// What is copied or counted.
fn facts(writer: &mut Writer<'_>) {
    let observed = writer.observed;
    let is_initialized = observed.is_control_plane_initialized();
    let is_provisioned = match &observed.infrastructure {
        // A Cluster that refers to no infrastructure waits for none, unless a topology is still to name it.
        None => observed.cluster.spec.topology.is_none(),
        Some(_) => observed
            .object(Part::Infrastructure)
            .is_some_and(|object| object.infrastructure_cluster().is_provisioned()),
    };
    let reached = writer.status.initialization.get_or_insert_default();
    if is_initialized {
        reached.control_plane_initialized = Some(true);
    }
    if is_provisioned {
        reached.infrastructure_provisioned = Some(true);
    }
    if reached.control_plane_initialized.is_none() && reached.infrastructure_provisioned.is_none() {
        writer.status.initialization = None;
    }
    if let Some(object) = observed.object(Part::Infrastructure)
        && object.infrastructure_cluster().is_provisioned()
    {
        let domains: Vec<FailureDomain> = object
            .infrastructure_cluster()
            .failure_domains()
            .into_iter()
            .map(|(name, domain)| FailureDomain {
                name,
                control_plane: Some(domain.control_plane),
                attributes: Some(domain.attributes).filter(|attributes| !attributes.is_empty()),
            })
            .collect();
        writer.status.failure_domains = Some(domains).filter(|domains| !domains.is_empty());
    }
    writer.status.control_plane = control_plane_counts(observed);
    if let Some(counts) = worker_counts(observed) {
        writer.status.workers = Some(counts);
    }
}

fn control_plane_counts(observed: &Observed) -> Option<ReplicaCounts> {
    let counts = observed.object(Part::ControlPlane)?.control_plane().replicas();
    let counts = ReplicaCounts {
        desired_replicas: counts.desired,
        replicas: counts.current,
        ready_replicas: counts.ready,
        available_replicas: counts.available,
        up_to_date_replicas: counts.up_to_date,
    };
    (counts != ReplicaCounts::default()).then_some(counts)
}

/// Counted from the MachineDeployments, which count their own. None while they are unknown.
fn worker_counts(observed: &Observed) -> Option<ReplicaCounts> {
    if observed.deployments.is_unknown() {
        return None;
    }
    let mut sum = [0; 5];
    for deployment in observed.deployments.iter() {
        let status = deployment.status.clone().unwrap_or_default();
        let counts = [
            Some(deployment.spec.replicas.unwrap_or(1)),
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.up_to_date_replicas,
        ];
        for (total, count) in sum.iter_mut().zip(counts) {
            *total += count.unwrap_or_default();
        }
    }
    let [desired, replicas, ready, available, up_to_date] = sum.map(Some);
    Some(ReplicaCounts {
        desired_replicas: desired,
        replicas,
        ready_replicas: ready,
        available_replicas: available,
        up_to_date_replicas: up_to_date,
    })
}

fn phase(status: &ClusterStatus, observed: &Observed) -> ClusterPhase {
    let is_provisioned = status
        .initialization
        .as_ref()
        .is_some_and(|reached| reached.infrastructure_provisioned == Some(true));
    let spec = &observed.cluster.spec;
    if is_provisioned && endpoint::of_cluster(observed).is_some() {
        ClusterPhase::Provisioned
    } else if spec.infrastructure_ref.is_some() || spec.control_plane_ref.is_some() {
        ClusterPhase::Provisioning
    } else {
        ClusterPhase::Pending
    }
}

fn everything(writer: &mut Writer<'_>) {
    let observed = writer.observed;
    writer.set(Finding::clear(PAUSED, "NotPaused"));
    writer.set(infrastructure_ready(observed));
    writer.set(control_plane_initialized(observed));
    writer.set(control_plane_available(observed));
    writer.set(workers_available(observed));
    if let Some(finding) = remote_connection(observed) {
        writer.set(finding);
    }
    match endpoint::conflict(observed) {
        Some(words) => {
            let waiting = Waiting::new(Actor::ClusterOwner, "one endpoint that all agree on").because(words);
            writer.set(Finding::raised(ENDPOINT_CONFLICT, ENDPOINT_CONFLICT, &waiting));
        }
        None => {
            conditions::remove(&mut writer.status, ENDPOINT_CONFLICT);
        }
    }
    if observed.cluster.spec.topology.is_some() {
        let waiting = Waiting::new(Actor::ClusterOwner, "a Cluster with references instead of spec.topology")
            .because("this version does not build clusters from a ClusterClass yet");
        writer.set(Finding::fails(TOPOLOGY_RECONCILED, "TopologyNotSupported", &waiting));
    }
    let mut parts = vec![
        SummaryPart::negative(DELETING),
        SummaryPart::positive(REMOTE_CONNECTION),
        SummaryPart::positive(INFRASTRUCTURE_READY),
        SummaryPart::positive(CONTROL_PLANE_AVAILABLE),
        SummaryPart::positive(WORKERS_AVAILABLE),
        SummaryPart::positive(TOPOLOGY_RECONCILED).optional(),
    ];
    for gate in observed.cluster.spec.availability_gates.iter().flatten() {
        parts.push(match gate.polarity {
            Some(ConditionPolarity::Negative) => SummaryPart::negative(&gate.condition_type),
            _ => SummaryPart::positive(&gate.condition_type),
        });
    }
    let available = summary(&writer.status, AVAILABLE, &parts);
    writer.set(available);
    legacy(writer);
}

/// What a condition says while the object behind a reference cannot be read, or is somebody else's.
fn unread(type_: &str, observed: &Observed, part: Part, was_there: bool) -> Option<Finding> {
    let reference = observed.reference(part)?;
    let what = format!("{} {}", reference.kind, reference.name);
    match observed.read(part)? {
        Read::Unknown(unknown) => {
            let waiting =
                Waiting::new(Actor::Operator, format!("a look at {what}")).because(unknown.why.clone());
            Some(Finding::unknown(type_, "NotReadable", &waiting))
        }
        Read::Absent if observed.is_deleting() => {
            let waiting = Waiting::new(Actor::Hangar, "the Cluster to be gone");
            Some(Finding::fails(type_, "Deleted", &waiting))
        }
        Read::Absent if was_there => {
            let waiting = Waiting::new(Actor::ClusterOwner, "the Cluster to be deleted or restored")
                .because(format!("{what} was deleted"));
            Some(Finding::fails(type_, "Deleted", &waiting))
        }
        Read::Absent => {
            let waiting = Waiting::new(Actor::ClusterOwner, format!("{what} to be created"));
            Some(Finding::fails(type_, "DoesNotExist", &waiting))
        }
        Read::One(object) => {
            let other = observed.taken_by(object)?;
            let waiting = Waiting::new(Actor::ClusterOwner, format!("another {}", reference.kind))
                .because(format!("{what} belongs to Cluster {other}"));
            Some(Finding::fails(type_, "OwnedByAnother", &waiting))
        }
        Read::Many(_) => None,
    }
}

/// The object's own condition, or one made from a flag where it has none.
fn mirrored(
    type_: &str,
    observed: &Observed,
    part: Part,
    (source, flag): (Option<Condition>, bool),
    words: &str,
) -> Finding {
    let kind = observed.reference(part).map(|reference| reference.kind.clone()).unwrap_or_default();
    let waiting = Waiting::new(Actor::Controller(format!("the controller of {kind}")), words);
    match (source, flag) {
        (Some(source), _) => mirror(Some(&source), type_, &waiting),
        (None, true) => Finding::holds(type_, "Ready"),
        (None, false) => Finding::fails(type_, "NotReady", &waiting),
    }
}

fn reached(observed: &Observed) -> (bool, bool) {
    let reached = observed.cluster.status.as_ref().and_then(|status| status.initialization.clone());
    let reached = reached.unwrap_or_default();
    (reached.infrastructure_provisioned == Some(true), reached.control_plane_initialized == Some(true))
}

fn infrastructure_ready(observed: &Observed) -> Finding {
    let type_ = INFRASTRUCTURE_READY;
    if let Some(finding) = unread(type_, observed, Part::Infrastructure, reached(observed).0) {
        return finding;
    }
    match observed.object(Part::Infrastructure) {
        Some(object) => {
            let view = object.infrastructure_cluster();
            let source = (view.ready_condition(), view.is_provisioned());
            mirrored(type_, observed, Part::Infrastructure, source, "the infrastructure")
        }
        None if observed.cluster.spec.topology.is_some() => waits_for_topology(type_),
        None => Finding::holds(type_, "NotReferenced").remark("the Cluster refers to no infrastructure"),
    }
}

fn waits_for_topology(type_: &str) -> Finding {
    let waiting = Waiting::new(Actor::ClusterOwner, "a reference in the Cluster's spec");
    Finding::fails(type_, "TopologyNotSupported", &waiting)
}

fn control_plane_initialized(observed: &Observed) -> Finding {
    let type_ = CONTROL_PLANE_INITIALIZED;
    if observed.is_control_plane_initialized() {
        return Finding::holds(type_, "Initialized");
    }
    if let Some(finding) = unread(type_, observed, Part::ControlPlane, false) {
        return finding;
    }
    let waiting = match observed.reference(Part::ControlPlane) {
        Some(reference) => Waiting::new(
            Actor::Controller(format!("the controller of {}", reference.kind)),
            format!("the API server of {} {} to serve once", reference.kind, reference.name),
        ),
        None if observed.cluster.spec.topology.is_some() => return waits_for_topology(type_),
        None => Waiting::new(Actor::ClusterOwner, "a control plane Machine with a Node"),
    };
    Finding::fails(type_, "NotInitialized", &waiting)
}

fn control_plane_available(observed: &Observed) -> Finding {
    let type_ = CONTROL_PLANE_AVAILABLE;
    if let Some(finding) = unread(type_, observed, Part::ControlPlane, reached(observed).1) {
        return finding;
    }
    match observed.object(Part::ControlPlane) {
        Some(object) => {
            let view = object.control_plane();
            let flag = view.is_ready().unwrap_or_default();
            let source = (view.available_condition(), flag);
            mirrored(type_, observed, Part::ControlPlane, source, "the control plane to be available")
        }
        None if observed.cluster.spec.topology.is_some() => waits_for_topology(type_),
        None => {
            // Machines that somebody made by hand: they are all there is to look at.
            let machines: Vec<_> = observed.machines.iter().filter(|m| super::is_control_plane(m)).collect();
            let names: Vec<String> = machines.iter().map(|machine| machine.name_any()).collect();
            let sources: Vec<Source<'_>> = machines
                .iter()
                .zip(&names)
                .map(|(machine, name)| Source {
                    kind: "Machine",
                    name,
                    condition: machine.status.as_ref().and_then(|status| conditions::get(status, "Ready")),
                })
                .collect();
            aggregate(type_, Polarity::Positive, &sources)
        }
    }
}

fn workers_available(observed: &Observed) -> Finding {
    let type_ = WORKERS_AVAILABLE;
    if let Read::Unknown(unknown) = &observed.deployments {
        let waiting = Waiting::new(Actor::Operator, "a list of the MachineDeployments");
        return Finding::unknown(type_, "NotReadable", &waiting.because(unknown.why.clone()));
    }
    let deployments: Vec<_> = observed.deployments.iter().collect();
    if deployments.is_empty() {
        return Finding::holds(type_, "NoWorkers").remark("the Cluster has no MachineDeployments");
    }
    let names: Vec<String> = deployments.iter().map(|deployment| deployment.name_any()).collect();
    let sources: Vec<Source<'_>> = deployments
        .iter()
        .zip(&names)
        .map(|(deployment, name)| Source {
            kind: "MachineDeployment",
            name,
            condition: deployment.status.as_ref().and_then(|status| conditions::get(status, AVAILABLE)),
        })
        .collect();
    aggregate(type_, Polarity::Positive, &sources)
}

/// None keeps what was said before: one failed call is no outage.
fn remote_connection(observed: &Observed) -> Option<Finding> {
    let type_ = REMOTE_CONNECTION;
    let server = Actor::Controller("the control plane".to_owned());
    match &observed.connection {
        Connection::Answering => Some(Finding::holds(type_, "ProbeSucceeded")),
        Connection::NotTried => {
            let waiting = Waiting::new(server, "an API server that has served once");
            Some(Finding::fails(type_, "NotProbed", &waiting))
        }
        Connection::Failing { why, is_lasting } => {
            let was_said = observed
                .cluster
                .status
                .as_ref()
                .is_some_and(|status| conditions::get(status, type_).is_some());
            let waiting = Waiting::new(server, "an answer of the API server").because(why.clone());
            (*is_lasting || !was_said).then(|| Finding::fails(type_, "ProbeFailed", &waiting))
        }
    }
}

/// The same in the older contract's shape, for tools that read only that.
fn legacy(writer: &mut Writer<'_>) {
    let now = writer.observed.now;
    let pairs = [
        (AVAILABLE, "Ready"),
        (INFRASTRUCTURE_READY, "InfrastructureReady"),
        (CONTROL_PLANE_AVAILABLE, "ControlPlaneReady"),
        (CONTROL_PLANE_INITIALIZED, "ControlPlaneInitialized"),
    ];
    let findings: Vec<Finding> = pairs
        .iter()
        .filter_map(|(from, to)| {
            let condition = conditions::get(&writer.status, from)?;
            Some(mirror(Some(condition), to, &Waiting::new(Actor::Hangar, "its report")))
        })
        .collect();
    let old = writer.status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
    let list = old.conditions.get_or_insert_default();
    for finding in findings {
        conditions::set_severity(list, finding, Severity::Info, now);
    }
}

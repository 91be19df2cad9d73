//! What is said about a Cluster: one function per condition, then the summaries that rest on them.

use hangar_api::cluster::replica_counts::ReplicaCounts;
use hangar_api::cluster::v1beta2::cluster::FailureDomain;
use hangar_api::cluster::v1beta2::{ClusterPhase, ClusterStatus};
use hangar_api::conditions::{self, Actor, Finding, Part as SummaryPart, Waiting, summary};

use super::delete::Stage;
use super::{Connection, Observed, Part, endpoint};
use crate::findings::{self, Absence, PAUSED};
use crate::referred::Referred;

const AVAILABLE: &str = "Available";
const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
const CONTROL_PLANE_AVAILABLE: &str = "ControlPlaneAvailable";
const WORKERS_AVAILABLE: &str = "WorkersAvailable";
const REMOTE_CONNECTION: &str = "RemoteConnectionProbe";
const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
const ENDPOINT_CONFLICT: &str = "EndpointConflict";
const DELETING: &str = "Deleting";

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
    writer.set(findings::paused(until));
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
    parts.extend(findings::gates(observed.cluster.spec.availability_gates.as_ref()));
    let available = summary(&writer.status, AVAILABLE, &parts);
    writer.set(available);
    legacy(writer);
}

/// What a condition says while the object behind a reference cannot be read, or is somebody else's.
fn unread(type_: &str, observed: &Observed, part: Part, was_there: bool) -> Option<Finding> {
    let absence = match (observed.is_deleting(), was_there) {
        (true, _) => Absence::Deleting("the Cluster to be gone"),
        (false, true) => Absence::Lost("the Cluster to be deleted or restored"),
        (false, false) => Absence::NotCreated(Actor::ClusterOwner),
    };
    let owner = |object: &Referred| Some(format!("Cluster {}", observed.taken_by(object)?));
    findings::unread(type_, observed.reference(part)?, observed.read(part)?, absence, owner)
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
            let (ready, reference) = (view.ready_condition(), observed.reference(Part::Infrastructure));
            let source = (ready.as_ref(), view.is_provisioned());
            findings::mirrored(type_, reference, source, "the infrastructure")
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
            let (available, reference) = (view.available_condition(), observed.reference(Part::ControlPlane));
            let source = (available.as_ref(), view.is_ready().unwrap_or_default());
            findings::mirrored(type_, reference, source, "the control plane to be available")
        }
        None if observed.cluster.spec.topology.is_some() => waits_for_topology(type_),
        None => {
            // Machines that somebody made by hand: they are all there is to look at.
            let machines: Vec<_> =
                observed.machines.iter().filter(|m| super::observed::is_control_plane(m)).collect();
            findings::merged(type_, &machines, "Ready")
        }
    }
}

fn workers_available(observed: &Observed) -> Finding {
    let type_ = WORKERS_AVAILABLE;
    if let Some(finding) = findings::unlisted(type_, "MachineDeployments", &observed.deployments) {
        return finding;
    }
    let deployments: Vec<_> = observed.deployments.iter().collect();
    if deployments.is_empty() {
        return Finding::holds(type_, "NoWorkers").remark("the Cluster has no MachineDeployments");
    }
    findings::merged(type_, &deployments, AVAILABLE)
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
    findings::older(&mut writer.status, &pairs, now, |status| {
        let old = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
        old.conditions.get_or_insert_default()
    });
}

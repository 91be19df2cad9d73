//! The status of a Cluster: one function per condition, then the summaries of these conditions.

use hangar_api::cluster::replica_counts::ReplicaCounts;
use hangar_api::cluster::v1beta2::cluster::FailureDomain;
use hangar_api::cluster::v1beta2::{ClusterPhase, ClusterStatus};
use hangar_api::conditions::{Actor, Finding, Term};

use super::conditions::{
    available, control_plane_available, control_plane_initialized, deleting, endpoint_conflict,
    infrastructure_ready, remote_connection_probe, topology, topology_reconciled, workers_available,
};
use super::observed::is_control_plane;
use super::{Connection, Draft, Observed, Reference, endpoint};
use crate::conditions::shared::{self, Absence};
use crate::referred::Referred;

/// Everything but what is said about deletion.
pub(super) fn draft(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    facts(&mut draft.status, observed);
    draft.status.phase = Some(phase(&draft.status, observed));
    draft.say(infrastructure_ready(observed));
    draft.say(control_plane_initialized(observed));
    draft.say(control_plane_available(observed));
    draft.say(workers_available(observed));
    remote_connection(draft);
    match endpoint::conflict(observed) {
        Some(why) => {
            let on = "one endpoint that all agree on";
            draft.say(endpoint_conflict::ENDPOINT_CONFLICT.waits(on).because(why));
        }
        None => draft.forget(endpoint_conflict::TYPE),
    }
    if observed.cluster.spec.topology.is_some() {
        draft.say(waits_for_topology(topology_reconciled::TYPE));
    }
    let mut terms = vec![
        Term::negative(deleting::TYPE),
        Term::positive(remote_connection_probe::TYPE),
        Term::positive(infrastructure_ready::TYPE),
        Term::positive(control_plane_available::TYPE),
        Term::positive(workers_available::TYPE),
        Term::positive(topology_reconciled::TYPE).optional(),
    ];
    terms.extend(shared::gates(observed.cluster.spec.availability_gates.as_ref()));
    draft.summarise(available::TYPE, &terms);
}

/// What is copied or counted.
fn facts(status: &mut ClusterStatus, observed: &Observed) {
    let is_initialized = observed.is_control_plane_initialized();
    let is_provisioned = match &observed.infrastructure {
        // A Cluster that refers to no infrastructure waits for none, unless a topology is still to name it.
        None => observed.cluster.spec.topology.is_none(),
        Some(_) => observed
            .object(Reference::Infrastructure)
            .is_some_and(|object| object.infrastructure_cluster().is_provisioned()),
    };
    let reached = status.initialization.get_or_insert_default();
    if is_initialized {
        reached.control_plane_initialized = Some(true);
    }
    if is_provisioned {
        reached.infrastructure_provisioned = Some(true);
    }
    if reached.control_plane_initialized.is_none() && reached.infrastructure_provisioned.is_none() {
        status.initialization = None;
    }
    if let Some(object) = observed.object(Reference::Infrastructure)
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
        status.failure_domains = Some(domains).filter(|domains| !domains.is_empty());
    }
    status.control_plane = control_plane_counts(observed);
    if let Some(counts) = worker_counts(observed) {
        status.workers = Some(counts);
    }
}

fn control_plane_counts(observed: &Observed) -> Option<ReplicaCounts> {
    let counts = observed.object(Reference::ControlPlane)?.control_plane().replicas();
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
    if observed.is_deleting() {
        ClusterPhase::Deleting
    } else if is_provisioned && endpoint::of_cluster(observed).is_some() {
        ClusterPhase::Provisioned
    } else if spec.infrastructure_ref.is_some() || spec.control_plane_ref.is_some() {
        ClusterPhase::Provisioning
    } else {
        ClusterPhase::Pending
    }
}

/// What a condition says while the object behind a reference cannot be read, or is somebody else's.
fn absent(type_: &'static str, observed: &Observed, which: Reference, was_there: bool) -> Option<Finding> {
    let absence = match (observed.is_deleting(), was_there) {
        (true, _) => Absence::Deleting("the Cluster to be gone"),
        (false, true) => Absence::Lost("the Cluster to be deleted or restored"),
        (false, false) => Absence::NotCreated(Actor::ClusterOwner),
    };
    let owner = |object: &Referred| Some(format!("Cluster {}", observed.taken_by(object)?));
    shared::absent(type_, observed.reference(which)?, observed.read(which)?, absence, owner)
}

fn reached(observed: &Observed) -> (bool, bool) {
    let reached = observed.cluster.status.as_ref().and_then(|status| status.initialization.clone());
    let reached = reached.unwrap_or_default();
    (reached.infrastructure_provisioned == Some(true), reached.control_plane_initialized == Some(true))
}

fn infrastructure_ready(observed: &Observed) -> Finding {
    let type_ = infrastructure_ready::TYPE;
    if let Some(finding) = absent(type_, observed, Reference::Infrastructure, reached(observed).0) {
        return finding;
    }
    match observed.object(Reference::Infrastructure) {
        Some(object) => {
            let view = object.infrastructure_cluster();
            let (ready, reference) = (view.ready_condition(), observed.reference(Reference::Infrastructure));
            let source = (ready.as_ref(), view.is_provisioned());
            shared::mirrored(type_, reference, source, "the infrastructure")
        }
        None if observed.cluster.spec.topology.is_some() => waits_for_topology(type_),
        None => infrastructure_ready::NOT_REFERENCED.remark("the Cluster refers to no infrastructure"),
    }
}

fn waits_for_topology(type_: &'static str) -> Finding {
    topology::TOPOLOGY_NOT_SUPPORTED
        .about(type_)
        .waits("a Cluster with references instead of spec.topology")
        .because("this version does not build clusters from a ClusterClass yet")
}

fn control_plane_initialized(observed: &Observed) -> Finding {
    let type_ = control_plane_initialized::TYPE;
    if observed.is_control_plane_initialized() {
        return control_plane_initialized::INITIALIZED.into();
    }
    if let Some(finding) = absent(type_, observed, Reference::ControlPlane, false) {
        return finding;
    }
    let not_initialized = control_plane_initialized::NOT_INITIALIZED;
    match observed.reference(Reference::ControlPlane) {
        Some(reference) => not_initialized.by(
            Actor::controller_of(&reference.kind),
            format!("the API server of {} {} to serve once", reference.kind, reference.name),
        ),
        None if observed.cluster.spec.topology.is_some() => waits_for_topology(type_),
        None => not_initialized.by(Actor::ClusterOwner, "a control plane Machine with a Node"),
    }
}

fn control_plane_available(observed: &Observed) -> Finding {
    let type_ = control_plane_available::TYPE;
    if let Some(finding) = absent(type_, observed, Reference::ControlPlane, reached(observed).1) {
        return finding;
    }
    match observed.object(Reference::ControlPlane) {
        Some(object) => {
            let view = object.control_plane();
            let (available, reference) =
                (view.available_condition(), observed.reference(Reference::ControlPlane));
            let source = (available.as_ref(), view.is_ready().unwrap_or_default());
            shared::mirrored(type_, reference, source, "the control plane to be available")
        }
        None if observed.cluster.spec.topology.is_some() => waits_for_topology(type_),
        None => {
            // Machines that somebody made by hand are all there is.
            let machines = observed.machines.iter().filter(|machine| is_control_plane(machine));
            let none = control_plane_available::NOT_REFERENCED;
            shared::merged(type_, &observed.machines, &machines.collect::<Vec<_>>(), "Ready", none)
        }
    }
}

fn workers_available(observed: &Observed) -> Finding {
    let deployments: Vec<_> = observed.deployments.iter().collect();
    let none = workers_available::NO_WORKERS.remark("the Cluster has no MachineDeployments");
    shared::merged(workers_available::TYPE, &observed.deployments, &deployments, available::TYPE, none)
}

/// One failed call is no outage: what was said before stays.
fn remote_connection(draft: &mut Draft<'_>) {
    match &draft.observed.connection {
        Connection::Answering => draft.say(remote_connection_probe::PROBE_SUCCEEDED),
        Connection::NotTried => {
            draft.say(
                remote_connection_probe::NOT_PROBED.waits("the API server to answer for the first time"),
            );
        }
        Connection::Failing { why, is_lasting } => {
            if *is_lasting || draft.condition(remote_connection_probe::TYPE).is_none() {
                let failed = remote_connection_probe::PROBE_FAILED;
                draft.say(failed.waits("an answer of the API server").because(why));
            }
        }
    }
}

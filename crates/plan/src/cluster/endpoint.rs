//! Decides the endpoint of a Cluster: which object's word counts.
//!
//! - An endpoint in the Cluster's spec stays, whoever wrote it, with the one exception below.
//! - If the control plane declares an endpoint, the Cluster takes it as soon as it is there.
//! - The endpoint of the infrastructure counts only if the control plane consists of Machines behind the
//!   infrastructure's load balancer, and only once the infrastructure is provisioned. Before the control plane was
//!   read, nothing is decided.
//! - The exception: the Cluster has the endpoint of the infrastructure, but its control plane has no Machines and
//!   serves elsewhere. Then the published endpoint leads nowhere. The Cluster gets the right one, and a condition names
//!   the conflict as long as the infrastructure still has the other.

use hangar_api::contract::Endpoint;

use super::{Observed, Reference};

pub(super) enum Choice {
    Keep,
    Set(Endpoint),
    Wait,
}

pub(super) fn choose(observed: &Observed) -> Choice {
    let current = of_cluster(observed);
    let declared = of_control_plane(observed);
    let published = of_infrastructure(observed);
    match (current, declared) {
        (None, Some(declared)) => Choice::Set(declared),
        (Some(current), Some(declared))
            if current != declared && is_external(observed) && published.as_ref() == Some(&current) =>
        {
            Choice::Set(declared)
        }
        (Some(_), _) => Choice::Keep,
        (None, None) => match published {
            Some(published) if may_infrastructure_decide(observed) => Choice::Set(published),
            _ => Choice::Wait,
        },
    }
}

/// What disagrees with the Cluster's endpoint, for people.
pub(super) fn conflict(observed: &Observed) -> Option<String> {
    let current = of_cluster(observed)?;
    let said = [
        (Reference::ControlPlane, of_control_plane(observed)),
        (Reference::Infrastructure, of_infrastructure(observed)),
    ];
    let others: Vec<String> = said
        .into_iter()
        .filter_map(|(which, endpoint)| Some((which, endpoint.filter(|endpoint| *endpoint != current)?)))
        .filter_map(|(which, endpoint)| {
            let reference = observed.reference(which)?;
            Some(format!("{} {} says {endpoint}", reference.kind, reference.name))
        })
        .collect();
    (!others.is_empty()).then(|| format!("the Cluster says {current}, {}", others.join(", ")))
}

pub(super) fn of_cluster(observed: &Observed) -> Option<Endpoint> {
    let given = observed.cluster.spec.control_plane_endpoint.as_ref()?;
    let endpoint = Endpoint { host: given.host.clone()?, port: given.port? };
    endpoint.is_valid().then_some(endpoint)
}

fn of_control_plane(observed: &Observed) -> Option<Endpoint> {
    observed.object(Reference::ControlPlane)?.control_plane().endpoint()
}

fn of_infrastructure(observed: &Observed) -> Option<Endpoint> {
    let object = observed.object(Reference::Infrastructure)?.infrastructure_cluster();
    object.endpoint().filter(|_| object.is_provisioned())
}

fn is_external(observed: &Observed) -> bool {
    observed
        .object(Reference::ControlPlane)
        .is_some_and(|object| object.control_plane().is_externally_managed())
}

fn may_infrastructure_decide(observed: &Observed) -> bool {
    match &observed.control_plane {
        None => true,
        Some(_) => observed.object(Reference::ControlPlane).is_some() && !is_external(observed),
    }
}

//! The controller manager and the scheduler.
//!
//! Both wait for the API server by themselves, and both are made only when the first one is ready: started beside it they
//! slow it down. Leader election is always on: for a moment in every rollout there are two of them. Neither is ever newer
//! than the oldest API server.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::controlplane::v1alpha1::ScalablePod;

use super::certificates::missing;
use super::material::Material;
use super::observed::{Observed, WorkloadFacts};
use super::part::{Part, management_cluster};
use super::validate::Validated;
use super::version::KubernetesVersion;
use super::{controller_manager, scheduler};
use crate::flow::{Read, Unknown};

/// Whether the controller manager and the scheduler are at work.
pub const CONTROLLERS_READY: &str = "ControllersReady";

/// Where both have their files.
pub(super) const PKI: &str = "/etc/kubernetes/pki";
pub(super) const KUBECONFIG: &str = "kubeconfig";

pub(super) fn plan(observed: &Observed, validated: &Validated<'_>) -> Part {
    let mut part = Part::default();
    let mut waiting = Vec::new();
    let mut unread = Vec::new();
    part.apply(&controller_manager::configuration(validated));
    part.apply(&scheduler::configuration(validated));
    let pair: [(&str, &Read<WorkloadFacts>, &[Material]); 2] = [
        ("controller manager", &observed.controller_manager, &controller_manager::MATERIALS),
        ("scheduler", &observed.scheduler, &scheduler::MATERIALS),
    ];
    for (name, read, materials) in pair {
        let facts = match read {
            Read::Unknown(unknown) => {
                unread.push((name, unknown));
                continue;
            }
            read => read.iter().next(),
        };
        if facts.is_none()
            && let Err(wait) = gate(observed, materials)
        {
            waiting.push(wait);
            continue;
        }
        let version = version(observed, validated, facts);
        let deployment = match name {
            "scheduler" => scheduler::deployment(validated, &version, &mut part.report),
            _ => controller_manager::deployment(validated, &version, &mut part.report),
        };
        part.apply(&deployment);
        if facts.is_none_or(|facts| facts.ready == 0) {
            waiting.push(Waiting::new(management_cluster(), format!("a {name} to be ready")));
        }
    }
    conclude(&mut part, &unread, &waiting);
    part
}

fn conclude(part: &mut Part, unread: &[(&str, &Unknown)], waiting: &[Waiting]) {
    if let Some((name, unknown)) = unread.first() {
        let waiting =
            Waiting::new(Actor::Hangar, format!("a look at the {name}'s Deployment")).because(&unknown.why);
        part.unknown(CONTROLLERS_READY, "NotRead", &waiting);
    } else if let Some(first) = waiting.first() {
        part.fails(CONTROLLERS_READY, "NotReady", first);
        for other in waiting.iter().skip(1).filter(|other| *other != first) {
            part.wait(other, None);
        }
    } else {
        part.holds(CONTROLLERS_READY, "Ready");
    }
}

fn gate(observed: &Observed, materials: &[Material]) -> Result<(), Waiting> {
    let lacking = missing(observed, materials);
    if !lacking.is_empty() {
        return Err(Waiting::new(Actor::Hangar, format!("keys: {}", lacking.join(", "))));
    }
    match &observed.api_server {
        Read::One(facts) if facts.ready > 0 => Ok(()),
        _ => Err(Waiting::new(management_cluster(), "the first API server to be ready")),
    }
}

/// The wanted version once all API servers have it; until then the one that runs, or the oldest API server's.
fn version(observed: &Observed, validated: &Validated<'_>, own: Option<&WorkloadFacts>) -> KubernetesVersion {
    let wanted = &validated.version;
    let serving = serving_version(observed);
    if serving.as_ref().is_none_or(|serving| serving >= wanted) {
        return wanted.clone();
    }
    let running = own.and_then(|facts| KubernetesVersion::parse(facts.version.as_deref()?));
    running.or(serving).unwrap_or_else(|| wanted.clone())
}

/// The oldest version that any API server pod runs.
pub(super) fn serving_version(observed: &Observed) -> Option<KubernetesVersion> {
    let pods = observed.api_server_pods.iter().filter(|pod| !pod.is_deleting);
    pods.filter_map(|pod| KubernetesVersion::parse(pod.version.as_deref()?)).min()
}

pub(super) fn replicas(given: &ScalablePod) -> i32 {
    given.replicas.unwrap_or(1)
}

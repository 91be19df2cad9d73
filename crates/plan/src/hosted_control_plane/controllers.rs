//! Plans what the controller manager and the scheduler have in common.
//!
//! Both could wait for the API server by themselves. They are created only when the first API server is ready, because
//! they would slow its start down. Leader election is always on, because each rollout runs two of them for a moment.
//! Neither is ever newer than the oldest API server.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::controlplane::v1alpha1::ScalablePod;

use super::certificates::missing;
use super::conditions::controllers_ready;
use super::material::Material;
use super::names::Component;
use super::observed::{Observed, PodFacts, WorkloadFacts};
use super::validate::Validated;
use super::version::KubernetesVersion;
use super::{Draft, controller_manager, scheduler, upgrade};
use crate::conditions::shared;
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::{Read, Unknown};

/// Where both have their files.
pub(super) const PKI: &str = "/etc/kubernetes/pki";
pub(super) const KUBECONFIG: &str = "kubeconfig";

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let (mut waiting, mut failing) = (Vec::new(), Vec::new());
    let mut unread = None;
    draft.apply(&controller_manager::configuration(validated));
    draft.apply(&scheduler::configuration(validated));
    let names = &validated.names;
    draft.apply(&validated.disruption_budget(names.controller_manager(), Component::ControllerManager));
    draft.apply(&validated.disruption_budget(names.scheduler(), Component::Scheduler));
    let pair: [(&str, &Read<WorkloadFacts>, &[Material]); 2] = [
        ("controller manager", &observed.controller_manager, &controller_manager::MATERIALS),
        ("scheduler", &observed.scheduler, &scheduler::MATERIALS),
    ];
    for (name, read, materials) in pair {
        let facts = match read {
            Read::Unknown(unknown) => {
                unread.get_or_insert((format!("the {name}'s Deployment"), unknown));
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
        let version = match version(observed, validated, facts) {
            Ok(version) => version,
            Err(unknown) => {
                unread.get_or_insert(("the API server's pods".to_owned(), unknown));
                continue;
            }
        };
        let deployment = match name {
            "scheduler" => scheduler::deployment(validated, &version),
            _ => controller_manager::deployment(validated, &version),
        };
        draft.apply(&deployment);
        if facts.is_none_or(|facts| facts.ready == 0) {
            let mut wait = Waiting::new(MANAGEMENT_CLUSTER, format!("a {name} to be ready"));
            wait.detail = PodFacts::first_trouble(&observed.controller_pods);
            waiting.push(wait);
        } else if let Some(facts) = facts.filter(|facts| facts.is_replaced() && facts.ready < facts.desired)
            && let Some(trouble) = PodFacts::first_failing(&observed.controller_pods)
        {
            let on = format!("the {name}'s pods, {} of {} are ready", facts.ready, facts.desired);
            failing.push(Waiting { detail: Some(trouble), ..Waiting::new(MANAGEMENT_CLUSTER, on) });
        }
    }
    let mut failing = failing.into_iter();
    let mut waiting = waiting.into_iter();
    draft.say(match (unread, waiting.next()) {
        (Some((what, unknown)), _) => shared::unread(controllers_ready::TYPE, &what, unknown),
        (None, Some(first)) => controllers_ready::NOT_READY.waiting(first),
        (None, None) => match failing.next() {
            // Of pods that a rollout brings RollingOut tells.
            Some(first) => controllers_ready::POD_FAILING.waiting(first),
            None => controllers_ready::READY.into(),
        },
    });
    failing.for_each(|waiting| draft.report.wait(waiting));
    waiting.for_each(|waiting| draft.report.wait(waiting));
}

fn gate(observed: &Observed, materials: &[Material]) -> Result<(), Waiting> {
    let lacking = missing(observed, materials);
    if !lacking.is_empty() {
        return Err(Waiting::new(Actor::Hangar, format!("keys: {}", lacking.join(", "))));
    }
    match &observed.api_server {
        Read::One(facts) if facts.ready > 0 => Ok(()),
        _ => Err(Waiting::new(MANAGEMENT_CLUSTER, "the first API server to be ready")),
    }
}

/// The wanted version once all API servers have it; until then the one that runs, or the oldest API server's.
pub(super) fn version<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
    own: Option<&WorkloadFacts>,
) -> Result<KubernetesVersion, &'observed Unknown> {
    let wanted = &validated.version;
    let serving = serving_version(observed)?;
    if serving.as_ref().is_none_or(|serving| serving.number() >= wanted.number()) {
        return Ok(wanted.clone());
    }
    let running = own.and_then(|facts| KubernetesVersion::parse(facts.version.as_deref()?));
    Ok(running.or(serving).unwrap_or_else(|| wanted.clone()))
}

/// The oldest version that any API server pod runs, if there is one.
pub(super) fn serving_version(observed: &Observed) -> Result<Option<KubernetesVersion>, &Unknown> {
    upgrade::oldest(&observed.api_server_pods)
}

pub(super) fn replicas(given: &ScalablePod) -> i32 {
    given.replicas.unwrap_or(1)
}

//! Says what is being replaced, step by step: etcd's members, API servers, the controller manager and the scheduler.
//! The add-ons have a condition of their own.
//!
//! Each step counts pods that are ready with what is wanted. If a new pod does not become ready, nothing else is
//! replaced: the others serve on, and the condition repeats what the pod says.

use hangar_api::conditions::{Finding, Waiting};

use super::changes::{self, Change};
use super::conditions::rolling_out;
use super::observed::{Observed, PodFacts};
use super::validate::Validated;
use super::{api_server, controllers, etcd_rollout, upgrade, volumes};
use crate::flow::{Read, Unknown};

/// To be asked when the API server's Deployment was read.
pub(super) fn finding<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Result<Finding, &'observed Unknown> {
    let next = upgrade::api_server(observed, validated)?;
    if let Some(finding) = resizing(observed, validated) {
        return Ok(finding);
    }
    if let Some(finding) = of_etcd(observed, validated)? {
        return Ok(finding);
    }
    if let Some(held) = next.held {
        return Ok(rolling_out::HELD.waiting(held));
    }
    if let Some(finding) = of_api_servers(observed, validated) {
        return Ok(finding);
    }
    if let Some(finding) = of_controllers(observed, validated)? {
        return Ok(finding);
    }
    Ok(rolling_out::NOT_ROLLING_OUT.into())
}

/// What a step says: how far it is, or that it is stopped, by whom, and what can be done.
fn step(on: String, pods: &Read<PodFacts>, advice: Option<String>) -> Finding {
    match PodFacts::first_failing(pods) {
        Some(trouble) => {
            let words = [Some(trouble), advice].into_iter().flatten().collect::<Vec<_>>();
            rolling_out::STOPPED.waits(on).because(words.join("; "))
        }
        None => rolling_out::ROLLING_OUT.waits(on),
    }
}

/// How many pods are ready with this version.
fn ready_with(pods: &Read<PodFacts>, version: &str) -> usize {
    let is_it = |pod: &&PodFacts| pod.is_ready && !pod.is_deleting && pod.version.as_deref() == Some(version);
    pods.iter().filter(is_it).count()
}

/// Whether the number of members changes, and which step is next. A lost member is a matter of another condition.
fn resizing(observed: &Observed, validated: &Validated<'_>) -> Option<Finding> {
    let recorded = validated.bootstrapped.as_ref()?;
    let losses = volumes::losses(observed, validated);
    let is_resizing = recorded.members != validated.wanted_members || recorded.announced.is_some();
    let is_known = !observed.etcd_claims.is_unknown() && losses.is_empty() && is_resizing;
    let change = is_known.then(|| changes::next(observed, validated, &losses))??;
    let Waiting { actor, on, detail } = change.waiting;
    let (members, wanted) = (recorded.members, validated.wanted_members);
    let on = format!("{on} ({members} of {wanted} members)");
    let waiting = Waiting::new(actor, on);
    Some(rolling_out::RESIZING_ETCD.waiting(Waiting { detail, ..waiting }))
}

fn of_etcd<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Result<Option<Finding>, &'observed Unknown> {
    let (tag, _) = upgrade::etcd(observed, validated)?;
    let Some(rollout) = etcd_rollout::begun(observed, validated, &tag) else { return Ok(None) };
    let on = rollout.progress(&tag);
    let is_told = |next: &Change| next.steps.is_empty() || next.waiting.detail.is_some();
    let is_failing = PodFacts::first_failing(&observed.etcd_pods).is_some();
    Ok(Some(match rollout.next(validated).filter(|next| !is_failing && is_told(next)) {
        Some(next) => {
            let Waiting { actor, on: first, detail } = next.waiting;
            let waiting = Waiting::new(actor, format!("{first}, then for {on}"));
            rolling_out::ROLLING_OUT.waiting(Waiting { detail, ..waiting })
        }
        None => step(on, &observed.etcd_pods, None),
    }))
}

fn of_api_servers(observed: &Observed, validated: &Validated<'_>) -> Option<Finding> {
    let facts = observed.api_server.iter().next()?;
    let pods = &observed.api_server_pods;
    let is_rolling = facts.updated < facts.existing || !facts.is_observed;
    let (path, wanted) = api_server::wanted(validated);
    let label = wanted.label();
    let has_older = pods.iter().any(|pod| !pod.is_deleting && pod.version.as_ref() != Some(&label));
    let is_about_to = has_older && facts.version.as_ref() == Some(&label);
    if !is_rolling && !is_about_to {
        return None;
    }
    let replicas = validated.replicas;
    if !has_older {
        let replaced = facts.updated.min(replicas);
        // What was counted of the template before says nothing of this one.
        let count = facts.is_observed.then(|| format!(", {replaced} of {replicas} are"));
        let on = format!("API servers to be replaced{}", count.unwrap_or_default());
        return Some(step(on, pods, None));
    }
    let on =
        format!("API servers to be replaced, {} of {replicas} are on {wanted}", ready_with(pods, &label));
    let before = upgrade::served(observed).filter(|served| served.number() < wanted.number());
    let advice = before.map(|served| format!("{served} serves on, and {path} can be set back to it"));
    Some(step(on, pods, advice))
}

/// Both at once: neither waits for the other, and both may be replaced within a second.
fn of_controllers<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Result<Option<Finding>, &'observed Unknown> {
    let (mut desired, mut replaced, mut version) = (0, 0, None);
    let mut is_rolling = false;
    for facts in [&observed.controller_manager, &observed.scheduler].into_iter().flat_map(Read::iter) {
        let wanted = controllers::version(observed, validated, Some(facts))?;
        // Its Deployment may not have been changed yet.
        let is_changed = facts.version == Some(wanted.label());
        is_rolling |= !is_changed || facts.updated < facts.existing;
        desired += facts.desired;
        if is_changed && facts.is_observed {
            replaced += facts.updated.min(facts.desired);
        }
        version = Some(wanted);
    }
    let Some(version) = version.filter(|_| is_rolling) else { return Ok(None) };
    let on = format!(
        "controller managers and schedulers to be replaced, {replaced} of {desired} are on {version}"
    );
    Ok(Some(step(on, &observed.controller_pods, None)))
}

//! Restarts etcd's members with another version, image, configuration or resources, one at a time.
//!
//! A member is restarted only while all members are healthy: each pod is ready (kubelet asks a member whether it can
//! read through the leader), each member answers, none tells of an alarm, and each has its volume. The leader comes last,
//! so that leadership moves once; etcd hands it over when it is told to stop. Pods are evicted, so that the disruption
//! budget holds when somebody drains a node at the same moment.
//!
//! Which members are outdated is decided in one place, [`is_outdated`].

use hangar_api::naming;

use super::observed::{MemberFacts, Observed, PodFacts};
use super::validate::Validated;
use super::volumes::Loss;
use super::{Draft, etcd, step};
use crate::flow::Read;

/// Whether a member has to be restarted: it runs another version than its template has, or began with other settings.
pub(super) fn is_outdated(observed: &Observed, pod: &PodFacts, tag: &str) -> bool {
    pod.version.as_ref() != Some(&naming::label_value(tag)) || has_other_settings(observed, pod)
}

/// A pod that does not tell was made before anybody asked: a new Hangar restarts nobody.
fn has_other_settings(observed: &Observed, pod: &PodFacts) -> bool {
    let wanted = observed.etcd.iter().find_map(|facts| facts.settings.as_ref());
    wanted.zip(pod.settings.as_ref()).is_some_and(|(wanted, settings)| wanted != settings)
}

/// Whether a member is to be restarted. Who leads must be known then.
pub fn are_members_outdated(observed: &Observed) -> bool {
    let template = observed.etcd.iter().find_map(|facts| facts.version.as_ref());
    let is_other = |pod: &PodFacts| pod.version.as_ref() != template || has_other_settings(observed, pod);
    template.is_some() && observed.etcd_pods.iter().any(is_other)
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>, tag: &str, losses: &[Loss]) {
    let observed = draft.observed;
    if validated.bootstrapped.is_none() || !losses.is_empty() || !is_healthy(observed, validated, tag) {
        return;
    }
    let mut outdated: Vec<&PodFacts> =
        observed.etcd_pods.iter().filter(|pod| is_outdated(observed, pod, tag)).collect();
    outdated.sort_by_key(|pod| (is_leader(observed, pod), &pod.name));
    if let Some(pod) = outdated.first() {
        draft.report.decide(
            format!("restart {}", pod.name),
            format!("all members are healthy, it is not as wanted with {tag}"),
        );
        draft.step(step::evict(pod));
    }
}

fn member<'observed>(observed: &'observed Observed, pod: &PodFacts) -> Option<&'observed MemberFacts> {
    observed.etcd_members.iter().find(|member| member.name == pod.name)
}

fn is_leader(observed: &Observed, pod: &PodFacts) -> bool {
    member(observed, pod).is_some_and(|member| member.is_leader)
}

/// Whether one member can be missed. The template has the version already: a member that ends now starts with it.
fn is_healthy(observed: &Observed, validated: &Validated<'_>, tag: &str) -> bool {
    let members = etcd::membership(validated).members;
    let Read::One(facts) = &observed.etcd else { return false };
    let has_template = facts.is_observed
        && !facts.is_deleting
        && facts.desired == members
        && facts.version == Some(naming::label_value(tag));
    let is_well = |pod: &PodFacts| {
        let told = member(observed, pod).is_some_and(|member| member.alarms.is_empty());
        pod.is_ready && !pod.is_deleting && told
    };
    let pods: Vec<&PodFacts> = observed.etcd_pods.iter().collect();
    let is_complete = i32::try_from(pods.len()) == Ok(members) && facts.ready == members;
    has_template && is_complete && pods.into_iter().all(is_well)
}

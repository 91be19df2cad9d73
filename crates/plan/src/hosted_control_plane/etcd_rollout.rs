//! Restarts etcd's members with another version, or for larger volumes, one at a time.
//!
//! A member is restarted only while all members are healthy: each pod is ready (kubelet asks a member whether it can
//! read through the leader), each member answers, none tells of an alarm, and each has its volume. The leader comes last,
//! so that leadership moves once; etcd hands it over when it is told to stop. Pods are evicted, so that the disruption
//! budget holds when somebody drains a node at the same moment. A member that is full is restarted for a larger quota:
//! that is what ends its alarm.
//!
//! Which members are outdated is decided in one place, [`is_outdated`]; who needs room, in [`needs_room`].

use hangar_api::naming;

use super::alarms::Alarm;
use super::observed::{MemberFacts, Observed, PodFacts};
use super::validate::Validated;
use super::volumes::Loss;
use super::{Draft, backup, etcd, growth, step};
use crate::flow::Read;

/// Whether a member has to be restarted: it runs another version than its template has.
pub(super) fn is_outdated(pod: &PodFacts, tag: &str) -> bool {
    pod.version.as_ref() != Some(&naming::label_value(tag))
}

/// Whether a member has to be restarted to have more room: it began with another quota than its template has, or its file
/// system grows only when it is mounted. A template without a quota asks for nothing: a new Hangar restarts nobody.
fn needs_room(observed: &Observed, pod: &PodFacts) -> bool {
    let wanted = observed.etcd.iter().find_map(|facts| facts.quota.as_ref());
    let has_other_quota = wanted.is_some() && pod.quota.as_ref() != wanted;
    has_other_quota || growth::needs_mounting(observed, pod)
}

/// How many members have to be restarted to have more room.
pub(super) fn without_room(observed: &Observed) -> usize {
    observed.etcd_pods.iter().filter(|pod| needs_room(observed, pod)).count()
}

/// Whether a member is to be restarted. Who leads must be known then.
pub fn are_members_outdated(observed: &Observed) -> bool {
    let template = observed.etcd.iter().find_map(|facts| facts.version.as_ref());
    let is_other = |pod: &PodFacts| pod.version.as_ref() != template || needs_room(observed, pod);
    template.is_some() && observed.etcd_pods.iter().any(is_other)
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>, tag: &str, losses: &[Loss]) {
    let observed = draft.observed;
    if validated.bootstrapped.is_none() || !losses.is_empty() || !has_template(observed, tag) {
        return;
    }
    // One procedure at a time; how long a backup takes is limited.
    if obstacle(observed, validated).is_some() {
        return;
    }
    let is_full = observed.etcd_members.iter().any(|member| !member.alarms.is_empty());
    let is_due = |pod: &&PodFacts| needs_room(observed, pod) || (!is_full && is_outdated(pod, tag));
    let mut outdated: Vec<&PodFacts> = observed.etcd_pods.iter().filter(is_due).collect();
    outdated.sort_by_key(|pod| (is_leader(observed, pod), &pod.name));
    if let Some(pod) = outdated.first() {
        let why = if is_outdated(pod, tag) {
            format!("it is not on {tag}")
        } else {
            "it gets more room".to_owned()
        };
        draft.report.decide(format!("restart {}", pod.name), format!("all members are healthy, {why}"));
        draft.step(step::evict(pod));
    }
}

fn member<'observed>(observed: &'observed Observed, pod: &PodFacts) -> Option<&'observed MemberFacts> {
    observed.etcd_members.iter().find(|member| member.name == pod.name)
}

fn is_leader(observed: &Observed, pod: &PodFacts) -> bool {
    member(observed, pod).is_some_and(|member| member.is_leader)
}

/// Whether a member that ends now starts with the version.
fn has_template(observed: &Observed, tag: &str) -> bool {
    observed.etcd.iter().any(|facts| facts.version == Some(naming::label_value(tag)))
}

/// Why no member can be missed now, if so. That members are full is no reason.
pub(super) fn obstacle(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
    let members = etcd::membership(validated).members;
    let Read::One(facts) = &observed.etcd else { return Some("the StatefulSet is not known".to_owned()) };
    if backup::is_running(observed) {
        return Some("a backup is being made".to_owned());
    }
    if !facts.is_observed || facts.is_deleting || facts.desired != members {
        return Some("the StatefulSet's controller has not seen its change".to_owned());
    }
    if let Some(pod) = observed.etcd_pods.iter().find(|pod| !pod.is_ready || pod.is_deleting) {
        return Some(format!("{} is not ready", pod.name));
    }
    if i32::try_from(observed.etcd_pods.iter().count()) != Ok(members) || facts.ready != members {
        return Some(format!("{} of {members} members are ready", facts.ready));
    }
    let silent = observed.etcd_pods.iter().find(|pod| member(observed, pod).is_none());
    let corrupt = observed.etcd_members.iter().find(|member| member.alarms.contains(&Alarm::Corrupt));
    silent
        .map(|pod| format!("{} does not answer", pod.name))
        .or_else(|| corrupt.map(|member| format!("{} tells of different data", member.name)))
}

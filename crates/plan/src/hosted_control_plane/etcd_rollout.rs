//! Restarts etcd's members for another template (version, image, resources, placement), for other arguments, for a larger
//! quota, and for a file system that grows only when it is mounted, one at a time.
//!
//! A member is restarted only while all others are well: their pods are ready (kubelet asks a member whether it can read
//! through the leader), and they vote, follow one leader and tell of no error. That they are full is none where they are
//! restarted for more room. That is read from the members themselves for every pass, because a pod is ready for a while
//! after its node was lost. The leader comes last, so that leadership moves once; etcd hands it over when it is told to
//! stop. Pods are evicted, so that the disruption budget holds when somebody drains a node at the same moment.
//!
//! A member that is not ready comes before all others, if its template is old: it cannot be missed more than it is, and an
//! image that cannot be pulled stays one until its pod is another. Where no quorum is ready, nobody is asked, and only what
//! does not run at all is replaced.
//!
//! Which members are outdated is decided in one place, [`is_outdated`]. What a member reads when it starts is in its
//! template, so one rule is enough for all of it.

use hangar_api::conditions::Actor;
use hangar_api::naming;

use super::alarms::is_no_space;
use super::changes::{self, Change};
use super::etcd::{self, quorum};
use super::observed::{Observed, PodFacts, WorkloadFacts};
use super::roster::Roster;
use super::validate::Validated;
use super::volumes::losses;
use super::{backup, growth, step, upgrade};
use crate::conditions::who::{MANAGEMENT_CLUSTER, OPERATOR};
use crate::flow::Read;

/// Members that have to be restarted.
pub(super) struct Rollout<'observed> {
    observed: &'observed Observed,
    facts: &'observed WorkloadFacts,
    outdated: Vec<&'observed PodFacts>,
    members: i32,
}

/// Whether a pod was made from an older template than the latest. Its controller tells of the latest once it has seen it.
fn is_outdated(facts: &WorkloadFacts, pod: &PodFacts) -> bool {
    let is_other = |latest: &String| pod.revision.as_ref().is_some_and(|revision| revision != latest);
    pod.version != facts.version || facts.is_observed && facts.revision.as_ref().is_some_and(is_other)
}

/// The rollout that has begun with a template of this version, if one has.
pub(super) fn begun<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
    tag: &str,
) -> Option<Rollout<'observed>> {
    let is_it = |facts: &&WorkloadFacts| facts.version == Some(naming::label_value(tag));
    let facts = observed.etcd.iter().find(is_it)?;
    let members = etcd::membership(validated).members;
    let pods = (0..members).filter_map(|ordinal| pod(observed, &validated.names.etcd_pod(ordinal)));
    let is_due = |pod: &&PodFacts| is_outdated(facts, pod) || growth::needs_mounting(observed, pod);
    let outdated: Vec<&PodFacts> = pods.filter(is_due).collect();
    (!outdated.is_empty()).then_some(Rollout { observed, facts, outdated, members })
}

fn pod<'observed>(observed: &'observed Observed, name: &str) -> Option<&'observed PodFacts> {
    observed.etcd_pods.iter().find(|pod| pod.name == name)
}

/// Whether members have to be restarted.
pub(super) fn is_going_on(observed: &Observed, validated: &Validated<'_>) -> bool {
    upgrade::etcd(observed, validated).is_ok_and(|(tag, _)| begun(observed, validated, &tag).is_some())
}

/// What the next restart waits for, if it waits.
pub(super) fn waits(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
    let (tag, _) = upgrade::etcd(observed, validated).ok()?;
    let next = begun(observed, validated, &tag)?.next(validated)?;
    let why = next.waiting.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    next.steps.is_empty().then(|| format!("{}{why}", next.waiting.on))
}

/// Whether members have to be called before the next one can be restarted.
pub(super) fn is_due(observed: &Observed, validated: &Validated<'_>) -> bool {
    let Ok((tag, _)) = upgrade::etcd(observed, validated) else { return false };
    begun(observed, validated, &tag).is_some_and(|rollout| rollout.candidates(validated).is_ok())
}

impl<'observed> Rollout<'observed> {
    /// How far it is.
    pub(super) fn progress(&self, tag: &str) -> String {
        let is_there = |pod: &&PodFacts| pod.is_ready && !pod.is_deleting && !is_outdated(self.facts, pod);
        let there = self.observed.etcd_pods.iter().filter(is_there).count();
        let is_upgrade = self.outdated.iter().any(|pod| pod.version != self.facts.version);
        let what = if is_upgrade { format!("are on {tag}") } else { "have the latest settings".to_owned() };
        format!("etcd's members to be restarted, {there} of {} {what}", self.members)
    }

    /// Whether a member has more room when it has started again.
    fn needs_room(&self, pod: &PodFacts) -> bool {
        let has_other_quota = self.facts.quota.is_some() && pod.quota != self.facts.quota;
        has_other_quota || growth::needs_mounting(self.observed, pod)
    }

    /// The next step of it, or what it waits for.
    pub(super) fn next(&self, validated: &Validated<'_>) -> Option<Change> {
        match self.candidates(validated) {
            Ok(candidates) => self.restart_one(validated, &candidates),
            Err(change) => Some(*change),
        }
    }

    /// Who may be restarted next if all others are well, or what is waited for before anybody is asked.
    fn candidates(&self, validated: &Validated<'_>) -> Result<Vec<&'observed PodFacts>, Box<Change>> {
        let (observed, facts) = (self.observed, self.facts);
        let others = |actor, what: &str| Err(Box::new(Change::others(actor, what.to_owned())));
        if facts.is_deleting || !facts.is_observed || facts.desired != self.members {
            return others(MANAGEMENT_CLUSTER, "etcd's StatefulSet to be as it was written");
        }
        if validated.bootstrapped.is_none() || etcd::running(Some(facts)) < quorum(self.members) {
            let ends = |pod: &&&PodFacts| !pod.is_ready && !pod.is_deleting && pod.trouble.is_some();
            return match self.outdated.iter().find(ends) {
                Some(pod) => {
                    Err(Box::new(self.restart(pod, "it does not run, and no quorum is lost with it")))
                }
                None => others(MANAGEMENT_CLUSTER, "a quorum of etcd's members"),
            };
        }
        if let Some(change) = self.obstacle(validated) {
            return Err(Box::new(change));
        }
        let is_ready =
            |name: &String| pod(observed, name).is_some_and(|pod| pod.is_ready && !pod.is_deleting);
        let names = (0..self.members).map(|ordinal| validated.names.etcd_pod(ordinal));
        let unready: Vec<String> = names.filter(|name| !is_ready(name)).collect();
        let candidates: Vec<&PodFacts> = match &unready[..] {
            [] => self.outdated.clone(),
            [one] => {
                self.outdated.iter().copied().filter(|pod| pod.name == *one && !pod.is_deleting).collect()
            }
            _ => Vec::new(),
        };
        if candidates.is_empty() {
            let trouble = unready.iter().find_map(|name| pod(observed, name)?.told());
            let change = Change::others(MANAGEMENT_CLUSTER, format!("{} to be ready", unready.join(", ")));
            return Err(Box::new(change.because(trouble)));
        }
        // Whoever counts pods for the disruption budget sees them no later.
        if i32::try_from(unready.len()).map(|unready| self.members - unready) != Ok(facts.ready) {
            return others(MANAGEMENT_CLUSTER, "etcd's StatefulSet to count its pods");
        }
        Ok(candidates)
    }

    /// What else is going on with the members.
    fn obstacle(&self, validated: &Validated<'_>) -> Option<Change> {
        let observed = self.observed;
        let ours = |what: &str| Some(Change::others(Actor::Hangar, what.to_owned()));
        if observed.etcd_claims.is_unknown() {
            return ours("etcd's claims to be read");
        }
        if changes::is_due(observed, validated) {
            return ours("the change of etcd's members to end");
        }
        if let Some(loss) = losses(observed, validated).first() {
            let change = Change::others(OPERATOR, "all members to have their volumes".to_owned());
            return Some(change.because(Some(loss.what.clone())));
        }
        backup::is_running(observed).then(|| Change::others(Actor::Hangar, backup::END.to_owned()))
    }

    /// Restarts the first of these that does not lead, if all members are well that are not missing already.
    fn restart_one(&self, validated: &Validated<'_>, candidates: &[&PodFacts]) -> Option<Change> {
        let list = match &self.observed.etcd_list {
            Read::One(list) => list,
            read => {
                let change = Change::others(Actor::Hangar, "the members of etcd to be listed".to_owned());
                let Read::Unknown(unknown) = read else { return Some(change) };
                return Some(change.because(Some(unknown.to_string())));
            }
        };
        let roster = Roster::new(self.observed, validated, list);
        if let Some(change) = changes::strangers(&roster) {
            return Some(change);
        }
        if roster.has_learner() {
            let what = "the learner of etcd to get its vote or to be removed".to_owned();
            return Some(Change::others(OPERATOR, what));
        }
        let name = |ordinal: i32| validated.names.etcd_pod(ordinal);
        let is_missing = |name: &str| candidates.iter().any(|pod| pod.name == name && !pod.is_ready);
        let others = (0..self.members).filter(|ordinal| !is_missing(&name(*ordinal)));
        let is_for_room = candidates.iter().any(|pod| self.needs_room(pod));
        if let Some((ordinal, why)) =
            roster.first_ailment(others, |error| !is_for_room || !is_no_space(error))
        {
            let change = Change::others(MANAGEMENT_CLUSTER, format!("{} to be well", name(ordinal)));
            return Some(change.because(Some(format!("{}: {why}", name(ordinal)))));
        }
        let leader = (0..self.members).find(|ordinal| roster.leads(*ordinal)).map(name);
        let next = candidates.iter().min_by_key(|pod| (leader.as_ref() == Some(&pod.name), &pod.name))?;
        let is_old = is_outdated(self.facts, next);
        let why = if is_old {
            "all others are well, and it has an older template"
        } else {
            "all others are well, and its file system grows when it is mounted"
        };
        Some(self.restart(next, why))
    }

    fn restart(&self, pod: &PodFacts, why: &'static str) -> Change {
        let step = step::evict(pod);
        let told = self.observed.troubles.get(&crate::flow::Identified::id(&step)).cloned();
        Change::ours(format!("{} to be restarted", pod.name), why, Some(step)).because(told)
    }
}

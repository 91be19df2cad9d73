//! Gives back what is free in etcd's databases, one member at a time, and ends the alarm NOSPACE when there is room.
//!
//! A database never becomes smaller by itself: what was compacted is free for later writes, but its file keeps its size,
//! and the quota counts the file. A member that is defragmented writes its database anew and answers nothing meanwhile.
//! So it is done only where it gives much back, while all members are well and have applied what they took, and never
//! beside another procedure: no change of members, restart, backup, restore or rollout. Followers come first; then the
//! leader lets another member lead and is done as a follower. A member that does not answer yet keeps the others waiting,
//! so that two are never done at once, whoever asked.
//!
//! With the alarm NOSPACE all of that is due at once, after volumes that are about to grow. The alarm ends when the
//! databases of all members are well below their quotas, and not before: it would be raised again.
//!
//! Compaction is left to API servers, which know who still reads history. While the alarm is on they cannot: theirs begins
//! with a write.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::controlplane::v1alpha1::HostedControlPlaneStatus;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::alarms::{self, Alarm};
use super::changes::Change;
use super::database::DatabaseSize;
use super::etcd_calls::MemberChange;
use super::observed::{Observed, PodFacts, WorkloadFacts};
use super::roster::Roster;
use super::step::{OwnStep, Step};
use super::validate::Validated;
use super::{Draft, backup, etcd, etcd_rollout, growth, restore, volumes};
use crate::conditions::who::{MANAGEMENT_CLUSTER, OPERATOR};
use crate::flow::Read;

/// How many changes a member may have taken and not applied, and not count as busy. Without load it is none or a few; etcd
/// itself refuses writes from 5000 on.
const FEW_CHANGES: u64 = 100;

/// The least time between two rounds, without an alarm: each costs what it costs to write the databases anew.
const REST: SignedDuration = SignedDuration::from_hours(1);

/// A round is on record once, not for each of its members.
const ROUND: SignedDuration = SignedDuration::from_mins(10);

impl DatabaseSize {
    fn free(&self) -> u64 {
        self.allocated.saturating_sub(self.in_use)
    }

    /// Whether the file is large, and a third of it is free.
    fn is_fragmented(&self) -> bool {
        self.quota > 0 && self.allocated > self.quota / 2 && self.free() >= self.allocated / 3
    }

    /// Whether writes go on for a while without the alarm.
    fn has_room(&self) -> bool {
        self.quota > 0 && self.allocated <= self.quota / 8 * 7
    }

    /// Whether it would have room without what is free in it.
    fn may_have_room(&self) -> bool {
        Self { allocated: self.in_use, ..*self }.has_room()
    }

    /// Whether a full database becomes smaller by a defragmentation.
    fn is_worth_it(&self) -> bool {
        !self.has_room() && self.free() >= self.allocated / 8
    }
}

/// Why members need care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The alarm is on.
    Full,
    /// Databases are much larger than what is in them.
    Fragmented,
}

/// What members told that were asked for alarms and sizes.
fn need(observed: &Observed) -> Option<Need> {
    let has = |alarm| observed.etcd_members.iter().any(|member| member.alarms.contains(&alarm));
    let mut sizes = observed.etcd_members.iter().filter_map(|member| member.database);
    if has(Alarm::Corrupt) {
        None
    } else if has(Alarm::NoSpace) {
        Some(Need::Full)
    } else {
        let is_rested = last(observed).is_none_or(|last| last.duration_until(observed.now) >= REST);
        (is_rested && sizes.any(|size| size.is_fragmented())).then_some(Need::Fragmented)
    }
}

/// When the last round was over.
fn last(observed: &Observed) -> Option<Timestamp> {
    let status = observed.control_plane.status.as_ref()?;
    status.etcd_last_defrag_time.as_ref().map(|time| time.0)
}

/// Whether members are on record, all there, and stay who they are.
fn is_settled(observed: &Observed, validated: &Validated<'_>) -> bool {
    let settled = validated.bootstrapped.as_ref().filter(|record| {
        !record.claims.is_empty()
            && record.joining.is_none()
            && record.leaving.is_empty()
            && record.members == validated.wanted_members
    });
    settled.is_some()
        && volumes::losses(observed, validated).is_empty()
        && !restore::holds_changes(observed, validated)
}

/// What else goes on, or is to go on first.
fn obstacle(observed: &Observed, validated: &Validated<'_>, need: Need) -> Option<Waiting> {
    if need == Need::Full && growth::is_going_on(observed, validated) {
        return Some(Waiting::new(MANAGEMENT_CLUSTER, "larger volumes, see EtcdVolumesSized"));
    }
    let is_rolling = |facts: &WorkloadFacts| !facts.is_replaced();
    if need == Need::Fragmented && observed.api_server.iter().any(is_rolling) {
        return Some(Waiting::new(MANAGEMENT_CLUSTER, "API servers to be replaced"));
    }
    if etcd_rollout::is_going_on(observed, validated) {
        return Some(Waiting::new(MANAGEMENT_CLUSTER, "etcd's members to be restarted"));
    }
    let why = ailment(observed, validated)?;
    Some(Waiting::new(MANAGEMENT_CLUSTER, "etcd's members to be well").because(why))
}

/// Why no member can be missed now, if so, before members are asked. That they are full is no reason.
fn ailment(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
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
    let answers = |pod: &PodFacts| observed.etcd_members.iter().any(|member| member.name == pod.name);
    let silent = observed.etcd_pods.iter().find(|pod| !answers(pod));
    silent.map(|pod| format!("{} does not answer", pod.name))
}

/// Whether members have to be called before a plan can be made.
pub(super) fn is_due(observed: &Observed, validated: &Validated<'_>) -> bool {
    let is_free = |need| obstacle(observed, validated, need).is_none();
    !observed.etcd_claims.is_unknown()
        && is_settled(observed, validated)
        && need(observed).is_some_and(is_free)
}

/// The next step of the care that is due, and what it waits for.
pub(super) fn next(observed: &Observed, validated: &Validated<'_>) -> Option<Change> {
    let need = need(observed)?;
    if !is_settled(observed, validated) {
        return None;
    }
    if let Some(waiting) = obstacle(observed, validated, need) {
        return Some(Change { steps: Vec::new(), waiting, why: "" });
    }
    let list = match &observed.etcd_list {
        Read::One(list) => list,
        Read::Unknown(unknown) => {
            let change =
                Change::others(Actor::Hangar, "etcd's members to tell how large they are".to_owned());
            return Some(change.because(Some(unknown.to_string())));
        }
        Read::Absent | Read::Many(_) => return None,
    };
    let roster = Roster::new(observed, validated, list);
    let members = validated.bootstrapped.as_ref()?.members;
    let change = care(&roster, members, |ordinal| validated.names.etcd_pod(ordinal))?;
    let told = change.steps.iter().find_map(|step| observed.troubles.get(&crate::flow::Identified::id(step)));
    let told = told.cloned();
    Some(change.because(told))
}

/// The same, of members who tell how they are now.
fn care(roster: &Roster<'_>, members: i32, name: impl Fn(i32) -> String) -> Option<Change> {
    let states = (0..members).map(|ordinal| (ordinal, roster.state(ordinal)));
    let unwell: Vec<String> =
        (0..members).filter(|ordinal| !roster.is_well_if_full(*ordinal)).map(&name).collect();
    if !unwell.is_empty() || !roster.strangers().is_empty() || roster.has_learner() {
        let what = format!("{} to be well", unwell.join(", "));
        let what = if unwell.is_empty() { "etcd to have its own members alone".to_owned() } else { what };
        return Some(Change::others(MANAGEMENT_CLUSTER, what));
    }
    let states: Vec<_> = states.filter_map(|(ordinal, state)| Some((ordinal, state?))).collect();
    if let Some((ordinal, _)) = states.iter().find(|(_, state)| state.unapplied > FEW_CHANGES) {
        let what = format!("{} to apply the changes that it has taken, it is busy", name(*ordinal));
        return Some(Change::others(Actor::Hangar, what));
    }
    let is_full = states.iter().any(|(_, state)| state.errors.iter().any(|error| alarms::is_no_space(error)));
    let is_due = |size: &DatabaseSize| if is_full { size.is_worth_it() } else { size.is_fragmented() };
    let is_leader = |ordinal: i32| roster.entry(ordinal).map(|entry| entry.id) == roster.leader();
    let mut due: Vec<i32> =
        states.iter().filter(|(_, state)| is_due(&state.database)).map(|(ordinal, _)| *ordinal).collect();
    due.sort_by_key(|ordinal| (is_leader(*ordinal), *ordinal));
    if let Some(ordinal) = due.first().copied() {
        let follower = (0..members).find(|other| is_leader(ordinal) && *other != ordinal);
        return Some(if let Some(other) = follower {
            let what = format!("another member than {} to lead", name(ordinal));
            Change::ours(what, "it is about to be defragmented", roster.lead(ordinal, other))
        } else {
            let what = format!("{} to be defragmented", name(ordinal));
            let step = roster.care(ordinal, MemberChange::Defragment);
            Change::ours(what, "much of its database is free, and all members are well", step)
        });
    }
    let has_room = is_full && states.iter().all(|(_, state)| state.database.has_room());
    has_room.then(|| {
        let through = (0..members).find(|ordinal| is_leader(*ordinal));
        let step = through.and_then(|ordinal| roster.care(ordinal, MemberChange::EndNoSpace));
        Change::ours("the alarm NOSPACE to end".to_owned(), "all databases have room again", step)
    })
}

/// What the alarm NOSPACE waits for.
pub(super) fn remedy(observed: &Observed, validated: &Validated<'_>, care: Option<&Change>) -> Waiting {
    let sizes = || observed.etcd_members.iter().filter_map(|member| member.database);
    let may_help = || sizes().next().is_some() && sizes().all(|size| size.may_have_room());
    let is_growing = growth::is_going_on(observed, validated);
    match care {
        Some(care) if is_growing || !care.steps.is_empty() || may_help() => care.waiting.clone(),
        _ => Waiting::new(
            OPERATOR,
            "room in etcd: a larger spec.etcd.volumeSize, or fewer objects in the tenant and then `etcdctl compact`; \
             Hangar defragments, and ends the alarm when there is room",
        ),
    }
}

/// Runs what is due, and says when.
pub(super) fn draft(draft: &mut Draft<'_>, care: Option<&Change>) {
    let observed = draft.observed;
    if let Some(care) = care {
        draft.report.wait(care.waiting.clone());
        draft.again(super::etcd::CHANGES_AGAIN);
        for step in &care.steps {
            draft.report.decide(crate::flow::Identified::id(step).to_string(), care.why);
            draft.step(step.clone());
        }
    }
    let is_begun = care.iter().flat_map(|care| &care.steps).any(is_defragmentation);
    let status = &mut draft.status;
    if is_begun {
        begin(status, observed.now);
    }
    let begun = status.etcd_last_attempted_defrag_time.as_ref().map(|time| time.0);
    // Where nobody answers, nobody says that it is over.
    let is_open = begun > last(observed) && !observed.etcd_members.is_unknown();
    let is_due = need(observed).is_some() && care.is_some();
    if is_open && !is_due {
        status.etcd_last_defrag_time = Some(Time(observed.now));
    }
}

fn is_defragmentation(step: &Step) -> bool {
    matches!(step, Step::Own(OwnStep::Etcd(step)) if step.change == MemberChange::Defragment)
}

/// Notes when a round was begun.
fn begin(status: &mut HostedControlPlaneStatus, now: Timestamp) {
    let begun = status.etcd_last_attempted_defrag_time.as_ref().map(|time| time.0);
    if begun.is_none_or(|begun| begun.duration_until(now) >= ROUND) {
        status.etcd_last_attempted_defrag_time = Some(Time(now));
    }
}

impl Observed {
    /// A member was defragmented.
    pub(super) fn defragmented(&mut self) {
        begin(self.control_plane.status.get_or_insert_default(), self.now);
    }
}

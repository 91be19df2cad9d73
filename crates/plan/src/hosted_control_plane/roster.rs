//! etcd's own list of members beside what is recorded: who is who, who is well, and who can be asked for a change.
//!
//! Members are known by their peer URL. It follows from the ordinal, is there before a member has started, and no other
//! member can have it.

use std::collections::BTreeSet;

use super::etcd_calls::{
    EtcdStep, ListedMember, MemberAccess, MemberChange, MemberId, MemberList, MemberState, reachable,
};
use super::membership::MOST_MEMBERS;
use super::names::Names;
use super::observed::Observed;
use super::validate::Validated;
use super::{alarms, etcd};

const DISAGREE: &str = "members do not agree on who leads";

pub(super) struct Roster<'observed> {
    list: &'observed MemberList,
    names: Names,
    callable: Vec<MemberAccess>,
}

impl<'observed> Roster<'observed> {
    pub(super) fn new(observed: &Observed, validated: &Validated<'_>, list: &'observed MemberList) -> Self {
        Self { list, names: validated.names.clone(), callable: reachable(observed, validated) }
    }

    pub(super) fn entry(&self, ordinal: i32) -> Option<&'observed ListedMember> {
        let url = etcd::peer_url(&self.names, ordinal);
        self.list.members.iter().find(|member| member.peer_urls.contains(&url))
    }

    /// Members that nobody of us added, by id.
    pub(super) fn strangers(&self) -> Vec<String> {
        let own: BTreeSet<MemberId> =
            (0..MOST_MEMBERS).filter_map(|ordinal| Some(self.entry(ordinal)?.id)).collect();
        let strange = self.list.members.iter().filter(|member| !own.contains(&member.id));
        strange.map(|member| member.id.to_string()).collect()
    }

    pub(super) fn has_learner(&self) -> bool {
        self.list.members.iter().any(|member| member.is_learner)
    }

    /// What the program behind an entry of the list tells of itself; nothing from one that runs as another member.
    pub(super) fn state(&self, ordinal: i32) -> Option<&'observed MemberState> {
        let state = self.list.told.get(&self.names.etcd_pod(ordinal))?;
        self.entry(ordinal).filter(|entry| entry.id == state.id).map(|_| state)
    }

    /// Whether it votes, follows a leader or leads, and nothing is wrong with it.
    pub(super) fn is_well(&self, ordinal: i32) -> bool {
        self.ailment(ordinal, |_| true).is_none()
    }

    /// Whether it is well, or nothing is wrong with it but that there is no space: it serves reads and changes of members.
    pub(super) fn is_well_if_full(&self, ordinal: i32) -> bool {
        self.ailment(ordinal, |error| !alarms::is_no_space(error)).is_none()
    }

    /// Why a member is not well, by its errors that count.
    fn ailment(&self, ordinal: i32, counts: impl Fn(&str) -> bool) -> Option<String> {
        let own = |text: &str| Some(text.to_owned());
        let Some(entry) = self.entry(ordinal) else { return own("it is not in etcd's list of members") };
        let Some(state) = self.state(ordinal) else { return own("it does not answer") };
        if entry.is_learner || state.is_learner {
            return own("it has no vote yet");
        }
        if state.leader.is_none() {
            return own("it knows of no leader");
        }
        if state.leader != self.leader() {
            return own(DISAGREE);
        }
        let errors: Vec<&str> =
            state.errors.iter().map(String::as_str).filter(|error| counts(error)).collect();
        (!errors.is_empty()).then(|| errors.join(", "))
    }

    /// The first of these that is not well, and why: one that is ill itself before those that only disagree with it.
    pub(super) fn first_ailment(
        &self,
        ordinals: impl Iterator<Item = i32>,
        counts: impl Fn(&str) -> bool,
    ) -> Option<(i32, String)> {
        let ailing = ordinals.filter_map(|ordinal| Some((ordinal, self.ailment(ordinal, &counts)?)));
        ailing.min_by_key(|(ordinal, why)| (why == DISAGREE, *ordinal))
    }

    pub(super) fn leads(&self, ordinal: i32) -> bool {
        self.entry(ordinal).is_some_and(|entry| self.leader() == Some(entry.id))
    }

    /// Whom those that answered follow; nobody where they disagree.
    pub(super) fn leader(&self) -> Option<MemberId> {
        let mut leaders = self.list.told.values().filter(|state| !state.is_learner).map(|state| state.leader);
        let first = leaders.next()??;
        leaders.all(|leader| leader == Some(first)).then_some(first)
    }

    /// The change of a member, asked for at the leader, or at another one that is well. Nothing where nobody can be asked.
    pub(super) fn change(&self, ordinal: i32, change: MemberChange) -> Option<EtcdStep> {
        let mut others: Vec<i32> =
            (0..MOST_MEMBERS).filter(|other| *other != ordinal && self.is_well(*other)).collect();
        others.sort_by_key(|other| !self.leads(*other));
        let through = others.into_iter().find_map(|other| self.access(other))?;
        Some(EtcdStep { through, member: self.names.etcd_pod(ordinal), change })
    }

    /// Lets a member lead, asked for at the one that does.
    pub(super) fn lead(&self, from: i32, to: i32) -> Option<EtcdStep> {
        let change = MemberChange::Lead(self.entry(to)?.id);
        Some(EtcdStep { through: self.access(from)?, member: self.names.etcd_pod(to), change })
    }

    /// Care for a member, asked for at itself.
    pub(super) fn care(&self, ordinal: i32, care: MemberChange) -> Option<EtcdStep> {
        Some(EtcdStep { through: self.access(ordinal)?, member: self.names.etcd_pod(ordinal), change: care })
    }

    fn access(&self, ordinal: i32) -> Option<MemberAccess> {
        let name = self.names.etcd_pod(ordinal);
        self.callable.iter().find(|access| access.member == name).cloned()
    }
}

//! Changes who belongs to etcd: replaces members that lost their data, adds members and takes them away.
//!
//! One change at a time, and one step of it at a time, each derived from etcd's own list, the record and the claims; there
//! is no other memory. A step that may cost a vote is only taken while all other members are well, so the members that are
//! left always are a majority. A change goes on until it is finished or undone before another one begins; lost members
//! come before a wanted number. While etcd is restored, nobody joins or leaves, and no change begins while a backup is made.
//!
//! ```text
//! replace:  remove -> delete the claim that is lost -> (the StatefulSet makes another) -> add as a learner -> record the
//!           claim it may begin in -> start -> promote -> record it as a member
//! grow:     record that a member joins -> (the StatefulSet makes pod and claim) -> as above, from the learner on
//! shrink:   move leadership away -> remove the highest member -> record -> delete its claim
//! ```
//!
//! A member that went on alone, because a majority had lost its data, is a majority by itself until the first of the
//! others has its data and its vote.

use hangar_api::conditions::{Actor, Waiting};

use super::etcd_calls::{ListedMember, MemberChange};
use super::joining::{self, recorded};
use super::membership::{Joining, Membership};
use super::names::Names;
use super::observed::{ClaimFacts, ObjectIdentity, Observed, PodFacts};
use super::roster::Roster;
use super::step::{self, Step};
use super::validate::Validated;
use super::volumes::{self, Loss};
use super::{backup, growth, restore};
use crate::conditions::who::{MANAGEMENT_CLUSTER, OPERATOR};
use crate::flow::Read;

/// What is done next, and what is waited for.
pub(super) struct Change {
    pub(super) steps: Vec<Step>,
    pub(super) waiting: Waiting,
    /// Why it is done.
    pub(super) why: &'static str,
}

impl Change {
    /// Something that one step of ours does, where somebody can be asked for it.
    pub(super) fn ours(what: String, why: &'static str, step: Option<impl Into<Step>>) -> Self {
        let waiting = Waiting::new(Actor::Hangar, what);
        Self { steps: step.into_iter().map(Into::into).collect(), waiting, why }
    }

    /// Something that somebody else does.
    pub(super) fn others(actor: Actor, what: String) -> Self {
        Self { steps: Vec::new(), waiting: Waiting::new(actor, what), why: "" }
    }

    pub(super) fn because(mut self, detail: Option<String>) -> Self {
        self.waiting.detail = self.waiting.detail.or(detail);
        self
    }
}

/// What a change is derived from.
pub(super) struct Scene<'a, 'v> {
    pub(super) observed: &'a Observed,
    pub(super) validated: &'a Validated<'v>,
    pub(super) record: &'a Membership,
    pub(super) roster: Roster<'a>,
    losses: &'a [Loss],
}

/// The next step of the change that is due, if one is.
pub(super) fn next(observed: &Observed, validated: &Validated<'_>, losses: &[Loss]) -> Option<Change> {
    let record = due(observed, validated, losses)?;
    let list = match &observed.etcd_list {
        Read::One(list) => list,
        Read::Unknown(unknown) => {
            let change = Change::others(Actor::Hangar, "the members of etcd to be listed".to_owned());
            return Some(change.because(Some(unknown.to_string())));
        }
        Read::Absent | Read::Many(_) => return None,
    };
    let scene = Scene { observed, validated, record, roster: Roster::new(observed, validated, list), losses };
    if let Some(change) = strangers(&scene.roster) {
        return Some(change);
    }
    let change = scene.next()?;
    // What a member answered when it was asked for this.
    let told = change
        .steps
        .iter()
        .find_map(|step| observed.troubles.get(&crate::flow::Identified::id(step)).cloned());
    Some(change.because(told))
}

/// What is waited for while somebody else's members are in the list: how many make a majority is theirs to say, too.
pub(super) fn strangers(roster: &Roster<'_>) -> Option<Change> {
    let strangers = roster.strangers();
    let what = || format!("members that are not Hangar's to be removed from etcd: {}", strangers.join(", "));
    (!strangers.is_empty()).then(|| Change::others(OPERATOR, what()))
}

/// What is recorded, if something of it has to change and enough of the data is there to change it.
fn due<'v>(observed: &Observed, validated: &'v Validated<'_>, losses: &[Loss]) -> Option<&'v Membership> {
    let record = validated.bootstrapped.as_ref().filter(|record| !record.claims.is_empty())?;
    let lost = losses.iter().filter(|loss| !loss.has_data).count();
    let is_quorate = record.members - i32::try_from(lost).ok()? >= record.quorum();
    let is_due = record.joining.is_some()
        || !record.leaving.is_empty()
        || !losses.is_empty()
        || record.members != validated.wanted_members;
    let is_there = observed.etcd.iter().any(|facts| !facts.is_deleting) && !observed.etcd_pods.is_unknown();
    // A member that is alone has nobody to get its data from.
    let is_alone = record.members == 1 && record.joining.is_none() && !losses.is_empty();
    let is_held = || restore::holds_changes(observed, validated);
    (is_due && is_quorate && is_there && !is_alone && !is_held()).then_some(record)
}

/// Whether members have to be called before a plan can be made.
pub(super) fn is_due(observed: &Observed, validated: &Validated<'_>) -> bool {
    !observed.etcd_claims.is_unknown()
        && due(observed, validated, &volumes::losses(observed, validated)).is_some()
}

impl Scene<'_, '_> {
    fn next(&self) -> Option<Change> {
        if let Some(joining) = &self.record.joining {
            return Some(joining::next(self, joining));
        }
        // A member whose volume is not lost may have been removed by somebody, or by a change that is no longer wanted.
        let wanted = self.validated.wanted_members;
        let is_removed = |ordinal: &i32| *ordinal < wanted && self.roster.entry(*ordinal).is_none();
        let mut lost: Vec<&Loss> = self.losses.iter().collect();
        lost.sort_by_key(|loss| (loss.has_data, loss.ordinal));
        let lost =
            lost.first().map(|loss| loss.ordinal).or_else(|| (0..self.record.members).find(is_removed));
        if let Some(ordinal) = lost {
            return Some(self.replace(ordinal));
        }
        if wanted > self.record.members {
            return Some(self.grow());
        }
        if wanted < self.record.members {
            return Some(self.shrink());
        }
        joining::leave(self)
    }

    fn replace(&self, ordinal: i32) -> Change {
        let pod = self.names().etcd_pod(ordinal);
        if volumes::is_consented(self.observed, self.validated, ordinal) {
            let change = Change::others(OPERATOR, format!("{pod} to be ready, which was replaced by hand"));
            return change.because(self.trouble(ordinal));
        }
        let entry = self.roster.entry(ordinal);
        let is_fresh = entry.is_some_and(|entry| entry.is_learner && entry.name.is_empty());
        if let Some(entry) = entry.filter(|_| !is_fresh) {
            return self.remove(ordinal, entry, "its volume is lost");
        }
        let place = usize::try_from(ordinal).ok();
        let recorded = place.and_then(|place| self.record.claims.get(place));
        match self.claim(ordinal) {
            Some(claim) if claim.is_deleting || Some(&claim.uid) == recorded || claim.is_lost => {
                let delete = (!claim.is_deleting).then(|| self.delete_claim(claim));
                let what = format!("PersistentVolumeClaim {} to be gone", claim.name);
                let change = match delete {
                    Some(step) => Change::ours(what, "its member was removed from etcd", Some(step)),
                    None => Change::others(MANAGEMENT_CLUSTER, what),
                };
                Change { steps: change.steps.into_iter().chain(self.evict(ordinal)).collect(), ..change }
            }
            // Its pod goes, so that its StatefulSet makes both again.
            None => {
                let name = self.names().etcd_claim(ordinal);
                let change =
                    Change::others(MANAGEMENT_CLUSTER, format!("a new PersistentVolumeClaim {name}"));
                Change { steps: self.evict(ordinal).into_iter().collect(), ..change }
            }
            Some(claim) if is_fresh => {
                let joining = Joining { ordinal, claim: Some(claim.uid.clone()), pod: self.pod_uid(ordinal) };
                let changed = Membership { joining: Some(joining), ..self.record.clone() };
                let step = joining::recorded(self, changed).record();
                let what = format!("the new volume of {pod} to be recorded");
                Change::ours(what, "it may begin empty in this claim alone", Some(step))
            }
            Some(_) => self.add(ordinal),
        }
    }

    fn grow(&self) -> Change {
        let ordinal = self.record.members;
        let pod = self.names().etcd_pod(ordinal);
        if let Some(entry) = self.roster.entry(ordinal) {
            return self.remove(ordinal, entry, "it is in the list and not on record");
        }
        if let Some(claim) = self.claim(ordinal) {
            let name = &claim.name;
            if !volumes::is_own(self.observed, claim) {
                let what = format!("PersistentVolumeClaim {name} to be deleted or kept under another name");
                return Change::others(OPERATOR, what);
            }
            // No member may begin in a claim that is not on record, so there is no data of this etcd in it.
            let what = format!("PersistentVolumeClaim {name} to be gone, which no member had");
            if claim.is_deleting || self.pod(ordinal).is_some() {
                return Change::others(MANAGEMENT_CLUSTER, what);
            }
            return Change::ours(what, "no member had it", Some(self.delete_claim(claim)));
        }
        if let Some(change) = self.held(ordinal) {
            return change;
        }
        let joining = Joining { ordinal, claim: None, pod: None };
        let changed = Membership { joining: Some(joining), ..self.record.clone() };
        let step = recorded(self, changed).record();
        Change::ours(format!("{pod} to be recorded as one that joins"), "more members are wanted", Some(step))
    }

    fn shrink(&self) -> Change {
        let ordinal = self.record.members - 1;
        let pod = self.names().etcd_pod(ordinal);
        let Some(entry) = self.roster.entry(ordinal) else {
            let mut changed = self.record.clone();
            changed.members = ordinal;
            changed.leaving.extend(changed.claims.pop());
            let step = recorded(self, changed).record();
            return Change::ours(
                format!("the end of {pod} to be recorded"),
                "it was removed from etcd",
                Some(step),
            );
        };
        if self.roster.leads(ordinal) {
            if let Some(change) = self.held(ordinal) {
                return change;
            }
            let step = (0..ordinal).find_map(|other| self.roster.lead(ordinal, other));
            return Change::ours(
                format!("another member than {pod} to lead"),
                "it is about to be removed",
                step,
            );
        }
        self.remove(ordinal, entry, "fewer members are wanted")
    }

    pub(super) fn names(&self) -> &Names {
        &self.validated.names
    }

    /// Whether it is not on record as a member yet.
    pub(super) fn is_new(&self, ordinal: i32) -> bool {
        ordinal >= self.record.members
    }

    /// Whether a new member has to stand back.
    pub(super) fn is_unwanted(&self, ordinal: i32) -> bool {
        self.validated.wanted_members <= ordinal || !self.losses.is_empty()
    }

    pub(super) fn claim(&self, ordinal: i32) -> Option<&ClaimFacts> {
        volumes::claim(self.observed, &self.names().etcd_claim(ordinal))
    }

    pub(super) fn pod(&self, ordinal: i32) -> Option<&PodFacts> {
        let name = self.names().etcd_pod(ordinal);
        self.observed.etcd_pods.iter().find(|pod| pod.name == name)
    }

    pub(super) fn pod_uid(&self, ordinal: i32) -> Option<String> {
        self.pod(ordinal).map(|pod| pod.uid.clone())
    }

    pub(super) fn trouble(&self, ordinal: i32) -> Option<String> {
        self.pod(ordinal)?.trouble.clone()
    }

    /// Ends a pod that is of no use, unless it ends already.
    pub(super) fn evict(&self, ordinal: i32) -> Option<Step> {
        self.pod(ordinal).filter(|pod| !pod.is_deleting).map(step::evict)
    }

    pub(super) fn delete_claim(&self, claim: &ClaimFacts) -> Step {
        let object = ObjectIdentity {
            api_version: "v1".to_owned(),
            kind: "PersistentVolumeClaim".to_owned(),
            namespace: self.names().namespace().to_owned(),
            name: claim.name.clone(),
        };
        step::delete(&object, &claim.uid)
    }

    /// Why no change may begin now. One that has begun goes on: no backup is made from a member that is gone or joins.
    fn held(&self, ordinal: i32) -> Option<Change> {
        let is_backed_up = backup::is_running(self.observed);
        let backup = is_backed_up.then(|| Change::others(Actor::Hangar, backup::END.to_owned()));
        backup.or_else(|| self.unwell(ordinal))
    }

    /// Who of the members that have their data is not well, except this one; nothing where the others can do without it.
    fn unwell(&self, but: i32) -> Option<Change> {
        let is_lost = |ordinal: &i32| self.losses.iter().any(|loss| loss.ordinal == *ordinal);
        let (well, unwell): (Vec<i32>, Vec<i32>) = (0..self.record.members)
            .filter(|ordinal| *ordinal != but && !is_lost(ordinal))
            .partition(|ordinal| self.roster.is_well(*ordinal));
        let is_majority = i32::try_from(well.len()).is_ok_and(|well| well >= self.record.quorum());
        if is_majority && unwell.is_empty() {
            return None;
        }
        if self.is_alone_after(but) && unwell.is_empty() && !well.is_empty() {
            return None;
        }
        let names: Vec<String> = unwell.iter().map(|ordinal| self.names().etcd_pod(*ordinal)).collect();
        let what = if names.is_empty() {
            format!("more members than {} without a loss", well.len())
        } else {
            format!("{} to be well", names.join(", "))
        };
        let ailment = self.roster.first_ailment(unwell.iter().copied(), |_| true);
        let ailment = ailment.map(|(ordinal, why)| format!("{}: {why}", self.names().etcd_pod(ordinal)));
        Some(Change::others(MANAGEMENT_CLUSTER, what).because(ailment))
    }

    /// Of two members both have to agree, and one is left.
    fn is_alone_after(&self, leaving: i32) -> bool {
        self.record.members == 2
            && leaving == 1
            && self.validated.wanted_members == 1
            && self.losses.is_empty()
    }

    /// Removes a member for good, while all others are well.
    pub(super) fn remove(&self, ordinal: i32, entry: &ListedMember, why: &'static str) -> Change {
        let what = format!("{} to be removed from etcd", self.names().etcd_pod(ordinal));
        // Without a vote it can be missed whoever is well.
        if !entry.is_learner
            && let Some(change) = self.held(ordinal)
        {
            return change;
        }
        Change::ours(what, why, self.roster.change(ordinal, MemberChange::Remove(entry.id)))
    }

    /// What a member waits for whose volume is smaller than those of the others: they have grown, and its claim was made
    /// with the first size.
    fn too_small(&self, ordinal: i32) -> Option<Change> {
        let claim = self.claim(ordinal)?;
        let least = growth::least_for_new(self.observed, self.validated)?;
        let is_smaller = growth::bytes(claim.size.as_ref()).is_none_or(|size| size < least.bytes);
        is_smaller.then(|| {
            let what = format!("PersistentVolumeClaim {} to have {}, as the others", claim.name, least.text);
            Change::others(MANAGEMENT_CLUSTER, what).because(claim.trouble.clone())
        })
    }

    /// Adds a member without a vote, while all others are well and no other one joins.
    pub(super) fn add(&self, ordinal: i32) -> Change {
        let pod = self.names().etcd_pod(ordinal);
        if self.roster.has_learner() {
            let what = format!("another member to get its vote before {pod} is added to etcd");
            return Change::others(OPERATOR, what);
        }
        if let Some(change) = self.too_small(ordinal) {
            return change;
        }
        if let Some(change) = self.unwell(ordinal) {
            return change;
        }
        let peer_url = super::etcd::peer_url(self.names(), ordinal);
        let step = self.roster.change(ordinal, MemberChange::AddLearner { peer_url });
        Change::ours(format!("{pod} to be added to etcd without a vote"), "all others are well", step)
    }
}

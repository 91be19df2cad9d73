//! Lets one member join: it was added to etcd without a vote, starts empty in one claim, gets all data, and then its vote.
//!
//! The record names the member and the claim that it may begin in ([`Joining`]); everything else is read from etcd's
//! list. So after a crash the same member goes on where it was, and a claim that was lost meanwhile is not the one that
//! was meant: the member is removed once more, and joins under another id.

use super::changes::{Change, Scene};
use super::etcd_calls::{ListedMember, MemberChange};
use super::membership::{Joining, Membership};
use super::{step, volumes};
use crate::conditions::who::{MANAGEMENT_CLUSTER, OPERATOR};

/// What the record becomes, with what API servers are told while the number of members changes.
pub(super) fn recorded(scene: &Scene<'_, '_>, changed: Membership) -> Membership {
    let is_done = changed.joining.is_none() && changed.members == scene.validated.wanted_members;
    let before = scene.record.announced.unwrap_or(scene.record.members);
    Membership { announced: (!is_done && before != changed.members).then_some(before), ..changed }
}

/// The next step of the member that joins.
pub(super) fn next(scene: &Scene<'_, '_>, joining: &Joining) -> Change {
    let ordinal = joining.ordinal;
    let entry = scene.roster.entry(ordinal);
    let is_voter = entry.is_some_and(|entry| !entry.is_learner);
    if scene.is_new(ordinal) && !is_voter && scene.is_unwanted(ordinal) {
        return abandon(scene, joining, entry);
    }
    match &joining.claim {
        None => awaiting_claim(scene, joining, entry),
        Some(uid) => in_claim(scene, joining, uid, entry),
    }
}

/// Takes a member back that is no longer wanted, before it has a vote.
fn abandon(scene: &Scene<'_, '_>, joining: &Joining, entry: Option<&ListedMember>) -> Change {
    let pod = scene.names().etcd_pod(joining.ordinal);
    if let Some(entry) = entry {
        let step = scene.roster.change(joining.ordinal, MemberChange::Remove(entry.id));
        return Change::ours(format!("{pod} to be removed from etcd again"), "it is no longer wanted", step);
    }
    let mut changed = scene.record.clone();
    changed.joining = None;
    // Whatever claim was made for it; one that is lost already is forgotten.
    let made = scene.claim(joining.ordinal).filter(|claim| volumes::is_own(scene.observed, claim));
    changed.leaving.extend(made.map(|claim| claim.uid.clone()));
    let step = recorded(scene, changed).record();
    Change::ours(format!("the end of {pod} to be recorded"), "it is no longer wanted", Some(step))
}

/// The StatefulSet makes the claim of a new member; nobody starts in it yet.
fn awaiting_claim(scene: &Scene<'_, '_>, joining: &Joining, entry: Option<&ListedMember>) -> Change {
    let (ordinal, names) = (joining.ordinal, scene.names());
    let (pod, name) = (names.etcd_pod(ordinal), names.etcd_claim(ordinal));
    let Some(claim) = scene.claim(ordinal).filter(|claim| !claim.is_deleting && !claim.is_lost) else {
        let evict = scene.claim(ordinal).and_then(|_| scene.evict(ordinal));
        let change = Change::others(MANAGEMENT_CLUSTER, format!("PersistentVolumeClaim {name}"));
        return Change { steps: evict.into_iter().collect(), ..change };
    };
    match entry {
        None => scene.add(ordinal),
        Some(entry) if entry.is_learner && entry.name.is_empty() => {
            let next =
                Joining { claim: Some(claim.uid.clone()), pod: scene.pod_uid(ordinal), ..joining.clone() };
            let changed = Membership { joining: Some(next), ..scene.record.clone() };
            let what = format!("the volume of {pod} to be recorded");
            Change::ours(
                what,
                "it may begin empty in this claim alone",
                Some(recorded(scene, changed).record()),
            )
        }
        Some(entry) if entry.is_learner => {
            scene.remove(ordinal, entry, "it started in a claim that is not on record")
        }
        Some(_) => Change::others(
            OPERATOR,
            format!("{pod} to be removed from etcd: it votes, and its claim is not on record"),
        ),
    }
}

/// It may begin in this claim, and in no other.
fn in_claim(scene: &Scene<'_, '_>, joining: &Joining, uid: &str, entry: Option<&ListedMember>) -> Change {
    let ordinal = joining.ordinal;
    let pod = scene.names().etcd_pod(ordinal);
    let claim = scene.claim(ordinal).filter(|claim| claim.uid == uid && !claim.is_lost && !claim.is_deleting);
    let Some(claim) = claim else {
        if let Some(entry) = entry {
            return scene.remove(ordinal, entry, "the volume that it joined with is lost");
        }
        // A new member waits for another claim; a lost one is lost as before.
        let again = Joining { ordinal, claim: None, pod: None };
        let changed = Membership { joining: scene.is_new(ordinal).then_some(again), ..scene.record.clone() };
        let step = recorded(scene, changed).record();
        return Change::ours(
            format!("{pod} to join anew"),
            "the volume that it joined with is lost",
            Some(step),
        );
    };
    let Some(entry) = entry else {
        // Whatever is in it is of a member that was removed.
        let change = Change::ours(
            format!("PersistentVolumeClaim {} to be deleted", claim.name),
            "its member was removed from etcd",
            Some(scene.delete_claim(claim)),
        );
        let evict = scene.evict(ordinal);
        return Change { steps: change.steps.into_iter().chain(evict).collect(), ..change };
    };
    if entry.is_learner {
        if scene.roster.state(ordinal).is_some() {
            let step = scene.roster.change(ordinal, MemberChange::Promote(entry.id));
            return Change::ours(
                format!("{pod} to have all data and to get its vote"),
                "it receives data",
                step,
            );
        }
        // The pod that was there before started, and ended, without the list that it is in.
        let old = scene.pod(ordinal).filter(|found| joining.pod.as_ref() == Some(&found.uid));
        let evict = old.and_then(|_| scene.evict(ordinal));
        let change = Change::others(MANAGEMENT_CLUSTER, format!("{pod} to start with an empty volume"));
        return Change { steps: evict.into_iter().collect(), ..change.because(scene.trouble(ordinal)) };
    }
    if !scene.pod(ordinal).is_some_and(|found| found.is_ready && !found.is_deleting) {
        let change = Change::others(MANAGEMENT_CLUSTER, format!("{pod} to be ready"));
        return change.because(scene.trouble(ordinal));
    }
    let mut changed = Membership { joining: None, ..scene.record.clone() };
    let present = usize::try_from(ordinal).ok().and_then(|place| changed.claims.get_mut(place));
    if let Some(present) = present {
        uid.clone_into(present);
    } else {
        changed.claims.push(uid.to_owned());
        changed.members += 1;
    }
    let step = recorded(scene, changed).record();
    Change::ours(format!("{pod} to be recorded as a member"), "it votes and is ready", Some(step))
}

/// What the API server's pods may still know is gone with the record; its claim goes when no pod uses it.
pub(super) fn leave(scene: &Scene<'_, '_>) -> Option<Change> {
    let uid = scene.record.leaving.first()?;
    let Some(claim) = scene.observed.etcd_claims.iter().find(|claim| claim.uid == *uid) else {
        let mut changed = scene.record.clone();
        changed.leaving.retain(|leaving| leaving != uid);
        let step = changed.record();
        return Some(Change::ours(
            "a claim that is gone to be forgotten".to_owned(),
            "it is gone",
            Some(step),
        ));
    };
    let what = format!("PersistentVolumeClaim {} to be gone", claim.name);
    if claim.is_deleting {
        return Some(Change::others(MANAGEMENT_CLUSTER, what));
    }
    let is_used = scene.observed.etcd_pods.iter().any(|pod| claim.name.ends_with(&format!("-{}", pod.name)));
    if is_used {
        return Some(Change::others(MANAGEMENT_CLUSTER, format!("the pod of {} to end", claim.name)));
    }
    let step: step::Step = scene.delete_claim(claim);
    Some(Change::ours(what, "its member was removed from etcd", Some(step)))
}

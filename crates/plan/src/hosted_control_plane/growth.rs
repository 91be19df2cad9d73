//! Lets etcd's volumes grow: first the claim, then the file system, then the quota.
//!
//! A claim asks for more, and the driver of its storage class and kubelet make volume and file system larger; the claim's
//! capacity tells when both are. Claims grow one after the other, so that one alone meets a class that cannot. The quota
//! follows the smallest capacity, so it is raised when the file systems of all members are larger; and because members
//! read it when they start, they are restarted for it, one at a time (`etcd_rollout`).
//!
//! There is no memory besides the claims: what they ask for is what was decided. The claim template of a StatefulSet
//! cannot be changed and stays as it was made, so the claim of a member that joins later is made with the first size, and
//! grows before the member begins in it. Nothing shrinks.

use hangar_api::conditions::{Actor, Finding, Waiting};
use jiff::SignedDuration;

use super::alarms::Alarm;
use super::conditions::etcd_volumes_sized;
use super::observed::{ClaimFacts, Observed, PodFacts};
use super::validate::Validated;
use super::{Draft, etcd, etcd_rollout, step, volumes};
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::{Identified as _, Wake};
use crate::quantity::Quantity;

/// The smallest whole size whose quota is the largest that etcd bears: no volume grows further by itself.
const LARGEST: (&str, u64) = ("11Gi", 11 << 30);

/// How long a file system has to grow under a running member. Some drivers can do it only when a volume is mounted.
const MOUNTED_LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// The size of a volume, as written and in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) text: String,
    pub(super) bytes: u64,
}

impl Size {
    fn parse(text: &str) -> Option<Self> {
        let bytes = Quantity::parse(text).and_then(Quantity::bytes)?;
        Some(Self { text: text.to_owned(), bytes })
    }

    fn larger(self, other: Option<Self>) -> Self {
        other.filter(|other| other.bytes > self.bytes).unwrap_or(self)
    }
}

pub(super) fn bytes(text: Option<&String>) -> Option<u64> {
    Size::parse(text?).map(|size| size.bytes)
}

/// What is asked for a claim. It asks for as much as it has, where it does not tell.
fn requested(claim: &ClaimFacts) -> Option<Size> {
    Size::parse(claim.requested.as_ref().or(claim.size.as_ref())?)
}

/// The size in the claim template: that of the StatefulSet that is there, else what is wanted.
pub(super) fn template(observed: &Observed, validated: &Validated<'_>) -> String {
    let present = observed.etcd.iter().find_map(|facts| facts.volume.clone());
    present.unwrap_or_else(|| validated.volume.clone())
}

/// The claims of members on record.
fn recorded<'a>(
    observed: &'a Observed,
    validated: &'a Validated<'_>,
) -> impl Iterator<Item = &'a ClaimFacts> {
    let uids = validated.bootstrapped.iter().flat_map(|recorded| &recorded.claims);
    uids.filter_map(|uid| observed.etcd_claims.iter().find(|claim| claim.uid == *uid))
}

/// Whether all members were given larger volumes than they began with.
fn has_grown(observed: &Observed, validated: &Validated<'_>) -> bool {
    let first = observed.etcd.iter().find_map(|facts| bytes(facts.volume.as_ref()));
    let least = recorded(observed, validated).filter_map(requested).map(|size| size.bytes).min();
    first.zip(least).is_some_and(|(first, least)| least > first)
}

/// The quota that members have to be restarted for: that of the volumes, where they have grown since they were made.
pub(super) fn raised_quota(observed: &Observed, validated: &Validated<'_>) -> Option<u64> {
    let first = observed.etcd.iter().find_map(|facts| bytes(facts.volume.as_ref()))?;
    let (_, present) = volumes::smallest(observed, validated)?;
    let quota = etcd::quota(present);
    (has_grown(observed, validated) && quota > etcd::quota(first)).then_some(quota)
}

/// What a new member's volume needs, where those of the others have grown: with a smaller one it would be full before
/// them, and a full member stops all.
pub(super) fn least_for_new(observed: &Observed, validated: &Validated<'_>) -> Option<Size> {
    let (text, bytes) = volumes::smallest(observed, validated)?;
    has_grown(observed, validated).then_some(Size { text, bytes })
}

fn is_automatic(validated: &Validated<'_>) -> bool {
    validated.settings.etcd.as_ref().and_then(|etcd| etcd.auto_grow) == Some(true)
}

/// Whether little room is left, whatever a defragmentation would give back.
fn is_nearly_full(observed: &Observed) -> bool {
    observed.etcd_members.iter().any(|member| {
        let is_filled = member.database.as_ref().is_some_and(|size| size.in_use > size.quota / 5 * 4);
        is_filled || member.alarms.contains(&Alarm::NoSpace)
    })
}

/// The size that members' volumes should have.
fn wanted(observed: &Observed, validated: &Validated<'_>) -> Size {
    let asked = Size { text: validated.volume.clone(), bytes: validated.volume_bytes };
    if !is_automatic(validated) {
        return asked;
    }
    // What one claim was given all get: else a growth would end halfway, as soon as there is room again.
    let decided = recorded(observed, validated).filter_map(requested).max_by_key(|size| size.bytes);
    let next = is_nearly_full(observed).then(|| Size { text: LARGEST.0.to_owned(), bytes: LARGEST.1 });
    asked.larger(decided).larger(next)
}

/// A claim that is not as large as it should be, and what it waits for.
struct Growing<'a> {
    claim: &'a ClaimFacts,
    /// What it is to ask for, where it does not yet.
    asked: Option<Size>,
    /// What it should have.
    size: Size,
}

/// The claim that grows now: the first of all members' that is too small.
fn growing<'a>(observed: &'a Observed, validated: &'a Validated<'_>) -> Option<Growing<'a>> {
    let record = validated.bootstrapped.as_ref().filter(|record| !record.claims.is_empty())?;
    let wanted = wanted(observed, validated);
    let new = wanted.clone().larger(least_for_new(observed, validated));
    let of = |ordinal| volumes::claim(observed, &validated.names.etcd_claim(ordinal));
    let claims = (0..record.pods()).filter_map(of).filter(|claim| {
        // One without a volume cannot grow, and what goes need not.
        claim.size.is_some() && !claim.is_deleting && !claim.is_lost && volumes::is_own(observed, claim)
    });
    let mut growing = claims.filter_map(|claim| {
        let size = if record.claims.contains(&claim.uid) { &wanted } else { &new };
        let (present, requested) = (bytes(claim.size.as_ref())?, requested(claim)?);
        if requested.bytes < size.bytes {
            return Some(Growing { claim, asked: Some(size.clone()), size: size.clone() });
        }
        (present < requested.bytes).then_some(Growing { claim, asked: None, size: requested })
    });
    growing.next()
}

/// Whether volumes or the quota are about to be larger.
pub(super) fn is_going_on(observed: &Observed, validated: &Validated<'_>) -> bool {
    let is_stuck =
        |growing: &Growing<'_>| told(observed, growing).is_some() || growing.claim.trouble.is_some();
    growing(observed, validated).is_some_and(|growing| !is_stuck(&growing))
        || raised_quota(observed, validated).is_some_and(|quota| lacking(observed, quota) > 0)
}

/// What the management cluster said when it was asked, or the driver of the volume.
fn told(observed: &Observed, growing: &Growing<'_>) -> Option<String> {
    let size = growing.asked.as_ref()?;
    observed.troubles.get(&step::grow(growing.claim, &size.text).id()).cloned()
}

/// How many members have to be restarted for this quota.
fn lacking(observed: &Observed, quota: u64) -> usize {
    let quota = Some(quota.to_string());
    observed.etcd_pods.iter().filter(|pod| pod.quota != quota).count()
}

/// Whether the file system of a member's volume grows only when the volume is mounted anew.
pub(super) fn needs_mounting(observed: &Observed, pod: &PodFacts) -> bool {
    let is_long = |claim: &ClaimFacts| {
        claim.unmounted_since.is_some_and(|since| since.duration_until(observed.now) >= MOUNTED_LIMIT)
    };
    observed.etcd_claims.iter().any(|claim| claim.name.ends_with(&format!("-{}", pod.name)) && is_long(claim))
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let finding = match growing(observed, validated) {
        Some(growing) => {
            if let Some(size) = &growing.asked {
                let step = step::grow(growing.claim, &size.text);
                draft.report.decide(step.id().to_string(), format!("{} are wanted", size.text));
                draft.step(step);
            }
            let due = growing.claim.unmounted_since.and_then(|since| since.checked_add(MOUNTED_LIMIT).ok());
            if let Some(due) = due.filter(|due| *due > observed.now) {
                draft.wake_at(Wake::At(due));
            }
            Some(volume(observed, &growing))
        }
        None => quota(observed, validated),
    };
    match finding {
        Some(finding) => draft.say(finding),
        None => draft.forget(etcd_volumes_sized::TYPE),
    }
}

fn volume(observed: &Observed, growing: &Growing<'_>) -> Finding {
    let Growing { claim, asked, size } = growing;
    let present = claim.size.as_deref().unwrap_or("none");
    let on = format!("PersistentVolumeClaim {} to have {}, it has {present}", claim.name, size.text);
    if let Some(told) = told(observed, growing) {
        return etcd_volumes_sized::NOT_EXPANDABLE.waits(on).because(told);
    }
    if let Some(trouble) = &claim.trouble {
        return etcd_volumes_sized::FAILING.waits(on).because(trouble);
    }
    let actor = if asked.is_some() { Actor::Hangar } else { MANAGEMENT_CLUSTER };
    let unmounted = claim.unmounted_since.map(|_| "its file system grows when a node mounts it".to_owned());
    let waiting = Waiting { detail: unmounted, ..Waiting::new(actor, on) };
    etcd_volumes_sized::GROWING.waiting(waiting)
}

/// What is said when all volumes are as large as they should be.
fn quota(observed: &Observed, validated: &Validated<'_>) -> Option<Finding> {
    if let Some(quota) = raised_quota(observed, validated) {
        let lacking = lacking(observed, quota);
        let members = observed.etcd_pods.iter().count();
        let has_template = observed.etcd.iter().any(|facts| facts.quota == Some(quota.to_string()));
        if lacking > 0 || !has_template {
            let on = format!(
                "etcd's members to be restarted with a quota of {quota} bytes, {} of {members} are",
                members - lacking
            );
            let why = etcd_rollout::waits(observed, validated);
            return Some(etcd_volumes_sized::QUOTA_BEHIND.waits(on).because_of(why));
        }
    }
    let is_largest = volumes::smallest(observed, validated).is_some_and(|(_, size)| size >= LARGEST.1);
    (is_automatic(validated) && is_largest && is_nearly_full(observed)).then(|| {
        etcd_volumes_sized::AT_LIMIT
            .waits("fewer objects in the tenant, etcd's databases are nearly full")
            .because("a larger volume would not help: etcd's quota is 8Gi at most")
    })
}

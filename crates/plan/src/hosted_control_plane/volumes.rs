//! The volumes of etcd's members: how large they are, and which of them were lost.
//!
//! A claim is known by its uid. A StatefulSet's controller makes a claim of the same name again when one is gone, with
//! an empty volume; so a member whose claim is not the recorded one has lost its data.

use super::membership::Membership;
use super::names::{Names, REPLACED_MEMBER_ANNOTATION};
use super::observed::{ClaimFacts, Observed};
use super::validate::Validated;
use crate::quantity::Quantity;

/// A member whose data is gone, or about to be.
pub(super) struct Loss {
    pub(super) ordinal: i32,
    /// What became of its claim.
    pub(super) what: String,
    /// Whether its data is still there.
    pub(super) has_data: bool,
}

pub(super) fn claim<'observed>(observed: &'observed Observed, name: &str) -> Option<&'observed ClaimFacts> {
    observed.etcd_claims.iter().find(|claim| claim.name == name)
}

/// The claims of all members by uid, once all of them are there.
pub(super) fn uids(observed: &Observed, names: &Names, members: i32) -> Option<Vec<String>> {
    (0..members)
        .map(|ordinal| Some(claim(observed, &names.etcd_claim(ordinal))?.uid.clone()))
        .collect::<Option<Vec<_>>>()
}

/// Members that do not have the volume that is recorded for them. To be asked when the claims were read.
pub(super) fn losses(observed: &Observed, validated: &Validated<'_>) -> Vec<Loss> {
    let recorded = validated.bootstrapped.iter().flat_map(|recorded| &recorded.claims);
    let loss = |(ordinal, uid): (i32, &String)| {
        let name = validated.names.etcd_claim(ordinal);
        let (what, has_data) = match claim(observed, &name) {
            None => (format!("PersistentVolumeClaim {name} does not exist"), false),
            // etcd went on without it: whatever it has is of before.
            Some(_) if uid.is_empty() => (
                format!(
                    "{} has nothing yet of the data that etcd goes on with",
                    validated.names.etcd_pod(ordinal)
                ),
                false,
            ),
            Some(claim) if claim.uid != *uid => (
                format!("PersistentVolumeClaim {name} was deleted, and one without data is in its place"),
                false,
            ),
            Some(claim) if claim.is_lost => {
                (format!("the volume of PersistentVolumeClaim {name} is gone"), false)
            }
            Some(claim) if claim.is_deleting => {
                let pod = validated.names.etcd_pod(ordinal);
                (format!("PersistentVolumeClaim {name} is being deleted, and goes when pod {pod} ends"), true)
            }
            Some(_) => return None,
        };
        Some(Loss { ordinal, what, has_data })
    };
    (0..).zip(recorded).filter_map(loss).collect()
}

/// Whether a claim is of this control plane: on record, or not older than it.
pub(super) fn is_own(observed: &Observed, claim: &ClaimFacts) -> bool {
    let created_at = observed.control_plane.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let is_older =
        claim.created_at.zip(created_at).is_some_and(|(claim, control_plane)| claim < control_plane);
    let recorded = Membership::recorded(&observed.control_plane).ok().flatten();
    !is_older || recorded.is_some_and(|recorded| recorded.claims.contains(&claim.uid))
}

/// Whether a member begins without data: it was added to etcd for that, by Hangar or by hand, and has the claim that was
/// meant.
pub(super) fn may_begin(observed: &Observed, validated: &Validated<'_>, ordinal: i32) -> bool {
    let joining = validated.bootstrapped.as_ref().and_then(|recorded| recorded.joining.as_ref());
    let joining = joining.filter(|joining| joining.ordinal == ordinal);
    let meant = joining.and_then(|joining| joining.claim.as_ref());
    let claim = claim(observed, &validated.names.etcd_claim(ordinal));
    meant.is_some_and(|meant| claim.is_some_and(|claim| claim.uid == *meant))
        || is_consented(observed, validated, ordinal)
}

/// Whether a member was removed and added again by hand: it begins without data, in a claim that is not on record yet.
/// The consent is to one claim, as Hangar's own ([`super::membership::Joining`]).
pub(super) fn is_consented(observed: &Observed, validated: &Validated<'_>, ordinal: i32) -> bool {
    let annotations = observed.control_plane.metadata.annotations.as_ref();
    let named = annotations.and_then(|annotations| annotations.get(REPLACED_MEMBER_ANNOTATION));
    let claim = claim(observed, &validated.names.etcd_claim(ordinal));
    named.is_some_and(|named| claim.is_some_and(|claim| claim.uid == *named))
        && losses(observed, validated).iter().any(|loss| loss.ordinal == ordinal)
}

/// What should be recorded now: the claims that members have when they first form a cluster, and that of a member that
/// was replaced and is ready.
pub(super) fn to_record(
    observed: &Observed,
    validated: &Validated<'_>,
    is_quorate: bool,
) -> Option<Membership> {
    let names = &validated.names;
    let before = validated.bootstrapped.clone();
    let mut record = before.clone().unwrap_or_else(|| Membership::first(validated.wanted_members));
    if record.claims.is_empty() && is_quorate {
        record.claims = uids(observed, names, record.members)?;
    }
    for (ordinal, uid) in (0..).zip(&mut record.claims) {
        let pod = names.etcd_pod(ordinal);
        let is_ready = observed.etcd_pods.iter().any(|found| found.name == pod && found.is_ready);
        if is_ready
            && is_consented(observed, validated, ordinal)
            && let Some(claim) = claim(observed, &names.etcd_claim(ordinal))
        {
            uid.clone_from(&claim.uid);
        }
    }
    record.identity = Some(names.identity().to_owned());
    (!record.claims.is_empty() && before.as_ref() != Some(&record)).then_some(record)
}

/// The smallest volume that members have: as written, and in bytes. A claim that is not on record is of no member yet.
pub(super) fn smallest(observed: &Observed, validated: &Validated<'_>) -> Option<(String, u64)> {
    let recorded =
        validated.bootstrapped.as_ref().map(|recorded| recorded.claims.as_slice()).unwrap_or_default();
    let is_of_member = |claim: &&ClaimFacts| recorded.is_empty() || recorded.contains(&claim.uid);
    let sizes = observed.etcd_claims.iter().filter(is_of_member).filter_map(|claim| {
        let text = claim.size.as_ref()?;
        Some((text.clone(), Quantity::parse(text).and_then(Quantity::bytes)?))
    });
    sizes.min_by_key(|(_, bytes)| *bytes)
}

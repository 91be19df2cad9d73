//! Goes on from the data of one member, where a majority has lost theirs and people consent.
//!
//! It is a restore whose data comes from the member's own volume. The member becomes a new cluster of one with a copy of
//! its data, under another generation, and the others get their data from it as members that join do. So whoever was
//! thought to be lost and comes back belongs to another cluster, and nobody listens to it.
//!
//! While a majority has its data or runs, this is refused: nothing would be gained, and acknowledged writes would be lost.

use hangar_api::conditions::Finding;

use super::super::conditions::etcd_restored;
use super::super::etcd::{self, quorum};
use super::super::observed::Observed;
use super::super::validate::Validated;
use super::super::volumes;
use super::record::{self, Restoration};
use super::{data, given, next_generation, unread_etcd};

/// What becomes lost members' places in the record: no claim has this uid.
const NONE: &str = "";

/// Members that have their data, by number, where a majority has not and nobody is served.
fn survivors(observed: &Observed, validated: &Validated<'_>) -> Vec<i32> {
    let Some(record) = &validated.bootstrapped else { return Vec::new() };
    let losses = volumes::losses(observed, validated);
    let is_lost = etcd::with_data(record.members, &losses) < quorum(record.members)
        && etcd::running(observed.etcd.iter().next()) < record.quorum();
    let has_data = |ordinal: &i32| !losses.iter().any(|loss| loss.ordinal == *ordinal);
    (0..record.members).filter(|ordinal| is_lost && has_data(ordinal)).collect()
}

/// Their names.
fn names(observed: &Observed, validated: &Validated<'_>) -> Vec<String> {
    let survivors = survivors(observed, validated);
    survivors.into_iter().map(|ordinal| validated.names.etcd_pod(ordinal)).collect()
}

/// What people can do where a majority has lost its data.
pub(in super::super) fn choices(observed: &Observed, validated: &Validated<'_>) -> String {
    let names = names(observed, validated);
    if names.is_empty() {
        return "a restore, or a new cluster; nothing is started without data".to_owned();
    }
    let data = data(observed, validated).unwrap_or_default();
    format!(
        "the lost volumes to come back; or spec.etcd.restore with a backup; or spec.etcd.restore with member: {} and \
         replace: {data}, to go on without what the others alone knew",
        names.join(" or ")
    )
}

/// What is recorded for a member that is named, or what that waits for.
pub(super) fn decision(
    observed: &Observed,
    validated: &Validated<'_>,
    name: &str,
) -> Result<Restoration, Box<Finding>> {
    if let Some(finding) = unread_etcd(observed) {
        return Err(Box::new(finding));
    }
    let members = 0..etcd::membership(validated).members;
    let named = members.clone().find(|ordinal| validated.names.etcd_pod(*ordinal) == name);
    let why = match named {
        None => Some(format!("etcd has no member {name}")),
        Some(ordinal) => obstacle(observed, validated, ordinal),
    };
    match (named, data(observed, validated), why) {
        (Some(survivor), Some(replaces), None) => Ok(Restoration {
            generation: next_generation(validated),
            identity: validated.names.identity().to_owned(),
            members: members.end,
            request: given(validated).map(record::request).unwrap_or_default(),
            from: String::new(),
            backup: String::new(),
            store: String::new(),
            is_encrypted: false,
            has_keys: false,
            survivor: Some(survivor),
            replaces: Some(replaces),
        }),
        (_, _, why) => {
            let why = why.unwrap_or_else(|| "there is no data to go on with".to_owned());
            Err(Box::new(refusal(observed, validated).because(why)))
        }
    }
}

/// Who could be named instead, or that nobody can.
pub(super) fn refusal(observed: &Observed, validated: &Validated<'_>) -> Finding {
    let names = names(observed, validated);
    etcd_restored::UNUSABLE.waits(if names.is_empty() {
        "spec.etcd.restore to be removed".to_owned()
    } else {
        format!("spec.etcd.restore.member: {}", names.join(" or "))
    })
}

/// Why etcd must not go on from this member, if so.
pub(super) fn obstacle(observed: &Observed, validated: &Validated<'_>, ordinal: i32) -> Option<String> {
    let survivors = survivors(observed, validated);
    if observed.manager_image.is_none() {
        return Some(
            "the manager was not told its own image (HANGAR_IMAGE), which looks at the data".to_owned(),
        );
    }
    if survivors.is_empty() {
        return Some("a majority of etcd's members has its data or runs, or no member has any".to_owned());
    }
    let name = validated.names.etcd_pod(ordinal);
    (!survivors.contains(&ordinal)).then(|| format!("{name} has lost its data, or is about to"))
}

/// The claims of the cluster of one, once its member has the data: the others have none of it yet.
pub(super) fn claims(observed: &Observed, validated: &Validated<'_>, survivor: i32) -> Option<Vec<String>> {
    let record = validated.bootstrapped.as_ref()?;
    let own = record.claims.get(usize::try_from(survivor).ok()?)?;
    let claim = |ordinal| if ordinal == survivor { own.clone() } else { NONE.to_owned() };
    let is_kept = obstacle(observed, validated, survivor).is_none();
    is_kept.then(|| (0..record.members).map(claim).collect())
}

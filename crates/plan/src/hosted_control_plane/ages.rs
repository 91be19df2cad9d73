//! Replaces API servers before the certificate ends that they made for themselves.
//!
//! A kube-apiserver calls itself with a certificate that it makes in memory when it starts, and never again: for a year,
//! from 1.33 on for 14 months. After that it does not work. Pods rarely live that long, but nothing else ends them.
//!
//! The moment at which the oldest one was due is an annotation of the pods' template, so that all are replaced, one after
//! the other. Pods that do not carry the template's annotation are being replaced already and count no more. Each control
//! plane has its own moment, so that not all of them are replaced in one night.

use jiff::{SignedDuration, Timestamp};

use super::observed::{Observed, PodFacts, WorkloadFacts};
use super::validate::Validated;
use super::version::KubernetesVersion;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Of a year, and of 14 months.
const LIFETIME_DAYS: i32 = 365;
const LONGER_LIFETIME_DAYS: i32 = 425;
/// The first minor whose certificate lives longer.
const LONGER_SINCE: u32 = 33;

/// The annotation of the template, if it has one, and when the next one is due.
pub(super) fn renewed(observed: &Observed, validated: &Validated<'_>) -> (Option<String>, Option<Timestamp>) {
    let facts = observed.api_server.iter().next();
    let current = facts.and_then(|facts| facts.renewed.clone());
    let pods = observed.api_server_pods.iter().filter(|pod| !pod.is_deleting && pod.renewed == current);
    let due = pods.filter_map(|pod| due(pod, validated)).min();
    match due {
        // A rollout that goes on replaces them anyway.
        Some(due) if due <= observed.now && facts.is_some_and(WorkloadFacts::is_rolled_out) => {
            (Some(due.to_string()), None)
        }
        due => (current, due.filter(|due| *due > observed.now)),
    }
}

/// Between 70 and 80 hundredths of its certificate's life after its start.
fn due(pod: &PodFacts, validated: &Validated<'_>) -> Option<Timestamp> {
    let version = pod.version.as_deref().and_then(KubernetesVersion::parse);
    let minor = version.map_or(validated.version.minor(), |version| version.minor());
    let days = if minor >= LONGER_SINCE { LONGER_LIFETIME_DAYS } else { LIFETIME_DAYS };
    let chance = crate::hash::text(&validated.uid);
    let chance = i32::from(u16::from_str_radix(chance.get(..4)?, 16).ok()?);
    let hundredths = DAY * days / 100;
    let share = hundredths * 70 + hundredths * 10 / 0x10000 * chance;
    // As it is stored and compared: in whole seconds.
    let due = pod.started_at?.checked_add(share).ok()?;
    Timestamp::from_second(due.as_second()).ok()
}

//! The record in a Lease, and what to do about it. It is pure: the time is an argument.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The last record seen, and when it was first seen like that by our own clock.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) spec: LeaseSpec,
    pub(super) resource_version: String,
    first_seen: Instant,
}

/// What a candidate should do about an observed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is ours: write it again with a new time.
    Renew,
    /// It has no holder, or the holder has been silent for too long.
    Take,
    /// It is held; it can be taken at that moment unless it changes before.
    WaitUntil(Instant),
}

impl Observation {
    /// Folds a read into what was known. Any change of the record, and only that, counts as a sign of life:
    /// a changed label does not.
    pub(super) fn update(previous: Option<Self>, lease: Lease, now: Instant) -> Self {
        let spec = lease.spec.unwrap_or_default();
        let first_seen = match previous {
            Some(previous) if previous.spec == spec => previous.first_seen,
            _ => now,
        };
        Self { spec, resource_version: lease.metadata.resource_version.unwrap_or_default(), first_seen }
    }

    /// Whose record it is; nothing if it was released.
    pub(super) fn holder(&self) -> Option<&str> {
        self.spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// What `identity` should do now. A record without a duration is given `default_duration`.
    pub(super) fn decide(&self, identity: &str, default_duration: Duration, now: Instant) -> Decision {
        match self.holder() {
            None => Decision::Take,
            Some(holder) if holder == identity => Decision::Renew,
            Some(_) => {
                let duration = self
                    .spec
                    .lease_duration_seconds
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .map_or(default_duration, Duration::from_secs);
                let free_at = self.first_seen + duration;
                if now >= free_at { Decision::Take } else { Decision::WaitUntil(free_at) }
            }
        }
    }

    /// The record to write when we take or renew.
    pub(super) fn next(&self, identity: &str, duration: Duration, wall: Timestamp) -> LeaseSpec {
        let renews = self.holder() == Some(identity);
        let transitions = self.spec.lease_transitions.unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(identity.to_owned()),
            lease_duration_seconds: Some(whole_seconds(duration)),
            acquire_time: if renews { self.spec.acquire_time.clone() } else { Some(wall.into()) },
            renew_time: Some(wall.into()),
            lease_transitions: Some(if renews { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }

    /// The record to write when we let go: no holder, so that the next candidate need not wait.
    pub(super) fn released(&self, wall: Timestamp) -> LeaseSpec {
        LeaseSpec {
            holder_identity: None,
            lease_duration_seconds: Some(1),
            acquire_time: Some(wall.into()),
            renew_time: Some(wall.into()),
            lease_transitions: self.spec.lease_transitions,
            ..LeaseSpec::default()
        }
    }
}

/// The record of a lease without an earlier holder.
pub(super) fn first(identity: &str, duration: Duration, wall: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(whole_seconds(duration)),
        acquire_time: Some(wall.into()),
        renew_time: Some(wall.into()),
        lease_transitions: Some(0),
        ..LeaseSpec::default()
    }
}

/// A merge patch that writes `spec` if the Lease is still at `resource_version`. A patch rather than an update:
/// fields which this version of the types does not know stay as they are.
pub(super) fn patch(spec: &LeaseSpec, resource_version: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "resourceVersion": resource_version },
        "spec": {
            // Absent and null differ in a merge patch: a released lease must lose its holder.
            "holderIdentity": spec.holder_identity,
            "leaseDurationSeconds": spec.lease_duration_seconds,
            "acquireTime": spec.acquire_time,
            "renewTime": spec.renew_time,
            "leaseTransitions": spec.lease_transitions,
        },
    })
}

fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn lease(holder: &str, renewed: &str) -> Lease {
        Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                renew_time: Some(renewed.parse::<Timestamp>().expect("a time").into()),
                lease_transitions: Some(3),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        }
    }

    #[test]
    fn only_silence_by_our_own_clock_frees_the_lease() {
        let start = Instant::now();
        // The holder's clock is decades off, in either direction: it does not matter.
        for renewed in ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"] {
            let seen = Observation::update(None, lease("other", renewed), start);
            let later = start + DURATION - Duration::from_millis(1);
            assert_eq!(seen.decide("us", DURATION, later), Decision::WaitUntil(start + DURATION));
            let again = Observation::update(Some(seen), lease("other", renewed), later);
            assert_eq!(again.decide("us", DURATION, start + DURATION), Decision::Take);
        }
    }

    #[test]
    fn a_renewal_starts_the_wait_again_and_a_label_does_not() {
        let start = Instant::now();
        let later = start + Duration::from_secs(10);
        let seen = Observation::update(None, lease("other", "2026-01-01T00:00:00Z"), start);
        let renewed = Observation::update(Some(seen.clone()), lease("other", "2026-01-01T00:00:01Z"), later);
        assert_eq!(renewed.decide("us", DURATION, start + DURATION), Decision::WaitUntil(later + DURATION));

        let mut labelled = lease("other", "2026-01-01T00:00:00Z");
        labelled.metadata.resource_version = Some("9".into());
        let labelled = Observation::update(Some(seen), labelled, later);
        assert_eq!(labelled.decide("us", DURATION, start + DURATION), Decision::Take);
        assert_eq!(labelled.resource_version, "9");
    }

    #[test]
    fn a_released_or_our_own_lease_needs_no_wait() {
        let start = Instant::now();
        for holder in ["", "us"] {
            let seen = Observation::update(None, lease(holder, "2026-01-01T00:00:00Z"), start);
            let expected = if holder.is_empty() { Decision::Take } else { Decision::Renew };
            assert_eq!(seen.decide("us", DURATION, start), expected);
        }
    }

    #[test]
    fn taking_over_counts_a_transition_and_renewing_does_not() {
        let wall: Timestamp = "2026-05-05T00:00:00Z".parse().expect("a time");
        let other = Observation::update(None, lease("other", "2026-01-01T00:00:00Z"), Instant::now());
        let taken = other.next("us", DURATION, wall);
        assert_eq!((taken.lease_transitions, taken.acquire_time), (Some(4), Some(wall.into())));

        let ours = Observation::update(None, lease("us", "2026-01-01T00:00:00Z"), Instant::now());
        let renewed = ours.next("us", DURATION, wall);
        assert_eq!((renewed.lease_transitions, renewed.acquire_time), (Some(3), None));
        assert_eq!(renewed.renew_time, Some(wall.into()));
    }

    #[test]
    fn a_holders_own_duration_counts_and_a_missing_one_is_replaced() {
        let start = Instant::now();
        let mut long = lease("other", "2026-01-01T00:00:00Z");
        long.spec.as_mut().expect("a spec").lease_duration_seconds = Some(60);
        let seen = Observation::update(None, long.clone(), start);
        assert_eq!(
            seen.decide("us", DURATION, start + DURATION),
            Decision::WaitUntil(start + Duration::from_mins(1))
        );
        long.spec.as_mut().expect("a spec").lease_duration_seconds = None;
        let seen = Observation::update(None, long, start);
        assert_eq!(seen.decide("us", DURATION, start + DURATION), Decision::Take);
    }
}

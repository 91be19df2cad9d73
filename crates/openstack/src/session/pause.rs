//! Decides when a session does not call its cloud.
//!
//! There are two reasons. A `Retry-After` of a service is for all users of these credentials, so all calls of the
//! session wait, to all services. And a service that did not answer several times in a row is most likely away: its
//! calls are refused for pauses that grow, and after each a single call tests it, because a queue of calls that each
//! take their whole time limit delays all others. Reads and writes are recorded apart, for each service: a Nova that
//! lists but does not create must not look healthy.
//!
//! Nothing sleeps here: a call during a pause fails at once, with the time that is left. Logins are recorded apart.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Call, Error, RefusalKind, Service, Verb};

/// The longest that a service can silence a session: services do not ask for more, and a wrong number must not end it
/// for good.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// So many failures in a row: more than one read that is repeated.
const SERIES: u32 = 5;
/// The first pause after a series; doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// A cloud that is back is noticed after this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Pauses(Mutex<State>);

#[derive(Default)]
struct State {
    /// What a service asked for.
    asked: Option<Pause>,
    /// By service, and whether it is about writes.
    series: BTreeMap<(Service, bool), FailureSeries>,
}

struct Pause {
    cause: Error,
    until: Instant,
}

#[derive(Default)]
struct FailureSeries {
    /// Failures in a row.
    failures: u32,
    /// Pauses in a row.
    pauses: u32,
    pause: Option<Pause>,
    is_probed: bool,
}

impl Pause {
    fn told(&self, call: &Call, now: Instant) -> Error {
        self.cause.paused(call, self.until.saturating_duration_since(now).max(FIRST_PAUSE / 2))
    }
}

impl FailureSeries {
    fn failed(&mut self, cause: &Error, now: Instant) {
        self.failures += 1;
        // Calls that were under way when the pause began fail too, and say nothing new.
        let is_waiting = self.pause.as_ref().is_some_and(|pause| pause.until > now);
        if self.failures < SERIES || is_waiting {
            return;
        }
        let length = FIRST_PAUSE.saturating_mul(1 << self.pauses.min(16)).min(LONGEST_PAUSE);
        self.pauses += 1;
        self.pause = Some(Pause { cause: cause.clone(), until: now + length });
    }
}

impl Pauses {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call go ahead, or says why it must wait.
    pub(super) fn admit(&self, call: &Call) -> Result<Permit<'_>, Error> {
        let (mut state, now) = (self.state(), Instant::now());
        if let Some(asked) = state.asked.as_ref().filter(|asked| asked.until > now) {
            return Err(asked.told(call, now));
        }
        let key = (call.service, call.verb.is_write());
        let series = state.series.entry(key).or_default();
        if let Some(pause) = &series.pause {
            if series.is_probed || pause.until > now {
                return Err(pause.told(call, now));
            }
            series.is_probed = true;
        }
        Ok(Permit { pauses: self, key, is_probe: series.is_probed })
    }
}

/// The right to send one call. Dropped without a result, it says nothing about the service.
pub(super) struct Permit<'a> {
    pauses: &'a Pauses,
    key: (Service, bool),
    is_probe: bool,
}

impl Permit<'_> {
    /// Notes what came of the call.
    pub(super) fn settle(self, error: Option<&Error>) {
        let now = Instant::now();
        let mut state = self.pauses.state();
        if let Some(error) = error
            && let Some(asked) = asked(error)
        {
            let until = now + asked.min(LONGEST_ASKED);
            if state.asked.as_ref().is_none_or(|pause| pause.until < until) {
                state.asked = Some(Pause { cause: error.clone(), until });
            }
        }
        let series = state.series.entry(self.key).or_default();
        match error {
            Some(error) if !says_something(error) => {}
            Some(error) if is_absence(error) => series.failed(error, now),
            _ => *series = FailureSeries::default(),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(series) = self.pauses.state().series.get_mut(&self.key)
        {
            series.is_probed = false;
        }
    }
}

fn asked(error: &Error) -> Option<Duration> {
    let refusal = error.refusal()?;
    let is_about_load = matches!(refusal.kind, RefusalKind::RateLimited | RefusalKind::Unavailable);
    error.retry_after().filter(|asked| is_about_load && !asked.is_zero())
}

/// Whether it is about the service that was called: a failed login and a gate are not.
fn says_something(error: &Error) -> bool {
    let is_login = error.call().is_none_or(|call| call.verb == Verb::Authenticate);
    !is_login && !matches!(error, Error::Stopped { .. } | Error::Paused { .. })
}

/// Whether the service was away: no connection, no answer, or a proxy that reports it.
fn is_absence(error: &Error) -> bool {
    match error {
        Error::Unreached { .. } | Error::Lost { .. } | Error::TimedOut { .. } => true,
        Error::Refused(refusal) => matches!(refusal.status, 502..=504),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

//! Decides from real calls whether a tenant's API server answers, with one record for reads and one for writes.
//!
//! There are two records because the two fail apart: a webhook that never answers holds up every write while reads are
//! quick, and each read would clear a common record.
//!
//! Invariants
//! - After some failures in a row a side is paused. The pause grows with each pause, not with the number of calls that
//!   were under way when it began.
//! - After the pause one call goes through and decides; the others are refused until it has ended, or its time is over
//!   (a caller may drop it).
//! - Calls that were sent before the pause began do not count after it.
//! - A server that names a time to come back (429 or 503 with Retry-After) pauses both sides at once for that time.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    backoff::Backoff,
    call::{Answer, Call, CallGate, Delivery},
};

/// No server can keep us away longer by asking.
const WAIT_LIMIT: Duration = Duration::from_mins(5);
/// A server error that took this long held a worker for as long: webhooks that time out end like this.
const SLOW: Duration = Duration::from_secs(1);

/// What is known about a tenant's API server, from real calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It was not called yet.
    #[default]
    Unknown,
    /// The last call was answered.
    Answering,
    Failing {
        /// Unreachable calls in a row.
        failures: u32,
        /// What the last one said.
        why: String,
        since: Instant,
        /// Not called before this moment.
        retry_at: Option<Instant>,
    },
}

/// The record of one client; a gate of it.
pub(super) struct Breaker {
    reads: Mutex<Side>,
    writes: Mutex<Side>,
    /// The last sign of life: an answer that was no refusal, or something on a watch.
    heard: Mutex<Option<Instant>>,
    failures: u32,
    backoff: Backoff,
    /// A call that is not answered within this time was dropped by its caller.
    probe_limit: Duration,
}

#[derive(Default)]
struct Side {
    health: Health,
    /// Pauses since the last answer.
    pauses: u32,
    /// While the one call after a pause is under way.
    probe_ends: Option<Instant>,
}

impl Breaker {
    pub(super) fn new(failures: u32, backoff: Backoff, call_limit: Duration) -> Self {
        let probe_limit = call_limit.saturating_mul(2);
        let (reads, writes, heard) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { reads, writes, heard, failures, backoff, probe_limit }
    }

    /// How long ago there was a sign of life, if no call has failed since.
    pub(super) fn silent_for(&self) -> Option<Duration> {
        let is_answering = side(&self.reads).health == Health::Answering;
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.filter(|_| is_answering).map(|at| at.elapsed())
    }

    /// The worse of both sides.
    pub(super) fn health(&self) -> Health {
        let (reads, writes) = (side(&self.reads).health.clone(), side(&self.writes).health.clone());
        if badness(&writes) > badness(&reads) { writes } else { reads }
    }

    /// Why no such call would be sent now, and for how long.
    pub(super) fn closed(&self, is_write: bool) -> Option<(String, Duration)> {
        let side = self.of(is_write);
        let now = Instant::now();
        let until = side.closed_until(now)?;
        match &side.health {
            Health::Failing { why, .. } => Some((why.clone(), until.duration_since(now))),
            _ => None,
        }
    }

    fn of(&self, is_write: bool) -> MutexGuard<'_, Side> {
        side(if is_write { &self.writes } else { &self.reads })
    }
}

fn side(side: &Mutex<Side>) -> MutexGuard<'_, Side> {
    side.lock().unwrap_or_else(PoisonError::into_inner)
}

fn badness(health: &Health) -> u8 {
    match health {
        Health::Unknown => 0,
        Health::Answering => 1,
        Health::Failing { retry_at: None, .. } => 2,
        Health::Failing { retry_at: Some(_), .. } => 3,
    }
}

impl Side {
    fn pause_ends(&self) -> Option<Instant> {
        match &self.health {
            Health::Failing { retry_at, .. } => *retry_at,
            _ => None,
        }
    }

    fn closed_until(&self, now: Instant) -> Option<Instant> {
        let pause_ends = self.pause_ends()?;
        if pause_ends > now { Some(pause_ends) } else { self.probe_ends.filter(|end| *end > now) }
    }

    /// Whether a call was sent before the present pause.
    fn is_late(&self, started: Instant) -> bool {
        self.pause_ends().is_some_and(|end| started < end)
    }

    fn answered(&mut self, started: Instant) {
        if !self.is_late(started) {
            *self = Self { health: Health::Answering, ..Self::default() };
        }
    }

    fn failed(&mut self, started: Instant, why: String, breaker: &Breaker) {
        if self.is_late(started) {
            return;
        }
        let was_paused = self.pause_ends().is_some();
        let (failures, since) = self.failures();
        let failures = failures.saturating_add(1);
        let mut retry_at = None;
        if was_paused || failures >= breaker.failures {
            self.pauses = self.pauses.saturating_add(1);
            retry_at = Some(Instant::now() + breaker.backoff.delay(self.pauses));
        }
        self.probe_ends = None;
        self.health = Health::Failing { failures, why, since, retry_at };
    }

    fn told_to_wait(&mut self, length: Duration, why: String) {
        let (failures, since) = self.failures();
        let until = Instant::now() + length;
        let retry_at = Some(self.pause_ends().map_or(until, |end| end.max(until)));
        self.probe_ends = None;
        self.health = Health::Failing { failures, why, since, retry_at };
    }

    fn failures(&self) -> (u32, Instant) {
        match &self.health {
            Health::Failing { failures, since, .. } => (*failures, *since),
            _ => (0, Instant::now()),
        }
    }
}

impl CallGate for Breaker {
    fn before(&self, call: &Call) -> Result<(), &'static str> {
        // Clients that were handed out before are held back too.
        let mut side = self.of(call.verb.is_write());
        let now = Instant::now();
        if side.closed_until(now).is_some() {
            return Err("the tenant is unavailable");
        }
        side.probe_ends = side.pause_ends().map(|_| now + self.probe_limit);
        Ok(())
    }

    fn after(&self, call: &Call, answer: Answer, took: Duration) -> Delivery {
        let why = match answer {
            Answer::Status(status) if matches!(status.as_u16(), 502..=504) => {
                Some(format!("{call}: the load balancer says {}", status.as_u16()))
            }
            Answer::Status(status) if status.is_server_error() && took >= SLOW => {
                Some(format!("{call}: {} after {} s", status.as_u16(), took.as_secs()))
            }
            Answer::Status(_) => None,
            Answer::Disconnected => Some(format!("{call}: cannot connect")),
            Answer::TimedOut => Some(format!("{call}: no answer in time")),
            Answer::TooLarge => Some(format!("{call}: the answer is too large")),
            // Others are the reason: it says nothing about this one.
            Answer::NoRoom => return Delivery::Deliver,
        };
        let mut side = self.of(call.verb.is_write());
        // Never earlier than it was: the call after a pause is not taken for one from before it.
        let started = Instant::now().checked_sub(took).unwrap_or_else(Instant::now);
        match why {
            Some(why) => side.failed(started, why, self),
            None => side.answered(started),
        }
        drop(side);
        if answer.is_success() {
            CallGate::heard(self);
        }
        Delivery::Deliver
    }

    fn heard(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn told_to_wait(&self, call: &Call, length: Duration) {
        // A refused eviction is about a disruption budget, not about the server.
        if length.is_zero() || call.resource == "pods/eviction" {
            return;
        }
        let length = length.min(WAIT_LIMIT);
        let why = format!("{call}: the server asks for {} s without calls", length.as_secs());
        side(&self.reads).told_to_wait(length, why.clone());
        side(&self.writes).told_to_wait(length, why);
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::call::Verb;

    fn breaker() -> Breaker {
        let backoff = Backoff { first: Duration::from_secs(2), jitter: 0.0, ..Backoff::default() };
        Breaker::new(3, backoff, Duration::from_secs(5))
    }

    fn call(verb: Verb, resource: &str) -> Call {
        Call { verb, resource: resource.to_owned(), namespace: None, name: None, is_dry_run: false }
    }

    /// Sends a call that ends like this after so many seconds; false when it was not let through.
    async fn sends(breaker: &Breaker, verb: Verb, answer: Answer, seconds: u64) -> bool {
        let call = call(verb, "nodes");
        if breaker.before(&call).is_err() {
            return false;
        }
        let length = Duration::from_secs(seconds);
        tokio::time::advance(length).await;
        breaker.after(&call, answer, length);
        true
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    const FINE: Answer = Answer::Status(StatusCode::OK);

    #[tokio::test(start_paused = true)]
    async fn writes_that_hang_close_writes_for_longer_each_time_though_reads_answer() {
        let breaker = breaker();
        for _ in 0..3 {
            assert!(sends(&breaker, Verb::Patch, Answer::TimedOut, 5).await);
            assert!(sends(&breaker, Verb::Get, FINE, 0).await);
        }
        for pause in [2, 4, 8] {
            assert_eq!(breaker.closed(true).unwrap().1, Duration::from_secs(pause));
            assert!(breaker.closed(false).is_none() && sends(&breaker, Verb::Get, FINE, 0).await);
            assert!(!sends(&breaker, Verb::Patch, FINE, 0).await);
            pass(pause).await;
            assert!(sends(&breaker, Verb::Patch, Answer::TimedOut, 5).await);
        }
        assert!(matches!(breaker.health(), Health::Failing { failures: 6, retry_at: Some(_), .. }));
        pass(16).await;
        assert!(sends(&breaker, Verb::Patch, FINE, 0).await);
        assert_eq!(breaker.health(), Health::Answering);
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_fail_leave_writes_alone() {
        let breaker = breaker();
        for _ in 0..3 {
            assert!(sends(&breaker, Verb::List, Answer::Disconnected, 0).await);
            assert!(sends(&breaker, Verb::Apply, FINE, 0).await);
        }
        assert!(breaker.closed(false).is_some() && breaker.closed(true).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_finds_out_and_the_others_wait_for_it() {
        let breaker = breaker();
        for _ in 0..3 {
            assert!(sends(&breaker, Verb::Get, Answer::TimedOut, 5).await);
        }
        pass(2).await;
        let probe = call(Verb::Get, "nodes");
        assert!(breaker.before(&probe).is_ok());
        assert!(breaker.before(&probe).is_err() && breaker.closed(false).is_some());
        // Dropped by its caller: the next one finds out.
        pass(10).await;
        assert!(breaker.before(&probe).is_ok() && breaker.before(&probe).is_err());
        breaker.after(&probe, FINE, Duration::ZERO);
        assert!(breaker.before(&probe).is_ok() && breaker.before(&probe).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_were_under_way_neither_lengthen_a_pause_nor_end_it() {
        let breaker = breaker();
        let under_way = call(Verb::Get, "nodes");
        for _ in 0..10 {
            assert!(breaker.before(&under_way).is_ok());
        }
        pass(5).await;
        for _ in 0..9 {
            breaker.after(&under_way, Answer::TimedOut, Duration::from_secs(5));
        }
        breaker.after(&under_way, FINE, Duration::from_secs(5));
        assert_eq!(breaker.closed(false).unwrap().1, Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_names_a_time_is_left_alone_until_then_and_no_longer_than_minutes() {
        let breaker = breaker();
        let busy = call(Verb::Get, "nodes");
        assert!(breaker.before(&busy).is_ok());
        breaker.told_to_wait(&busy, Duration::from_secs(30));
        breaker.after(&busy, Answer::Status(StatusCode::TOO_MANY_REQUESTS), Duration::ZERO);
        for is_write in [false, true] {
            let (why, length) = breaker.closed(is_write).unwrap();
            assert_eq!(length, Duration::from_secs(30));
            assert_eq!(why, "get nodes: the server asks for 30 s without calls");
        }
        pass(30).await;
        assert!(sends(&breaker, Verb::Get, FINE, 0).await);
        breaker.told_to_wait(&busy, Duration::from_hours(9));
        assert_eq!(breaker.closed(true).unwrap().1, WAIT_LIMIT);
        pass(300).await;
        assert!(sends(&breaker, Verb::Get, FINE, 0).await);
        breaker.told_to_wait(&call(Verb::Create, "pods/eviction"), Duration::from_secs(10));
        assert!(breaker.closed(false).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_server_errors_are_failures_and_quick_ones_are_answers() {
        let breaker = breaker();
        let broken = Answer::Status(StatusCode::INTERNAL_SERVER_ERROR);
        for _ in 0..3 {
            assert!(sends(&breaker, Verb::Patch, broken, 0).await);
        }
        assert_eq!(breaker.health(), Health::Answering);
        for _ in 0..3 {
            assert!(sends(&breaker, Verb::Patch, broken, 3).await);
        }
        assert!(breaker.closed(true).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn answers_and_watches_are_signs_of_life_until_a_read_fails() {
        let breaker = breaker();
        assert_eq!(breaker.silent_for(), None);
        assert!(sends(&breaker, Verb::Get, FINE, 0).await);
        pass(60).await;
        assert_eq!(breaker.silent_for(), Some(Duration::from_secs(60)));
        breaker.heard();
        assert_eq!(breaker.silent_for(), Some(Duration::ZERO));
        pass(10).await;
        let denied = Answer::Status(StatusCode::UNAUTHORIZED);
        assert!(sends(&breaker, Verb::Get, denied, 0).await);
        assert_eq!(breaker.silent_for(), Some(Duration::from_secs(10)), "a refusal is no sign");
        assert!(sends(&breaker, Verb::Get, Answer::Disconnected, 0).await);
        assert_eq!(breaker.silent_for(), None);
    }
}

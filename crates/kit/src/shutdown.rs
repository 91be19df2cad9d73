//! Stops a process in order: signals become a token, and a sequence of steps runs before the process ends.
//!
//! The first SIGTERM or SIGINT asks to stop; a second one ends the process at once. The order matters: first nothing
//! new is accepted, then running work ends, then the lease is released (never while something may still write), and
//! telemetry is sent last.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Exit status of a process that a signal ended, as shells report it: 128 and the number of SIGTERM.
const EXIT_TERMINATED: i32 = 143;

/// Turns the first SIGTERM or SIGINT into a cancelled token; the second ends the process. Needs a runtime.
pub fn on_signal() -> std::io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn({
        let stop = stop.clone();
        async move {
            let mut next = async || {
                tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                }
            };
            let first = next().await;
            tracing::info!(signal = first, "stopping");
            stop.cancel();
            let second = next().await;
            tracing::warn!(signal = second, "second signal: ending at once");
            std::process::exit(EXIT_TERMINATED);
        }
    });
    Ok(stop)
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopResult {
    /// It ended in time.
    Done,
    /// It was abandoned when its time was over.
    Overran,
}

type Work<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

struct StopStep<'a> {
    name: &'static str,
    limit: Duration,
    work: Work<'a>,
}

/// Steps that run one after the other, within a deadline for all of them.
#[derive(Default)]
pub struct StopSequence<'a> {
    steps: Vec<StopStep<'a>>,
}

impl std::fmt::Debug for StopSequence<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.steps.iter().map(|step| step.name)).finish()
    }
}

impl<'a> StopSequence<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// A step that runs in any case, for `limit` at most.
    #[must_use]
    pub fn step(
        mut self,
        name: &'static str,
        limit: Duration,
        work: impl Future<Output = ()> + Send + 'a,
    ) -> Self {
        self.steps.push(StopStep { name, limit, work: Box::pin(work) });
        self
    }

    /// Runs the steps. No step takes the time that later ones may need: their limits are set aside, unless that
    /// would leave it less than an equal share.
    pub async fn run(self, total: Duration) -> Vec<(&'static str, StopResult)> {
        let end = Instant::now() + total;
        let mut results = Vec::with_capacity(self.steps.len());
        let mut set_aside: Duration = self.steps.iter().map(|step| step.limit).sum();
        let mut left = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        for step in self.steps {
            set_aside = set_aside.saturating_sub(step.limit);
            let remaining = end.saturating_duration_since(Instant::now());
            let limit = step.limit.min(remaining.saturating_sub(set_aside).max(remaining / left));
            left = left.saturating_sub(1).max(1);
            let is_done = tokio::time::timeout(limit, step.work).await.is_ok();
            let result = if is_done { StopResult::Done } else { StopResult::Overran };
            tracing::info!(step = step.name, ?result, "stopping");
            results.push((step.name, result));
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Mutex;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn steps_run_in_order() {
        let order = Mutex::new(Vec::new());
        let note = |name| {
            order.lock().expect("a lock").push(name);
            ready(())
        };
        let results = StopSequence::new()
            .step("webhook", SECOND, async { note("webhook").await })
            .step("controllers", SECOND, async { note("controllers").await })
            .step("lease", SECOND, async { note("lease").await })
            .run(10 * SECOND)
            .await;
        assert_eq!(*order.lock().expect("a lock"), ["webhook", "controllers", "lease"]);
        assert!(results.iter().all(|(_, result)| *result == StopResult::Done));
    }

    #[tokio::test(start_paused = true)]
    async fn telemetry_is_still_sent_when_work_was_abandoned() {
        let started = Instant::now();
        let results = StopSequence::new()
            .step("controllers", 20 * SECOND, pending())
            .step("lease", 3 * SECOND, ready(()))
            .step("telemetry", 5 * SECOND, tokio::time::sleep(4 * SECOND))
            .run(25 * SECOND)
            .await;
        assert_eq!(
            results,
            [
                ("controllers", StopResult::Overran),
                ("lease", StopResult::Done),
                ("telemetry", StopResult::Done)
            ]
        );
        assert!(started.elapsed() <= 25 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_holds_when_every_step_hangs() {
        let started = Instant::now();
        let results = StopSequence::new()
            .step("a", 60 * SECOND, pending())
            .step("b", 60 * SECOND, pending())
            .step("c", 60 * SECOND, pending())
            .run(30 * SECOND)
            .await;
        assert!(results.iter().all(|(_, result)| *result == StopResult::Overran));
        assert!(started.elapsed() <= 31 * SECOND, "{:?}", started.elapsed());
    }
}

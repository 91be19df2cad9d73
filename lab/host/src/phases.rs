//! Runs phases: reports their progress, and adds the phase, the log and the likely fix to an error.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, PhaseError, Result};
use crate::lock;
use crate::one_host::OneHost;
use crate::progress::{Phase, Progress};

/// What came of a phase.
pub(crate) struct Done<T> {
    pub(crate) value: T,
    /// A short message for users.
    pub(crate) outcome: String,
    /// Whether anything was made or changed.
    pub(crate) changed: bool,
}

impl<T> Done<T> {
    pub(crate) fn new(value: T, outcome: impl Into<String>, changed: bool) -> Self {
        Self { value, outcome: outcome.into(), changed }
    }
}

/// Runs phases and remembers whether one changed something.
pub(crate) struct Runner {
    progress: Arc<dyn Progress>,
    /// Where to read more, by phase.
    log: Box<dyn Fn(Phase) -> Option<PathBuf> + Send + Sync>,
    changed: AtomicBool,
}

impl Runner {
    pub(crate) fn new(
        progress: Arc<dyn Progress>,
        log: impl Fn(Phase) -> Option<PathBuf> + Send + Sync + 'static,
    ) -> Self {
        Self { progress, log: Box::new(log), changed: AtomicBool::new(false) }
    }

    /// Whether a phase so far changed something.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Runs a phase. Several may run side by side.
    pub(crate) async fn run<T>(
        &self,
        phase: Phase,
        work: impl Future<Output = Result<Done<T>>>,
    ) -> Result<T> {
        let started = Instant::now();
        self.progress.started(phase);
        match work.await {
            Ok(done) => {
                self.changed.fetch_or(done.changed, Ordering::Relaxed);
                self.progress.done(phase, started.elapsed(), &done.outcome);
                Ok(done.value)
            }
            Err(cause) => {
                let fix = cause.likely_fix();
                let log = (self.log)(phase).filter(|path| path.exists());
                let error = Error::Phase(Box::new(PhaseError { phase, cause, log, fix }));
                self.progress.failed(phase, started.elapsed(), &error);
                Err(error)
            }
        }
    }
}

/// Others get this long to finish what they do.
const PATIENCE: Duration = Duration::from_secs(10);

impl OneHost {
    /// Makes sure that no other process changes the environment, as long as the value lives.
    pub(crate) async fn lock(&self) -> Result<Done<File>> {
        let directory = self.layout.directory().to_owned();
        let lock = blocking(move || lock::acquire(&directory, PATIENCE)).await?;
        Ok(Done::new(lock, "ours", false))
    }
}

/// Runs what blocks (processes, files, namespaces) where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::Program { program: "a phase".to_owned(), message: error.to_string() }),
        },
    }
}

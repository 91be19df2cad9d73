//! A manager in a runtime of its own, so that a test can kill it like a process.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hangar_kit::call::fault::Faults;
use hangar_kit::call::{Answer, Call, CallGate, Delivery, Verb};
use hangar_kit::client::{ClientOptions, client};
use kube::{Client, Config};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Failure;

/// Pause between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Tasks of a killed manager end at their next await; one that does not is left to its thread.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A whole manager: its main future, and how it says that it has nothing to do.
pub struct Manager {
    main: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_at_rest: Box<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Manager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Manager").finish_non_exhaustive()
    }
}

impl Manager {
    /// `main` runs until it is dropped. `is_at_rest` is true once everything was looked at and nothing is to be done:
    /// never before the first look, and not between two steps.
    pub fn new(
        main: impl Future<Output = ()> + Send + 'static,
        is_at_rest: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { main: Box::pin(main), is_at_rest: Box::new(is_at_rest) }
    }
}

/// A running manager.
pub(super) struct Process {
    runtime: Option<Runtime>,
    main: JoinHandle<()>,
    is_at_rest: Box<dyn Fn() -> bool + Send + Sync>,
    faults: Faults,
    calls: Arc<AtomicUsize>,
    /// How many calls there were when it was last seen to come to rest, and since when.
    resting: Option<(usize, Instant)>,
}

/// Counts what may be a sign of life. Watches are opened again and again without end.
struct Count(Arc<AtomicUsize>);

impl CallGate for Count {
    fn after(&self, call: &Call, _answer: Answer, _took: Duration) -> Delivery {
        if call.verb != Verb::Watch {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Delivery::Deliver
    }
}

impl Process {
    pub(super) fn start(
        config: &Config,
        faults: &Faults,
        build: impl FnOnce(Client) -> Manager,
    ) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("manager")
            .enable_all()
            .build()
            .map_err(Failure::Runtime)?;
        let calls = Arc::new(AtomicUsize::new(0));
        let options = ClientOptions::default().gate(faults.clone()).gate(Count(Arc::clone(&calls)));
        let built = {
            let _inside = runtime.enter();
            client(config.clone(), &options).map(build)
        };
        match built {
            Ok(manager) => Ok(Self {
                main: runtime.spawn(manager.main),
                runtime: Some(runtime),
                is_at_rest: manager.is_at_rest,
                faults: faults.clone(),
                calls,
                resting: None,
            }),
            Err(error) => {
                // Dropping a runtime inside another one is forbidden.
                runtime.shutdown_background();
                Err(Failure::Client(Box::new(error)))
            }
        }
    }

    /// Returns when it has rested for that long.
    pub(super) async fn rest(
        &mut self,
        during: &str,
        length: Duration,
        deadline: Instant,
    ) -> Result<(), Failure> {
        while self.look(during, deadline).await?.is_none_or(|rested| rested < length) {}
        Ok(())
    }

    /// Waits a moment, then returns for how long it has been at rest without a call, if it is.
    pub(super) async fn look(
        &mut self,
        during: &str,
        deadline: Instant,
    ) -> Result<Option<Duration>, Failure> {
        tokio::select! {
            ended = &mut self.main => {
                let how = ended.err().map_or("it returned".to_owned(), |error| error.to_string());
                return Err(Failure::Ended { during: during.to_owned(), how });
            }
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
        }
        let (now, calls) = (Instant::now(), self.calls.load(Ordering::SeqCst));
        match self.resting {
            _ if !(self.is_at_rest)() => self.resting = None,
            Some((before, since)) if before == calls => return Ok(Some(now.duration_since(since))),
            _ => self.resting = Some((calls, now)),
        }
        if now < deadline {
            return Ok(None);
        }
        let seen: Vec<String> = self.faults.points().iter().map(ToString::to_string).collect();
        Err(Failure::Restless { during: during.to_owned(), calls, seen: seen.join(", ") })
    }

    /// Ends it as a crash would: no call leaves it any more, and none of its tasks goes on.
    pub(super) async fn kill(mut self) {
        self.faults.kill();
        if let Some(runtime) = self.runtime.take() {
            let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(KILL_LIMIT));
            let _ = ended.await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.faults.kill();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

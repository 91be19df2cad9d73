//! The state that all calls and the engine share: the model behind one lock, held only for pure work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::fault::Faults;
use crate::model::Model;
use crate::store;

/// Calls that are remembered for tests. More would be a leak in a cloud that runs for weeks.
const REMEMBERED_CALLS: usize = 20_000;

/// A call that was answered, or cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallRecord {
    pub method: String,
    /// Its path and query.
    pub path: String,
    /// The status it was answered with; 0 where the connection was cut.
    pub status: u16,
    /// The id it was answered with.
    pub request_id: String,
}

pub(crate) struct State {
    pub(crate) model: Model,
    pub(crate) faults: Faults,
    pub(crate) calls: VecDeque<CallRecord>,
    /// What the model was, with the time until which: kept only while reads lag.
    past: VecDeque<(Timestamp, Model)>,
    /// Moves the clock for tests of what happens later.
    pub(crate) clock_offset: SignedDuration,
    generation: u64,
}

/// Which generation is on disk, or why none can be written.
#[derive(Clone, Debug, Default)]
struct Persisted {
    generation: u64,
    failure: Option<String>,
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) base_url: String,
    state: Mutex<State>,
    /// Something changed that the driver must know.
    pub(crate) changed: Notify,
    dirty: Notify,
    /// Calls that are being carried out.
    calls: Mutex<JoinSet<()>>,
    persisted: watch::Sender<Persisted>,
    /// Held while the state file is written, by the thread that does it: its caller may be gone.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl Shared {
    pub(crate) fn new(config: Config, base_url: String, model: Model) -> Self {
        let state = State {
            model,
            faults: Faults::default(),
            calls: VecDeque::new(),
            past: VecDeque::new(),
            clock_offset: SignedDuration::ZERO,
            generation: 0,
        };
        Self {
            config,
            base_url,
            state: Mutex::new(state),
            changed: Notify::new(),
            dirty: Notify::new(),
            calls: Mutex::default(),
            persisted: watch::Sender::new(Persisted::default()),
            writing: Arc::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held left a copy half changed, never the model itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries a call out, even if its client is gone; ends with the cloud.
    pub(crate) fn detach(&self, call: impl Future<Output = ()> + Send + 'static) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        while calls.try_join_next().is_some() {}
        calls.spawn(call);
    }

    /// Ends the calls that are being carried out.
    pub(crate) fn end_calls(&self) -> JoinSet<()> {
        let mut calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        calls.abort_all();
        calls
    }

    /// Waits until what was committed is on disk.
    pub(crate) async fn persisted(&self, generation: u64) -> Result<(), String> {
        if self.config.state_file.is_none() {
            return Ok(());
        }
        let mut receiver = self.persisted.subscribe();
        let reached = receiver.wait_for(|it| it.generation >= generation || it.failure.is_some()).await;
        match reached {
            Ok(it) if it.generation >= generation => Ok(()),
            Ok(it) => Err(it.failure.clone().unwrap_or_default()),
            Err(_) => Err("the cloud is shutting down".into()),
        }
    }

    /// Notifies all waiters that the model changed. Called with the lock held.
    pub(crate) fn commit(&self, state: &mut State) -> u64 {
        state.generation += 1;
        self.dirty.notify_one();
        self.changed.notify_one();
        state.generation
    }

    pub(crate) fn remember(&self, call: CallRecord) {
        let mut state = self.lock();
        if state.calls.len() == REMEMBERED_CALLS {
            state.calls.pop_front();
        }
        state.calls.push_back(call);
    }

    /// Writes the state file, if one is configured, on every change of the model, until shutdown.
    pub(crate) async fn keep_written(&self) {
        let Some(path) = self.config.state_file.clone() else { return std::future::pending().await };
        loop {
            self.dirty.notified().await;
            if let Err(failure) = self.write(path.clone()).await {
                tracing::error!(%failure, path = %path.display(), "state file not written");
                self.persisted.send_modify(|it| it.failure = Some(failure));
                // A full disk is not emptied by trying faster.
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                self.dirty.notify_one();
            }
        }
    }

    /// Writes the state file as it is now, after any write that still goes on.
    pub(crate) async fn write(&self, path: std::path::PathBuf) -> Result<(), String> {
        let writing = Arc::clone(&self.writing).lock_owned().await;
        let (generation, bytes) = {
            let state = self.lock();
            (state.generation, store::encode(&state.model))
        };
        let bytes = bytes.map_err(|error| error.to_string())?;
        let written = tokio::task::spawn_blocking(move || {
            let _writing = writing;
            store::replace(&path, &bytes)
        })
        .await;
        written.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        self.persisted.send_modify(|it| *it = Persisted { generation, failure: None });
        Ok(())
    }
}

impl State {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now() + self.clock_offset
    }

    /// Makes this the model.
    pub(crate) fn replace(&mut self, model: Model) {
        let now = self.now();
        let before = std::mem::replace(&mut self.model, model);
        let Some(longest) = self.faults.longest_lag() else { return self.past.clear() };
        self.past.retain(|(until, _)| *until > now - longest);
        self.past.push_back((now, before));
    }

    /// What the model was at that time, if it was another one.
    pub(crate) fn as_of(&self, time: Timestamp) -> Option<&Model> {
        self.past.iter().find(|(until, _)| *until > time).map(|(_, model)| model)
    }
}

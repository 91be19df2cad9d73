//! The loop between model and driver: topologies go to the driver, events come back.
//!
//! One task does both, so an event is folded while the driver still works, and the result of a pass is judged only
//! after all of its events are folded.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver};
use uuid::Uuid;

use crate::driver::{Driver, Event};
use crate::model::topology;
use crate::shared::Shared;

/// How soon a run that failed as a whole is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Sends every topology change to the driver until shutdown.
pub(crate) async fn run<D: Driver>(shared: Arc<Shared>, driver: Arc<D>) {
    let (sender, mut events) = mpsc::unbounded_channel();
    let every = Duration::from_secs(shared.config.realise_every_seconds.max(1));
    loop {
        let (topology, leaving, due) = {
            let mut state = shared.lock();
            let now = state.now();
            let is_bound = state.model.bind_ports(now);
            if state.model.fail_servers(now) || is_bound {
                shared.commit(&mut state);
            }
            let due = state.model.next_binding().map(|at| at.duration_since(now));
            let due = due.map_or(every, |due| Duration::try_from(due).unwrap_or_default().min(every));
            (topology(&state.model), state.model.leaving(), due)
        };
        let outcome = {
            let mut stuck = BTreeSet::new();
            let mut realise = pin!(driver.realise(&topology, &sender));
            let outcome = loop {
                tokio::select! {
                    biased;
                    Some(event) = events.recv() => fold(&shared, &event, &mut stuck),
                    outcome = &mut realise => break outcome,
                }
            };
            while let Ok(event) = events.try_recv() {
                fold(&shared, &event, &mut stuck);
            }
            outcome.map(|()| stuck)
        };
        let wait = match outcome {
            Ok(stuck) => {
                for id in leaving.into_iter().filter(|id| !stuck.contains(id)) {
                    fold(&shared, &Event::Gone(id), &mut BTreeSet::new());
                }
                due
            }
            Err(failure) => {
                tracing::warn!(%failure, "the driver could not apply the topology");
                AFTER_FAILURE
            }
        };
        idle(&shared, &mut events, wait).await;
    }
}

/// Folds events until there is something to realise.
async fn idle(shared: &Shared, events: &mut UnboundedReceiver<Event>, wait: Duration) {
    let mut timer = pin!(tokio::time::sleep(wait));
    loop {
        tokio::select! {
            Some(event) = events.recv() => fold(shared, &event, &mut BTreeSet::new()),
            () = shared.changed.notified() => return,
            () = &mut timer => return,
        }
    }
}

/// Folds one event; servers that failed are noted.
fn fold(shared: &Shared, event: &Event, failed: &mut BTreeSet<Uuid>) {
    if let Event::Failed(id, message) = event {
        tracing::warn!(server = %id, message, "server failed");
        failed.insert(*id);
    }
    let mut state = shared.lock();
    let now = state.now();
    if state.model.fold(event, now) {
        shared.commit(&mut state);
    }
}

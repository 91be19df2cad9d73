//! A driver without machines: it says what a real one would say. For tests and for trying the API.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use super::{Driver, Event};
use crate::topology::Topology;

/// Says that servers run, as soon as it hears of them or after a delay.
#[derive(Debug, Default)]
pub struct Record {
    delay: Duration,
    /// Whether each server that was seen should run.
    seen: Mutex<BTreeMap<Uuid, bool>>,
}

impl Record {
    /// Servers run at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Servers take this long to start.
    pub fn with_delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }
}

impl Driver for Record {
    async fn realise(&self, topology: &Topology, events: &UnboundedSender<Event>) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let say = |event: Event, delay: Duration| {
            let events = events.clone();
            // A closed channel means that nobody listens any more.
            if delay.is_zero() {
                drop(events.send(event));
                return;
            }
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                drop(events.send(event));
            });
        };
        for (id, server) in &topology.servers {
            match seen.insert(*id, server.runs) {
                before if before == Some(server.runs) => {}
                _ if server.runs => say(Event::Active(*id), self.delay),
                _ => say(Event::Stopped(*id), Duration::ZERO),
            }
        }
        seen.retain(|id, _| {
            let stays = topology.servers.contains_key(id);
            if !stays {
                say(Event::Gone(*id), Duration::ZERO);
            }
            stays
        });
        Ok(())
    }

    async fn console(&self, server: Uuid) -> String {
        format!("[    0.000000] {server}: recorded, not run\n")
    }
}

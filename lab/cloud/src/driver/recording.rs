//! A driver without machines: it sends the events that a real one would send. For tests and for trying the API.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use super::{Driver, Event};
use crate::topology::Topology;

/// Reports servers as running as soon as they are in the topology.
#[derive(Debug, Default)]
pub struct RecordingDriver {
    /// Whether each server that was seen should run.
    seen: Mutex<BTreeMap<Uuid, bool>>,
}

impl RecordingDriver {
    /// Servers run at once.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Driver for RecordingDriver {
    async fn realise(&self, topology: &Topology, events: &UnboundedSender<Event>) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // A closed channel means that nobody listens any more.
        let say = |event: Event| drop(events.send(event));
        for (id, server) in &topology.servers {
            match seen.insert(*id, server.runs) {
                before if before == Some(server.runs) => {}
                _ if server.runs => say(Event::Active(*id)),
                _ => say(Event::Stopped(*id)),
            }
        }
        seen.retain(|id, _| {
            let stays = topology.servers.contains_key(id);
            if !stays {
                say(Event::Gone(*id));
            }
            stays
        });
        Ok(())
    }

    async fn console(&self, server: Uuid) -> String {
        format!("[    0.000000] {server}: recorded, not run\n")
    }
}

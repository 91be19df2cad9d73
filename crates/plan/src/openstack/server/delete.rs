//! Plans the deletion of a server, and of its ports when the server is gone.

use std::time::Duration;

use super::{BUSY, Decided, ServerStep, Situation, State, Step, numbered};
use crate::flow::Read;
use crate::openstack::Server;

/// A server whose end was asked for and that did not change for this long is asked to go again.
const STUCK_AFTER: Duration = Duration::from_secs(5 * 60);
/// How often such a server is asked to go.
const STUCK: Duration = Duration::from_secs(60);

impl Situation<'_> {
    /// Takes away what carries the owner id; only that is in the facts.
    pub fn delete(&self) -> Decided {
        let visible = self.facts.visible();
        match &visible {
            Read::Unknown(unknown) => State::Unknown(unknown.why.clone()).into(),
            // A server that still came would be nobody's: a request is waited for.
            Read::Absent => {
                self.without_ports().or_else(|| self.unsettled()).unwrap_or_else(|| State::Gone.into())
            }
            servers => {
                let staying = servers.iter().enumerate();
                let staying = staying.filter(|(_, server)| !server.is_going || self.is_stuck(server));
                let again = if servers.iter().any(|server| self.is_stuck(server)) { STUCK } else { BUSY };
                let steps = staying.map(|(index, server)| {
                    let name = numbered(&self.wanted.name, index);
                    Step::Cloud(ServerStep::DeleteServer { name, id: server.id.clone() })
                });
                let state = State::Waiting { on: "the server to be gone".to_owned(), again };
                Decided { steps: steps.collect(), server: servers.iter().next().cloned(), ..state.into() }
            }
        }
    }

    /// Whether its end takes longer than any does: the host that was asked is gone, or forgot it. Nova takes the request a
    /// second time.
    fn is_stuck(&self, server: &Server) -> bool {
        let age = |updated| Duration::try_from(self.now.duration_since(updated)).unwrap_or_default();
        server.is_going && server.updated.is_some_and(|updated| age(updated) >= STUCK_AFTER)
    }

    /// Takes the ports away; none when none is left.
    pub(super) fn without_ports(&self) -> Option<Decided> {
        let mut steps = Vec::new();
        for (name, read) in &self.facts.ports {
            if let Read::Unknown(unknown) = read {
                return Some(State::Unknown(unknown.why.clone()).into());
            }
            steps.extend(read.iter().enumerate().map(|(index, port)| {
                let name = numbered(name, index);
                Step::Cloud(ServerStep::DeletePort { name, id: port.id.clone() })
            }));
        }
        (!steps.is_empty()).then(|| Decided { steps, ..State::Working("the ports to be gone").into() })
    }
}

//! Folds the events of a driver into the model. An event may come again; then it changes nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Model, ServerFault, Status};
use crate::driver::Event;

impl Model {
    /// Folds an event and says whether it changed anything.
    pub fn fold(&mut self, event: &Event, now: Timestamp) -> bool {
        let (Event::Active(id) | Event::Stopped(id) | Event::Failed(id, _) | Event::Gone(id)) = event;
        let Some(server) = self.servers.get_mut(id) else { return false };
        let next = match event {
            // Nothing is left of a server that should be there: the driver will make it again.
            Event::Gone(id) => return server.is_deleting && self.forget_server(*id),
            Event::Failed(_, message) => {
                let is_known = server.fault.as_ref().is_some_and(|fault| fault.message == *message);
                if !is_known {
                    server.fault = Some(ServerFault { message: message.clone(), created: now });
                } else if server.status == Status::Error {
                    return false;
                }
                Status::Error
            }
            Event::Active(_) if server.runs && !server.is_deleting => Status::Active,
            Event::Stopped(_) if server.is_restarting && !server.is_deleting => {
                // It has been rebooting since it was asked to; what is new is that it should run again.
                server.is_restarting = false;
                server.runs = true;
                return true;
            }
            Event::Stopped(_) if !server.runs && !server.is_deleting => Status::Shutoff,
            Event::Active(_) | Event::Stopped(_) => return false,
        };
        if server.status == next && next != Status::Error {
            return false;
        }
        server.status = next;
        server.updated = now;
        if next == Status::Active {
            server.fault = None;
            server.launched.get_or_insert(now);
        }
        let ports = server.ports.clone();
        for port in ports {
            if let Some(port) = self.ports.get_mut(&port) {
                port.is_active = next == Status::Active;
                port.standard.updated = now;
                port.standard.revision += 1;
            }
        }
        true
    }

    /// Lets servers take the ports that they were given, when it is time for it, and says whether there were any. One that
    /// comes too late fails.
    pub fn bind_ports(&mut self, now: Timestamp) -> bool {
        let due = self.servers.values().filter(|server| !server.is_deleting);
        let due = due
            .filter_map(|server| Some((server.binds_at.filter(|at| *at <= now)?, server.serial, server.id)));
        // Who was first has the port; ids are random.
        let due: BTreeSet<(Timestamp, u64, Uuid)> = due.collect();
        for (_, _, id) in &due {
            let Some(server) = self.servers.get_mut(id) else { continue };
            server.binds_at = None;
            let given: Vec<Uuid> =
                server.ports.iter().filter(|port| !server.own_ports.contains(port)).copied().collect();
            let obstacle = given.iter().find_map(|id| match self.ports.get(id) {
                None => Some(format!("Port id {id} could not be found.")),
                Some(port) => (!port.device_id.is_empty()).then(|| format!("Port {id} is still in use.")),
            });
            if obstacle.is_none() && server.fails_with.is_none() {
                for id in &given {
                    if let Some(port) = self.ports.get_mut(id) {
                        port.bind(server.id, &server.zone);
                    }
                }
            }
            server.fails_with = server.fails_with.take().or(obstacle);
        }
        !due.is_empty()
    }

    /// When the next server takes its ports.
    pub fn next_binding(&self) -> Option<Timestamp> {
        self.servers.values().filter(|server| !server.is_deleting).filter_map(|server| server.binds_at).min()
    }

    /// Fails the servers that are to fail, and returns whether there were any. Like Nova's, the clean-up of such a server
    /// frees the ports that it was given, even if another server has them now.
    pub fn fail_servers(&mut self, now: Timestamp) -> bool {
        let failing = self.servers.values().filter(|server| server.status == Status::Build);
        let failing: Vec<Event> =
            failing.filter_map(|server| Some(Event::Failed(server.id, server.fails_with.clone()?))).collect();
        for event in &failing {
            let Event::Failed(id, _) = event else { continue };
            let Some(server) = self.servers.get_mut(id) else { continue };
            server.binds_at = None;
            for port in server.ports.iter().filter(|port| !server.own_ports.contains(port)) {
                if let Some(port) = self.ports.get_mut(port) {
                    port.unbind();
                }
            }
        }
        // Each is folded, whatever came of the one before.
        failing.iter().filter(|event| self.fold(event, now)).count() > 0
    }

    /// Servers that are to go.
    pub fn leaving(&self) -> Vec<Uuid> {
        self.servers.values().filter(|server| server.is_deleting).map(|server| server.id).collect()
    }

    /// Removes a server with the ports that were made for it, and frees the others.
    fn forget_server(&mut self, id: Uuid) -> bool {
        let Some(server) = self.servers.remove(&id) else { return false };
        for port in server.own_ports {
            self.remove_port(port);
        }
        for port in server.ports {
            self.unbind_port(port);
        }
        true
    }

    /// Frees a port, so that something else may use it.
    pub(crate) fn unbind_port(&mut self, id: Uuid) {
        if let Some(port) = self.ports.get_mut(&id) {
            port.unbind();
        }
    }
}

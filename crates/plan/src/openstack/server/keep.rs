//! Plans the creation of a server, and reports its state once it exists.

use super::{
    BUSY, Decided, NewServer, Preflight, ServerStep, Situation, State, Step, numbered, preflight, request,
    union,
};
use crate::flow::Read;
use crate::openstack::{Picked, Port, Server, pick};

impl Situation<'_> {
    /// The server, if there is one; else the way to it.
    pub fn keep(&self) -> Decided {
        let mut ports = self.facts.ports.values().flat_map(Read::iter);
        let bound = ports.find(|port| !port.device_id.is_empty());
        let preferred = bound.map(|port| port.device_id.as_str().into()).or(self.recorded_id.clone());
        match pick(&self.facts.visible(), |server| &server.id, preferred.as_ref()) {
            Picked::Unknown(why) => State::Unknown(why).into(),
            Picked::One(server, extras) => self.seen(server, &extras),
            Picked::None if self.was_made => State::Gone.into(),
            Picked::None => match (bound, self.requested_at) {
                (Some(port), _) => {
                    let on = format!(
                        "the server {} on port {} to be listed by the cloud",
                        port.device_id, port.name
                    );
                    State::Waiting { on, again: BUSY }.into()
                }
                (None, Some(_)) => self.settle(),
                (None, None) => match &self.facts.preflight {
                    Some(found) => self.make(found),
                    None => State::Unknown("what it needs was not asked for".to_owned()).into(),
                },
            },
        }
    }

    /// All ports, and once they exist the server; duplicates that nobody uses are removed.
    fn make(&self, found: &Preflight) -> Decided {
        let resolved = match preflight::resolve(self.wanted, found) {
            Ok(resolved) => resolved,
            Err(state) => return state.into(),
        };
        let mut decided: Decided = State::Working("the ports to be made").into();
        decided.resolved = Some(resolved.recorded());
        let steps = &mut decided.steps;
        let mut port_ids = Vec::new();
        for wanted in &resolved.ports {
            let read = self.facts.ports.get(&wanted.name).cloned();
            let read = read.unwrap_or_else(|| Read::unknown("the port was not read"));
            let used = read.iter().find(|port| !port.device_id.is_empty()).map(|port| port.id.clone());
            match pick(&read, |port| &port.id, used.as_ref()) {
                Picked::Unknown(why) => {
                    decided.state = State::Unknown(why);
                    return decided;
                }
                Picked::None => steps.push(ServerStep::CreatePort(Box::new(wanted.clone())).into()),
                // Its network had no subnet; it has one now, or the server would not be asked for.
                Picked::One(port, _) if port.has_no_address && port.device_id.is_empty() => {
                    steps.push(delete_port(&wanted.name, 0, &port));
                }
                Picked::One(port, extras) => {
                    let extras = extras.iter().enumerate().filter(|(_, extra)| extra.device_id.is_empty());
                    steps.extend(extras.map(|(index, extra)| delete_port(&wanted.name, index + 1, extra)));
                    if !wanted.tags.iter().all(|tag| port.tags.contains(tag)) {
                        // The call replaces all tags; those that others set stay.
                        let tags = union(&[&port.tags, &wanted.tags]);
                        let (name, id) = (wanted.name.clone(), port.id.clone());
                        steps.push(ServerStep::TagPort { name, id, tags }.into());
                    }
                    port_ids.push(port.id);
                }
            }
        }
        let Read::One(user_data) = &found.user_data else { return decided };
        if port_ids.len() == resolved.ports.len() {
            let server = NewServer {
                name: self.wanted.name.clone(),
                image_id: resolved.image_id,
                flavor_id: resolved.flavor_id,
                server_group_id: resolved.server_group_id,
                port_ids: port_ids.clone(),
                user_data: user_data.clone(),
                metadata: self.wanted.metadata.clone(),
                tags: self.wanted.tags.clone(),
                key_name: self.wanted.key_name.clone(),
                config_drive: self.wanted.config_drive,
                availability_zone: self.wanted.availability_zone.clone(),
                scheduler_hints: self.wanted.scheduler_hints.clone(),
            };
            steps.push(ServerStep::CreateServer(Box::new(server)).into());
            decided.state = State::Working("the server to be made");
            decided.port_ids = port_ids;
        }
        decided
    }

    /// A server that exists.
    fn seen(&self, server: Server, extras: &[Server]) -> Decided {
        let mut steps = Vec::new();
        for (index, extra) in extras.iter().enumerate() {
            let name = numbered(&server.name, index + 1);
            steps.push(ServerStep::DeleteServer { name, id: extra.id.clone() }.into());
        }
        if self.requested_at.is_some() {
            steps.push(request::forget().into());
        }
        let is_bound = |port: &&Port| port.device_id == server.id.as_str();
        // Ports that came late, after others were made in their place: nobody uses them, and each costs an address. Only
        // beside one that the server has: until then it could be given any of them.
        for (name, read) in
            self.facts.ports.iter().filter(|(_, read)| read.iter().any(|port| is_bound(&port)))
        {
            let late = read.iter().filter(|port| port.device_id.is_empty()).enumerate();
            steps.extend(late.map(|(index, port)| delete_port(name, index + 1, port)));
        }
        let known = self.wanted.ports.iter().filter_map(|wanted| self.facts.ports.get(&wanted.name));
        let bound = known.flat_map(Read::iter).filter(is_bound);
        let port_ids = bound.map(|port| port.id.clone()).collect();
        // Known only in the pass that made the server.
        let found = self.facts.preflight.as_ref();
        let resolved = found.and_then(|found| Some(preflight::resolve(self.wanted, found).ok()?.recorded()));
        Decided { state: self.state(&server), steps, port_ids, resolved, server: Some(server) }
    }

    fn state(&self, server: &Server) -> State {
        match server.status.as_str() {
            "ACTIVE" => {
                let is_bound =
                    |read: &Read<Port>| read.iter().any(|port| port.device_id == server.id.as_str());
                match self.facts.ports.iter().find(|(_, read)| !is_bound(read)) {
                    Some((_, Read::Unknown(unknown))) => State::Unknown(unknown.why.clone()),
                    Some((name, _)) => State::Unbound(name.clone()),
                    None => State::Ready,
                }
            }
            "BUILD" | "" => State::Waiting { on: "the server to be built".to_owned(), again: BUSY },
            "ERROR" => {
                let fault = server.fault.clone();
                State::Failed(fault.unwrap_or_else(|| "the cloud gives no reason".to_owned()))
            }
            other => State::Inactive(other.to_owned()),
        }
    }
}

fn delete_port(name: &str, index: usize, port: &Port) -> Step {
    ServerStep::DeletePort { name: numbered(name, index), id: port.id.clone() }.into()
}

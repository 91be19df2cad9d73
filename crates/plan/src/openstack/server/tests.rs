//! A server of something other than an OpenStackMachine: it is created, runs and is deleted, whatever crashes.

use hangar_api::infrastructure::v1beta1::ImageParam;
use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::flow::crash::{World, sweep};
use crate::flow::{Frontier, Identified as _, Outcome, Read};
use crate::openstack::{Flavor, Image, Port, Request, SETTLING, carries_mark};

/// Whatever wants a server: it keeps a note and an end, and nothing else.
#[derive(Clone)]
struct Jump {
    wanted: WantedServer,
    requested_at: Option<Timestamp>,
    is_deleting: bool,
    is_gone: bool,
    now: Timestamp,
    ports: Vec<Port>,
    servers: Vec<Server>,
    next: u32,
}

struct Seen {
    facts: ServerFacts,
    requested_at: Option<Timestamp>,
    is_gone: bool,
}

fn jump() -> Jump {
    let port = |name: &str| WantedPort {
        name: name.to_owned(),
        network_id: Some("network-1".into()),
        ..WantedPort::default()
    };
    let image: ImageParam = serde_json::from_value(json!({ "filter": { "name": "debian" } })).unwrap();
    Jump {
        wanted: WantedServer {
            field: "spec.jump",
            name: "jump".to_owned(),
            owner_id: "owner-1".to_owned(),
            image,
            flavor_id: None,
            flavor: Some("tiny".to_owned()),
            server_group: None,
            ports: vec![port("jump-in"), port("jump-out")],
            security_groups: Vec::new(),
            metadata: [("role".to_owned(), "jump".to_owned())].into(),
            tags: Vec::new(),
            key_name: None,
            config_drive: None,
            availability_zone: None,
            scheduler_hints: [].into(),
        },
        requested_at: None,
        is_deleting: false,
        is_gone: false,
        now: "2026-03-01T12:00:00Z".parse().unwrap(),
        ports: Vec::new(),
        servers: Vec::new(),
        next: 0,
    }
}

fn needed() -> Preflight {
    let image = Image { id: "image-1".into(), status: "active".to_owned(), ..Image::default() };
    let port = PortFacts { has_subnet: Read::One(true), ..PortFacts::default() };
    Preflight {
        wanted: vec![port.clone(), port],
        image: Read::One(image),
        flavor: Read::One(Flavor { id: "flavor-1".into(), name: "tiny".to_owned() }),
        user_data: Read::One(UserData(b"#cloud-config".to_vec())),
        ..Preflight::default()
    }
}

impl Jump {
    fn decide(&self, seen: &Seen) -> Decided {
        let situation = Situation {
            wanted: &self.wanted,
            facts: &seen.facts,
            recorded_id: None,
            was_made: false,
            requested_at: seen.requested_at,
            settling: SETTLING,
            now: self.now,
        };
        if self.is_deleting { situation.delete() } else { situation.keep() }
    }

    /// Runs passes until nothing is left to do: the steps, and the states between.
    fn settle_all(&mut self) -> (Vec<String>, Vec<State>) {
        let (mut steps, mut states) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let mut seen = self.observe();
            let mut decided = self.decide(&seen);
            while let Some(step) = decided.steps.first() {
                let outcome = self.run(step);
                steps.push(step.id().to_string());
                self.fold(&mut seen, step, &outcome);
                decided = self.decide(&seen);
            }
            states.push(decided.state.clone());
            if matches!(decided.state, State::Ready | State::Gone) {
                return (steps, states);
            }
            self.settle();
        }
        panic!("never rests: {steps:#?} {states:#?}");
    }
}

impl World for Jump {
    type Observation = Seen;
    type Step = Step;
    type EndState = (Vec<(String, bool)>, Vec<(String, String)>, State);

    fn observe(&self) -> Seen {
        let named = |name: &str| Read::found(self.ports.iter().filter(|port| port.name == name).cloned());
        let wanted = self.wanted.ports.iter();
        let mut facts = ServerFacts {
            servers: Read::found(self.servers.clone()),
            ports: wanted.map(|port| (port.name.clone(), named(&port.name))).collect(),
            preflight: None,
        };
        facts.preflight = facts.lacks_preflight().then(needed);
        Seen { facts, requested_at: self.requested_at, is_gone: self.is_gone }
    }

    fn plan(&self, seen: &Seen) -> Frontier<Step> {
        if seen.is_gone { Frontier::default() } else { Frontier::from_iter(self.decide(seen).steps) }
    }

    fn run(&mut self, step: &Step) -> Outcome {
        self.next += 1;
        let new_id = format!("id-{}", self.next);
        match step {
            // The only one: it is known what became of a request.
            Step::Write(_) => self.requested_at = None,
            Step::Cloud(ServerStep::CreatePort(port)) => {
                assert!(
                    carries_mark(&port.description, "owner-1") && port.network_id.as_str() == "network-1"
                );
                self.ports.push(Port {
                    id: new_id.as_str().into(),
                    name: port.name.clone(),
                    ..Port::default()
                });
                return Outcome::Created(new_id);
            }
            Step::Cloud(ServerStep::CreateServer(new)) => {
                self.requested_at = Some(self.now);
                for port in self.ports.iter_mut().filter(|port| new.port_ids.contains(&port.id)) {
                    assert!(port.device_id.is_empty());
                    port.device_id.clone_from(&new_id);
                }
                let (id, name, status) = (new_id.as_str().into(), new.name.clone(), "BUILD".to_owned());
                self.servers.push(Server { id, name, status, ..Server::default() });
                return Outcome::Created(new_id);
            }
            Step::Cloud(ServerStep::DeleteServer { id, .. }) => {
                self.servers.iter_mut().filter(|server| server.id == *id).for_each(|one| one.is_going = true);
            }
            Step::Cloud(ServerStep::DeletePort { id, .. }) => self.ports.retain(|port| port.id != *id),
            Step::Cloud(ServerStep::TagPort { .. }) => panic!("no port has a tag"),
            Step::Own(never) | Step::Tenant(never) => match *never {},
        }
        Outcome::Done
    }

    fn fold(&self, seen: &mut Seen, step: &Step, outcome: &Outcome) {
        match (step, outcome) {
            (Step::Write(_), Outcome::Done) => seen.requested_at = None,
            (Step::Cloud(step), Outcome::Created(_) | Outcome::Done) => {
                if step.request() == Some(Request::Server) {
                    seen.requested_at = Some(self.now);
                }
                let id = if let Outcome::Created(id) = outcome { id } else { "" };
                seen.facts.done(step, id, seen.requested_at.is_some());
            }
            _ => seen.facts.forget("the answer was lost"),
        }
    }

    /// Servers are built, those that are going are gone, and a lost request is settled.
    fn settle(&mut self) {
        self.now += SignedDuration::from_secs(100);
        let (going, staying) = std::mem::take(&mut self.servers).into_iter().partition(|one| one.is_going);
        let going: Vec<Server> = going;
        self.servers = staying;
        for port in
            self.ports.iter_mut().filter(|port| going.iter().any(|one| one.id.as_str() == port.device_id))
        {
            port.device_id.clear();
        }
        for server in &mut self.servers {
            server.status = "ACTIVE".to_owned();
        }
        self.is_gone = self.is_deleting && self.decide(&self.observe()).state == State::Gone;
    }

    fn end_state(&self) -> Self::EndState {
        let ports = self.ports.iter().map(|port| (port.name.clone(), !port.device_id.is_empty()));
        let servers = self.servers.iter().map(|server| (server.name.clone(), server.status.clone()));
        (ports.collect(), servers.collect(), self.decide(&self.observe()).state)
    }
}

#[test]
fn a_server_for_anything_is_made_and_deleted() {
    let mut jump = jump();
    let waiting = |on: &str| State::Waiting { on: on.to_owned(), again: BUSY };
    let (steps, states) = jump.settle_all();
    assert_eq!(
        steps,
        ["create port jump-in", "create port jump-out", "create server jump", "settle request self"]
    );
    assert_eq!(states, [waiting("the server to be built"), State::Ready]);
    jump.is_deleting = true;
    let (steps, states) = jump.settle_all();
    assert_eq!(steps, ["delete server jump", "delete port jump-in", "delete port jump-out"]);
    assert_eq!(states, [waiting("the server to be gone"), State::Gone]);
    assert!(jump.ports.is_empty() && jump.servers.is_empty());
}

#[test]
fn a_server_for_anything_survives_a_crash_anywhere() {
    let mut jump = jump();
    assert_eq!(sweep(&jump, 100).unwrap().points, 16);
    jump.settle_all();
    jump.is_deleting = true;
    assert_eq!(sweep(&jump, 100).unwrap().points, 12);
}

#[test]
fn problems_are_told_by_the_fields_of_who_wants_the_server() {
    let jump = jump();
    let mut seen = jump.observe();
    seen.facts.preflight = Some(Preflight { image: Read::Absent, flavor: Read::Absent, ..needed() });
    let problems =
        "spec.jump.image: no image with name \"debian\" matches; spec.jump.flavor: no flavor matches";
    assert_eq!(jump.decide(&seen).state, State::Invalid(problems.to_owned()));
    seen.facts.preflight = Some(Preflight { image: Read::unknown("503 from glance"), ..needed() });
    let decided = jump.decide(&seen);
    assert_eq!(decided.state, State::Unknown("spec.jump.image: 503 from glance".to_owned()));
    assert!(decided.steps.is_empty());
}

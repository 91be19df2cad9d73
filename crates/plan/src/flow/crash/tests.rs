//! Tests the sweep with a toy cloud of one server with one port. The port is found again by its owner id, and the port
//! keeps the server from being made twice.

use super::*;
use crate::flow::Read;

#[derive(Clone)]
struct Cloud {
    /// Owner of each port, and whether a server is bound to it.
    ports: Vec<(String, bool)>,
    /// Finds its ports by owner; otherwise only through the server that uses them.
    adopts: bool,
}

struct Seen {
    ports: Read<(String, bool)>,
}

#[derive(Clone)]
enum Call {
    CreatePort,
    CreateServer,
    DeletePort,
}

impl Identified for Call {
    fn id(&self) -> StepId {
        match self {
            Self::CreatePort => StepId::new("create", "port", "worker-0"),
            Self::CreateServer => StepId::new("create", "server", "worker-0"),
            Self::DeletePort => StepId::new("delete", "port", "worker-0"),
        }
    }
}

impl World for Cloud {
    type Observation = Seen;
    type Step = Call;
    type EndState = Vec<(String, bool)>;

    fn observe(&self) -> Seen {
        Seen { ports: Read::found(self.ports.iter().filter(|port| self.adopts || port.1).cloned()) }
    }

    fn plan(&self, seen: &Seen) -> Frontier<Call> {
        Frontier::from_iter(match &seen.ports {
            Read::Unknown(_) | Read::One((_, true)) => vec![],
            Read::Absent => vec![Call::CreatePort],
            Read::One((_, false)) => vec![Call::CreateServer],
            Read::Many(_) => vec![Call::DeletePort],
        })
    }

    fn run(&mut self, call: &Call) -> Outcome {
        match call {
            Call::CreatePort => {
                self.ports.push(("owner".to_owned(), false));
                Outcome::Created("port".to_owned())
            }
            Call::CreateServer => match self.ports.first_mut() {
                Some(port) => {
                    port.1 = true;
                    Outcome::Done
                }
                None => Outcome::refused("no such port"),
            },
            Call::DeletePort => {
                self.ports.pop();
                Outcome::Done
            }
        }
    }

    fn fold(&self, seen: &mut Seen, call: &Call, outcome: &Outcome) {
        seen.ports = match (call, outcome) {
            (_, Outcome::Lost) => Read::unknown("answer lost"),
            (Call::CreatePort, Outcome::Created(_)) => Read::One(("owner".to_owned(), false)),
            (Call::CreateServer, Outcome::Done) => Read::One(("owner".to_owned(), true)),
            _ => Read::unknown("read again"),
        };
    }

    fn end_state(&self) -> Self::EndState {
        self.ports.clone()
    }
}

#[test]
fn a_planner_that_adopts_survives_every_point() {
    let swept = sweep(&Cloud { ports: vec![], adopts: true }, 100).unwrap();
    assert_eq!(
        swept.trace.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["create port worker-0", "create server worker-0"]
    );
    assert_eq!(swept.points, 8);
}

#[test]
fn duplicates_left_by_an_earlier_life_are_swept() {
    let duplicates = vec![("owner".to_owned(), false), ("owner".to_owned(), false)];
    let swept = sweep(&Cloud { ports: duplicates, adopts: true }, 100).unwrap();
    assert_eq!(swept.trace.len(), 2);
}

#[test]
fn a_planner_that_does_not_look_for_its_ports_is_caught() {
    let blind = sweep(&Cloud { ports: vec![], adopts: false }, 20);
    let Err(SweepError::Differs { at, .. }) = blind else { panic!("{blind:?}") };
    assert_eq!(at, "DiesAfter at step 0 (create port worker-0)");
}

#[test]
fn a_run_that_does_not_rest_is_an_error() {
    let endless = sweep(&Cloud { ports: vec![], adopts: true }, 1);
    assert!(matches!(endless, Err(SweepError::NeverRests { limit: 1, .. })), "{endless:?}");
}

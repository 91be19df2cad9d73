//! Plans one server with its ports, for any kind that has a server.
//!
//! ```text
//! WantedServer, ServerFacts -> Situation -> keep or delete -> Decided { state, steps, .. }
//! ```
//!
//! The caller keeps the owner id and the note of a request on its object, runs the steps, and reports the
//! [`State`] in its own conditions.
//!
//! Invariants
//! - Before anything is created, everything that it needs is found: image, flavor, networks, subnets, groups, server
//!   group, key, user data of a length that Nova accepts. Everything that is missing is reported together.
//! - Ports are created first; their names follow from the server's name, and their descriptions carry the owner id. The
//!   server is bound to them. A server whose create lost its answer is found in the list, which shows it from the
//!   moment Nova accepts it. Until then, and as long as a port is bound to a server that no list shows, nothing is
//!   created (`request`). If there are two servers nevertheless, the one that a port is bound to is kept.
//! - A server is ready when it is ACTIVE and all its ports are bound to it. A server that existed once is not created
//!   again.
//! - Deletion deletes the server, waits until it is gone, then deletes the ports; only what carries the owner id.

mod delete;
mod facts;
mod keep;
mod preflight;
mod request;
mod step;
#[cfg(test)]
mod tests;
mod wanted;

use std::time::Duration;

use hangar_api::infrastructure::v1beta1::ResolvedServer;
use jiff::Timestamp;

pub use facts::{PortFacts, Preflight, ServerFacts};
pub use preflight::MAXIMUM_USER_DATA;
pub use step::{NewPort, NewServer, ServerStep, Step};
pub(crate) use wanted::union;
pub use wanted::{UserData, WantedPort, WantedServer};

use super::{PortId, Server, ServerId};

/// How soon to look again at a server that is being made or deleted.
const BUSY: Duration = Duration::from_secs(2);

/// Everything that decides about one server.
pub struct Situation<'a> {
    pub wanted: &'a WantedServer,
    pub facts: &'a ServerFacts,
    /// The server that was seen last, if that was written down.
    pub recorded_id: Option<ServerId>,
    /// Whether a server was seen before.
    pub was_made: bool,
    /// When a server was asked for of which nobody knows what became.
    pub requested_at: Option<Timestamp>,
    /// How long such a request may still be carried out.
    pub settling: Duration,
    pub now: Timestamp,
}

/// What has to be done, and what there is.
#[derive(Debug)]
pub struct Decided {
    pub state: State,
    pub steps: Vec<Step>,
    /// The server that there is.
    pub server: Option<Server>,
    /// What the description means in this cloud. The user records it: ports are found again by these names.
    pub resolved: Option<ResolvedServer>,
    /// Its ports in order, once they are all there.
    pub port_ids: Vec<PortId>,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A read failed.
    Unknown(String),
    /// What it needs is not there, or not clear; all of it, by fields.
    Invalid(String),
    /// Our steps lead there.
    Working(&'static str),
    /// The cloud is at work.
    Waiting {
        on: String,
        /// Look again after this long.
        again: Duration,
    },
    /// It runs without this port.
    Unbound(String),
    /// It is neither being built nor running, by its status: stopped, moving, shelved.
    Inactive(String),
    /// It failed, in Nova's words.
    Failed(String),
    Ready,
    /// There was one and it is gone; or, where that was asked for, nothing is left.
    Gone,
}

impl From<State> for Decided {
    fn from(state: State) -> Self {
        Self { state, steps: Vec::new(), server: None, resolved: None, port_ids: Vec::new() }
    }
}

/// The name in a step: where there are too many, all but the first have a number besides.
fn numbered(name: &str, index: usize) -> String {
    if index == 0 { name.to_owned() } else { format!("{name} (extra {index})") }
}

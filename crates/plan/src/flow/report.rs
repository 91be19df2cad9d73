//! The report of a plan: its decisions, and everything that its conditions wait for. The manager logs it, and goldens
//! show it.

use hangar_api::conditions::Waiting;
use serde::Serialize;

/// One decision and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    pub what: String,
    pub why: String,
}

/// Why things are as they are. Order is that of planning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub decisions: Vec<Decision>,
    pub waits: Vec<Waiting>,
}

impl Report {
    /// Notes a decision.
    pub fn decide(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.decisions.push(Decision { what: what.into(), why: why.into() });
    }

    /// Notes a wait, once.
    pub fn wait(&mut self, waiting: Waiting) {
        if !self.waits.contains(&waiting) {
            self.waits.push(waiting);
        }
    }
}

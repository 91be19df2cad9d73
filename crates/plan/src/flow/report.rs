//! What a plan tells people: what it decided, what it waits for, since when, and who must act.
//!
//! `hangar plan` and `hangar describe` print reports; conditions take their messages from them. Reports are part of a
//! plan's output, so they are deterministic and golden-tested with it.

use std::fmt;

use hangar_api::conditions;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who can end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Actor {
    /// Hangar itself: nobody has to do anything.
    Hangar,
    /// The person who applied the Cluster: the specification has to change.
    ClusterOwner,
    /// The person who runs the management cluster and Hangar.
    PlatformOperator,
    /// The cloud: it is working, or out of something.
    Cloud,
    /// Another controller of the management cluster, or Kubernetes itself.
    Kubernetes,
    /// The tenant's own cluster: a workload or a node in it.
    Tenant,
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Hangar => "hangar",
            Self::ClusterOwner => "cluster owner",
            Self::PlatformOperator => "platform operator",
            Self::Cloud => "cloud",
            Self::Kubernetes => "kubernetes",
            Self::Tenant => "tenant",
        })
    }
}

/// Who acts, as conditions say it.
impl From<&conditions::Actor> for Actor {
    fn from(actor: &conditions::Actor) -> Self {
        match actor {
            conditions::Actor::Hangar => Self::Hangar,
            conditions::Actor::ClusterOwner => Self::ClusterOwner,
            conditions::Actor::Operator => Self::PlatformOperator,
            conditions::Actor::Cloud => Self::Cloud,
            conditions::Actor::Controller(_) => Self::Kubernetes,
        }
    }
}

/// One decision and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub what: String,
    pub why: String,
}

/// One thing that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// What is waited for.
    pub what: String,
    /// Since when, where the world remembers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Who can end it.
    pub who: Actor,
}

/// Why things are as they are. Order is that of planning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub decisions: Vec<Decision>,
    pub waits: Vec<Wait>,
}

impl Report {
    /// Notes a decision.
    pub fn decide(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.decisions.push(Decision { what: what.into(), why: why.into() });
    }

    /// Notes a wait.
    pub fn wait(&mut self, what: impl Into<String>, since: Option<Timestamp>, who: Actor) {
        self.waits.push(Wait { what: what.into(), since, who });
    }

    /// Appends another concern's report.
    pub fn absorb(&mut self, other: Self) {
        self.decisions.extend(other.decisions);
        self.waits.extend(other.waits);
    }

    /// The waits that Hangar cannot end by itself.
    pub fn needs_somebody(&self) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(|wait| wait.who != Actor::Hangar)
    }
}

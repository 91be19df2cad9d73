//! Who must act, and what is waited for: the part of a condition that users read first.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// Who must act before a condition can become good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// Hangar itself: it is at work, and no other actor has to do anything.
    Hangar,
    /// Whoever owns the Cluster and its manifests.
    ClusterOwner,
    /// Whoever runs the management cluster.
    Operator,
    /// The OpenStack cloud.
    Cloud,
    /// Another controller or program, by what it is called in the cluster.
    Controller(Cow<'static, str>),
}

impl Actor {
    /// Another controller or program.
    pub const fn controller(name: &'static str) -> Self {
        Self::Controller(Cow::Borrowed(name))
    }

    /// The controller of a kind.
    pub fn controller_of(kind: &str) -> Self {
        Self::Controller(format!("the controller of {kind}").into())
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Hangar => "Hangar",
            Self::ClusterOwner => "the cluster owner",
            Self::Operator => "the operator of the management cluster",
            Self::Cloud => "the cloud",
            Self::Controller(name) => name,
        })
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What is waited for, and who must bring it about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// What is waited for, as a noun phrase: "an address of the load balancer".
    pub on: String,
    /// What went wrong so far, where something did; often the message of another system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Who must act.
    pub actor: Actor,
}

impl Waiting {
    /// Waiting without anything having gone wrong.
    pub fn new(actor: Actor, on: impl Into<String>) -> Self {
        Self { actor, on: on.into(), detail: None }
    }

    /// Waiting because something went wrong.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl fmt::Display for Waiting {
    /// `detail; waiting for X (Y must act)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(detail) = &self.detail {
            write!(formatter, "{}; ", detail.trim_end_matches(['.', ';', '\n', ' ']))?;
        }
        write!(formatter, "waiting for {} ({} must act)", self.on, self.actor)
    }
}

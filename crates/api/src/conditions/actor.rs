//! Who must act, and on what: the half of a condition that people look for first.

use std::fmt;

/// Who must act before a condition can become good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// Hangar itself: it is at work, nobody else has to do anything.
    Hangar,
    /// Whoever owns the Cluster and its manifests.
    ClusterOwner,
    /// Whoever runs the management cluster.
    Operator,
    /// The OpenStack cloud.
    Cloud,
    /// Another controller, by what it is called in the cluster.
    Controller(String),
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hangar => formatter.write_str("Hangar"),
            Self::ClusterOwner => formatter.write_str("the owner of the cluster"),
            Self::Operator => formatter.write_str("the operator of the management cluster"),
            Self::Cloud => formatter.write_str("the cloud"),
            Self::Controller(name) => formatter.write_str(name),
        }
    }
}

/// What is waited for, and who must bring it about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Who must act.
    pub actor: Actor,
    /// What is waited for, as a noun phrase: "an address of the load balancer".
    pub on: String,
    /// What went wrong so far, where something did; often the words of another system.
    pub detail: Option<String>,
}

impl Waiting {
    /// Waiting without anything having gone wrong.
    pub fn new(actor: Actor, on: impl Into<String>) -> Self {
        Self { actor, on: on.into(), detail: None }
    }

    /// Waiting because something went wrong, in the words of who said so.
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

//! Names calls, and defines the gates that see them.
//!
//! The same call has the same name in every run: what it does, to which kind, to which object by its name. Ids differ
//! from run to run and are carried beside ([`Call::without_id`] drops them). Gates are asked before a request is sent
//! and after its answer is complete, once per request: a read that is repeated, a page of a list and a login are
//! requests of their own.

use std::{fmt, time::Duration};

use http::StatusCode;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Logs in: makes a token, which is no object of the project.
    Authenticate,
    Get,
    /// Reads a collection, or a page of it.
    List,
    Create,
    /// Changes an object, its tags or its connections.
    Update,
    Delete,
}

impl Verb {
    /// True when the call can change something in the project.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Delete)
    }

    /// As in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authenticate => "authenticate",
            Self::Get => "get",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// The services this client speaks to, by their catalogue type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    Identity,
    Compute,
    Network,
    Image,
}

impl Service {
    /// The catalogue type; as in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Network => "network",
            Self::Image => "image",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    pub verb: Verb,
    pub service: Service,
    /// To which kind of object: `server`, `port`, `port/tags`, `router/interface`.
    pub kind: &'static str,
    /// To which object, by a name that is the same in every run: a create's own name, or what `about` was given.
    pub name: Option<String>,
    /// To which object, by the id that the cloud gave it.
    pub id: Option<String>,
}

impl Call {
    /// The part that is the same in every run.
    #[must_use]
    pub fn without_id(&self) -> Self {
        Self { id: None, ..self.clone() }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.verb.as_str(), self.service, self.kind)?;
        if let Some(name) = &self.name {
            write!(formatter, " {name}")?;
        }
        match &self.id {
            Some(id) => write!(formatter, " ({id})"),
            None => Ok(()),
        }
    }
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The service answered; a write is done if this is a success.
    Status(StatusCode),
    /// No connection was made, so nothing was sent.
    Unreached,
    /// The connection failed after the request may have been sent, before the answer was complete.
    Disconnected,
    /// The call's time was over.
    TimedOut,
}

impl Answer {
    /// True for an answer with a success status.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Status(status) if status.is_success())
    }
}

/// What happens to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The caller gets it.
    Deliver,
    /// The caller gets [`Error::Lost`](crate::Error::Lost), as if the connection had died after the service was done.
    Withhold(&'static str),
}

/// Asked about every request of a session. Must not block.
pub trait CallGate: Send + Sync + 'static {
    /// Before it is sent; `limit` is the longest it can take. An error keeps it from being sent.
    fn before(&self, call: &Call, limit: Duration) -> Result<(), &'static str> {
        let _ = (call, limit);
        Ok(())
    }

    /// After it was answered or failed. Not asked when a gate stopped the call.
    fn after(&self, call: &Call, answer: Answer, took: Duration) -> Delivery {
        let _ = (call, answer, took);
        Delivery::Deliver
    }
}

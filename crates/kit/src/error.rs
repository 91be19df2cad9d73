//! Errors, and how callers distinguish them.
//!
//! The category is an operational contract: it is the event reason and the metric label, so a variant's category never
//! changes. Two questions decide what a controller does: can the same call work later ([`Failure::is_retryable`],
//! then back off), and must a person change the object first ([`Failure::is_user_fault`], then wait for the change).

use std::time::Duration;

use hangar_plan::flow::Unknown;

/// A failure that the controller loop can act on. Every controller's error implements it.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// Stable `PascalCase` name: event reason and metric label.
    fn category(&self) -> &'static str;
    /// Whether the same attempt can succeed later without an action of a user.
    fn is_retryable(&self) -> bool;
    /// Whether the object itself is wrong and only its owner can help.
    fn is_user_fault(&self) -> bool {
        false
    }
    /// How long the other side asked us to stay away, if it did.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// Failures of the controller runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused a call or could not be reached.
    #[error("cannot {what}")]
    Api {
        /// The attempted action, for users.
        what: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The object changed, or was replaced by another of its name, since it was read.
    #[error("{what} changed since it was read")]
    Stale { what: String },
    /// An object of this name exists and is not ours.
    #[error("{what} exists and is not ours")]
    Foreign { what: String },
    /// A decision would have rested on a read that says nothing.
    #[error("cannot decide about {what}: {unknown}")]
    Undecidable {
        /// What the decision was about.
        what: String,
        /// Why the read says nothing.
        unknown: Unknown,
    },
    /// We no longer hold the right to write.
    #[error("not the leader: {what} was not attempted")]
    Fenced {
        /// What was left undone.
        what: String,
    },
    /// An object cannot be expressed as JSON, or lacks its name, kind or version.
    #[error("{what} is malformed: {problem}")]
    Malformed {
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A tenant's API server is not usable now.
    #[error("tenant {tenant} is unavailable: {why}")]
    TenantUnavailable {
        tenant: String,
        why: String,
        /// When it will be tried again.
        retry_after: Duration,
    },
}

impl Error {
    /// Names the failed action.
    pub fn api(what: impl Into<String>, source: kube::Error) -> Self {
        Self::Api { what: what.into(), source: Box::new(source) }
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => status_code(source),
            _ => None,
        }
    }
}

/// The HTTP status behind a client error, none when no answer came.
pub fn status_code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// True when the call was sent, or may have been, and no answer says what became of it.
pub fn is_lost(error: &kube::Error) -> bool {
    match error {
        // The server gave up while the storage might still commit.
        kube::Error::Api(status) => status.code == 504,
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

impl Failure for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Api { .. } => match self.code() {
                None => "ApiUnreachable",
                Some(401 | 403) => "ApiForbidden",
                Some(404) => "ApiNotFound",
                Some(409) => "ApiConflict",
                Some(422 | 400) => "ApiInvalid",
                Some(429) => "ApiOverloaded",
                Some(code) if code >= 500 => "ApiFailed",
                Some(_) => "ApiRefused",
            },
            Self::Stale { .. } => "StaleRead",
            Self::Foreign { .. } => "ForeignObject",
            Self::Undecidable { .. } => "Undecidable",
            Self::Fenced { .. } => "Fenced",
            Self::Malformed { .. } => "Malformed",
            Self::TenantUnavailable { .. } => "TenantUnavailable",
        }
    }

    fn is_retryable(&self) -> bool {
        // What people can fix outside the object (roles, foreign objects) is retried too: no change would wake us.
        !matches!(self, Self::Malformed { .. })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TenantUnavailable { retry_after, .. } => Some(*retry_after),
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => status
                    .details
                    .as_ref()
                    .map(|details| Duration::from_secs(u64::from(details.retry_after_seconds)))
                    .filter(|length| !length.is_zero()),
                _ => None,
            },
            _ => None,
        }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

//! Leader election and fencing on a `coordination.k8s.io` Lease.
//!
//! The protocol is client-go's, so that any program that elects by Lease can share one with us:
//! - The clock of another machine is never trusted. A candidate takes over after it has seen *no change* of the record
//!   for the record's own duration, measured by its own monotonic clock; `renewTime` is written for users.
//! - Every write names the resource version it was decided on, so of two candidates one gets a conflict.
//! - The holder renews every `retry_period` and gives up at `renew_deadline`, which is shorter than the duration others
//!   wait: it stops leading before another can begin.
//!
//! When the holder gives up, a write that it sent before may still be under way. [`Term::remaining`] is therefore asked
//! before each write, and the write is sent only if it ends within that time.
//!
//! `record` decides, without I/O and with the time passed in; [`Candidate`] and [`Held`] make the calls; [`Term`] is
//! the right that controllers hold; [`Standing`] outlives terms and says whether there is one now.

mod candidate;
mod clock;
mod held;
mod record;
mod standing;
mod term;

use std::time::Duration;

pub use candidate::Candidate;
pub use held::Held;
pub use standing::Standing;
pub use term::Term;

/// How to compete for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are. Must differ between processes, also between two that run one after the other under the same
    /// host name: see [`LeaseSettings::unique_identity`].
    pub identity: String,
    /// How long others must see no change before they take over.
    pub duration: Duration,
    /// How long the holder keeps trying to renew before it stops leading.
    pub renew_deadline: Duration,
    /// Pause between attempts, to acquire and to renew.
    pub retry_period: Duration,
}

impl LeaseSettings {
    /// Three times Kubernetes' customary 15 s: a write to a cloud may take 30 s, and the lease has to outlast it.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(45),
            renew_deadline: Duration::from_secs(30),
            retry_period: Duration::from_secs(2),
        }
    }

    /// The host's name with something random, as client-go's users write it.
    pub fn unique_identity(host: &str) -> String {
        format!("{host}_{}", uuid::Uuid::new_v4())
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |reason: &str| Err(Error::Settings(reason.to_owned()));
        if self.identity.is_empty() {
            return refuse("the identity is empty");
        }
        // The record holds whole seconds.
        if self.duration < Duration::from_secs(1) || self.duration.subsec_nanos() != 0 {
            return refuse("the duration is not a whole number of seconds, at least one");
        }
        if self.renew_deadline >= self.duration {
            return refuse("the renew deadline is not shorter than the duration");
        }
        if self.retry_period.is_zero() || self.retry_period >= self.renew_deadline {
            return refuse("the retry period is not between zero and the renew deadline");
        }
        Ok(())
    }
}

/// Why a lease could not be competed for or released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings contradict each other.
    #[error("leader election settings: {0}")]
    Settings(String),
    /// The API server refused or did not answer.
    #[error("the lease could not be written")]
    Call(#[source] Box<kube::Error>),
    /// The API server did not answer in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
}

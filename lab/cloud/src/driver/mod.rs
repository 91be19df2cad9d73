//! Drivers: they make the model real.
//!
//! A driver is given what should exist ([`Topology`]) and reports what became of it ([`Event`]). It is level-triggered:
//! given the same topology again, it repairs what is missing and removes what is no longer wanted.

pub mod namespaces;
mod recording;

pub use recording::RecordingDriver;

use std::future::Future;

use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use crate::topology::Topology;

/// What happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Active(Uuid),
    Stopped(Uuid),
    /// It cannot be created, or it died; the message becomes its fault.
    Failed(Uuid, String),
    /// Nothing is left of it.
    Gone(Uuid),
}

/// Makes the topology true.
pub trait Driver: Send + Sync + 'static {
    /// Brings the host to what should be. Returns when it is so, as far as it can be; single servers that fail are
    /// events, not errors. Called again after every change and from time to time, never twice at once.
    ///
    /// `Ok` also says that nothing is left of any server that the topology does not name, except those it called
    /// [`Event::Failed`] meanwhile: a server that was deleted before the driver ever saw it, or whose
    /// [`Event::Gone`] was lost with a crash, leaves the API then. Servers may still be starting when it returns.
    fn realise(
        &self,
        topology: &Topology,
        events: &UnboundedSender<Event>,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// What a server printed.
    fn console(&self, server: Uuid) -> impl Future<Output = String> + Send;
}

//! A step: one call, and who executes it (the runtime, the controller's own edge, a tenant or a cloud).
//!
//! A planner names only the executors that it has. If it does nothing in a cloud, its step for clouds is [`Never`], a
//! type without values, so such a step cannot be written. Writes to the management cluster are data ([`Write`]), which
//! the runtime executes in the same way for every controller.

use std::fmt;

use super::Write;

/// The identity of a step, the same in every run that plans the same step.
///
/// It carries what the step does and to what, never ids that the other side invents or times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    /// What is done, in one word: `create`, `tag`, `delete`.
    pub verb: &'static str,
    /// To what kind of thing: `server`, `etcd-member`.
    pub kind: &'static str,
    /// Which one, by a name that is derived and stable.
    pub name: String,
}

impl StepId {
    /// The identity of doing something to one named thing.
    pub fn new(verb: &'static str, kind: &'static str, name: impl Into<String>) -> Self {
        Self { verb, kind, name: name.into() }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.verb, self.kind, self.name)
    }
}

/// What has a stable identity.
pub trait Identified {
    fn id(&self) -> StepId;
}

/// What does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}

impl Identified for Never {
    fn id(&self) -> StepId {
        match *self {}
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step<Own = Never, Tenant = Never, Cloud = Never> {
    /// A write to the management cluster.
    Write(Write),
    /// What only this controller's edge can do, such as minting a key.
    Own(Own),
    /// A call to the tenant's API server.
    Tenant(Tenant),
    /// A call to the cloud.
    Cloud(Cloud),
}

impl<Own: Identified, Tenant: Identified, Cloud: Identified> Identified for Step<Own, Tenant, Cloud> {
    fn id(&self) -> StepId {
        match self {
            Self::Write(write) => write.id.clone(),
            Self::Own(step) => step.id(),
            Self::Tenant(step) => step.id(),
            Self::Cloud(step) => step.id(),
        }
    }
}

impl Step {
    /// The write, where a step is nothing else.
    pub fn write(&self) -> &Write {
        match self {
            Self::Write(write) => write,
            Self::Own(never) | Self::Tenant(never) | Self::Cloud(never) => match *never {},
        }
    }
}

impl<Own, Tenant, Cloud> From<Write> for Step<Own, Tenant, Cloud> {
    fn from(write: Write) -> Self {
        Self::Write(write)
    }
}

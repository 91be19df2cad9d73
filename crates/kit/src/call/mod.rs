//! Names every call of a client, and passes it through gates.
//!
//! A layer under the Kubernetes client turns each HTTP request into a [`Call`] (verb, resource, namespace, stable name)
//! and asks [`CallGate`]s before it is sent and after it was answered. Metrics, the fence and the faults of tests are
//! gates. The code above the client has to do nothing for that, so it cannot forget to. The same layer limits how long
//! a call takes and how large its answer is.

mod clock;
pub mod fault;
mod gate;
mod identity;
mod layer;
mod room;

pub use clock::ServerClock;
pub use gate::{Answer, CallGate, CallLog, Delivery, FencingGate, Stopped};
pub use identity::{Call, Verb};
pub use layer::{CallLayer, CallService, TimedOut, TooLarge, Unread};
pub use room::{Reason, Room};

//! Every call of a client, by name.
//!
//! A layer under the Kubernetes client turns each HTTP request into a [`Call`] (verb, resource, namespace, stable name)
//! and asks [`CallGate`]s before it is sent and after it was answered. Metrics, fencing and the fault layer are gates;
//! nothing above the client has to cooperate, so nothing can forget to. The same layer limits how long a call takes and how large
//! its answer is.

pub mod fault;
mod gate;
mod identity;
mod layer;

pub use gate::{Answer, CallGate, CallLog, Delivery, FencingGate, Stopped};
pub use identity::{Call, Verb};
pub use layer::{CallLayer, CallService, TimedOut, TooLarge};

//! The controller runtime: everything between a plan and its effects that is the same for every controller.
//!
//! - reading: [`watch`] (one shared watch per kind), [`client`] (management and tenant clients), [`call`] (every call
//!   named, gated and limited in time and size), [`tenant`] (Nodes and objects in tenants)
//! - deciding when: [`controller`] (the loop), [`long_work`] (beside it), [`queue`], [`backoff`], [`leadership`] and
//!   [`lease`]
//! - writing: [`execute`] (plan steps), [`apply`] (objects), [`finalizer`], [`event`]; [`overlay`] (a cluster whose
//!   writes stay in memory)
//! - running as a process: [`serve`], [`health`], [`metrics`], [`telemetry`], [`shutdown`], [`webhook`], [`settings`],
//!   [`descriptors`]
//!
//! Decisions are made in `plan`; the types between the two are `hangar_plan::flow`.

pub mod apply;
pub mod backoff;
pub mod call;
pub mod client;
pub mod controller;
pub mod describe;
pub mod descriptors;
pub mod error;
pub mod event;
pub mod execute;
pub mod finalizer;
pub mod health;
mod key;
pub mod leadership;
pub mod lease;
pub mod long_work;
pub mod metrics;
pub mod overlay;
pub mod pace;
pub mod queue;
pub mod serve;
pub mod settings;
pub mod shutdown;
pub mod telemetry;
pub mod tenant;
pub mod watch;
pub mod webhook;

pub use error::{Error, Failure, Result};
pub use key::ObjectKey;

//! The embedded cloud: OpenStack's HTTP API over a model in memory, with machines of this host as its servers.
//!
//! ```text
//! request -> http (who, what, how it is said) -> model (what it means) -> state file -> answer
//!                                                     |
//!                                            topology (pure) -> driver -> events -> model
//! ```
//!
//! The API decides from the model alone and never waits for a machine. After every change the driver is given the whole
//! topology; its events become the servers' status. A call that was answered is in the state file, so a cloud that was
//! killed comes back as its clients know it, and the driver repairs the host.
//!
//! [`Cloud::serve`] starts it, in a test on loopback or as a process of an environment.

pub mod config;
pub mod driver;
mod engine;
mod error;
pub mod fault;
mod http;
pub mod model;
mod serve;
mod shared;
mod store;
pub mod topology;

pub use config::Config;
pub use error::Error;
pub use serve::{CallRecord, Cloud, Handle};

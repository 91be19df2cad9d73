//! The embedded cloud: OpenStack's HTTP API over a model in memory, with machines of this host behind it.
//!
//! ```text
//! request -> http (who, what, how it is said) -> model (what it means) -> state file -> answer
//!                                                     |
//!                                            topology (pure) -> driver -> events -> model
//! ```
//!
//! The API decides against the model alone and never waits for a machine. Whatever changed, the driver is given the
//! whole of what should be; what it reports becomes the servers' status. A call that was answered is in the state
//! file, so a cloud that was killed comes back as its clients know it, and the driver repairs what is behind it.
//!
//! [`Cloud::serve`] starts it, in a test on loopback or as a process of the one-host cluster.

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

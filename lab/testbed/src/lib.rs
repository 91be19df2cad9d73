//! A real etcd and kube-apiserver for tests, on free loopback ports, with a PKI of its own.
//!
//! - [`shared`] gives the one instance of a test binary; a test takes a namespace of its own from it
//!   ([`Testbed::namespace`]) and runs in parallel with the others.
//! - [`Testbed::start`] gives a private instance, for tests that stop or restart the API server, and for those that
//!   need a controller-manager or a scheduler.
//! - `one_host` gives a whole cluster with real pods on this host, one for a test binary.
//! - [`strangers`] are servers that tests play.
//! - [`sweep`] kills a whole manager after each of its writes and compares where it ends.
//!
//! Nothing outlives the test binary: a guardian process that was started first ends everything when the binary is
//! gone, whether it returned, panicked, was interrupted or killed. After a panic the logs stay and are named.

mod bed;
mod control_plane;
mod credentials;
mod error;
mod guardian;
mod one_host;
mod ports;
mod runtime;
pub mod strangers;
pub mod sweep;

pub use bed::{Options, Testbed, shared};
pub use error::Error;
pub use one_host::{OneHost, one_host};
pub use ports::Port;

//! The namespaces driver on this host, as root: real machines, real packets, the real cloud-init.
//!
//! Traffic stays inside namespaces that the tests make; nothing of the host's own network is touched. Tests run one
//! after the other, because each makes machines and this host may be small.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so by panicking")]

mod cloud_init;
mod data_plane;
mod killed;
mod lifecycle;
mod packages;
mod support;
mod world;

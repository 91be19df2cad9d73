//! Real machines on this host, as root. Each test compares the host before and after.
//!
//! Traffic stays inside the namespaces that the tests make. Tests run one after the other: they look at the whole
//! host, and would see each other.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so by panicking")]

mod basics;
mod cloud_parts;
mod containerd;
mod killed;
mod lifecycle;
mod logs;
mod network;
mod packages;
mod ping;
mod refusals;
mod snapshot;
mod stopping;
mod support;

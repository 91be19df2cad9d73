//! The controller runtime against a real API server. One binary, so that one API server serves all tests.

// All of this is test code; clippy sees only the functions marked as tests as such.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod apply;
mod crash;
mod housekeeping;
mod leading;
mod lease;
mod lease_interop;
mod long_work;
mod serving;
mod shutdown;
mod telemetry;
mod tenant;
mod tenant_contents;
mod watch;
mod webhook;
mod world;

//! Tests the binary as users run it, against a real API server.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;
mod command_line;
mod documents;
mod hostile;
mod installation;
mod manager;
mod namespaces;
mod plan;
mod rolling;

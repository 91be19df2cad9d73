//! The embedded cloud over HTTP on loopback, with the `record` driver: one file of scenarios per service, and one each
//! for restarts, faults and the driver's side.

// All of this is test code; clippy sees only the functions marked as tests as such.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod client;
mod compute;
mod driver;
mod faults;
mod identity;
mod image;
mod network;
mod pages;
mod restart;
mod router;
mod security;
mod unkind;

//! The client against HTTP servers on loopback: real sockets, scripted answers.

// All of this is test code; clippy sees only the functions marked as tests as such.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod embedded;
mod fixture;
mod gates;
mod login;
mod lost;
mod reading;
mod secrets;
mod shapes;
mod trust;

//! Webhooks called by a real API server, over loopback.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod admission;
mod certificate;
mod conversion;
mod directory;
mod fixture;
mod limits;

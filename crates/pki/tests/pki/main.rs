//! Our certificates, read by other programs: rustls' verifier and, where installed, the openssl command.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod authority;
mod chains;
mod kubeconfig;
mod openssl;
mod reading;

use std::time::Duration;

use hangar_pki::{Authority, Intent};
use jiff::Timestamp;

pub(crate) const DAY: Duration = Duration::from_hours(24);

pub(crate) fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a timestamp")
}

pub(crate) fn authority(name: &str) -> Authority {
    Authority::self_signed(&Intent::authority(name, 3650 * DAY), now()).expect("an authority")
}

//! Against real etcd members with mutual TLS, and a real S3 server.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod backups;
mod broken_backups;
mod cluster;
mod gateway;
mod members;
mod place;
mod restores;
mod snapshots;
mod space;
mod trust;
mod writer;

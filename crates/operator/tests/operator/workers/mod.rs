//! Tests of what makes a worker: its bootstrap data, its network and its server. The API server is real; the cloud is
//! the embedded one over HTTP, with a driver that only records machines.

mod bootstrap;
pub(crate) mod cloud;
mod crash;
mod faults;
mod projects;
mod real_cloud;
mod rest;
mod restless;
mod servers;
mod shares;
mod slow;
mod tenants;
mod world;

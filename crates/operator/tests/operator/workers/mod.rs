//! What makes a worker: its bootstrap data, the network it is in, the server it runs on. The API server is real, the
//! cloud is the embedded one over HTTP with machines that are only recorded.

mod bootstrap;
pub(crate) mod cloud;
mod crash;
mod faults;
mod rest;
mod servers;
mod shares;
mod slow;
mod tenants;
mod world;

//! Tests of control planes on a real API server, with a real controller manager that makes pods. An actor takes the
//! place of kubelets and load balancers, and a second real API server the place of the tenant.

mod access;
pub(crate) mod actor;
pub(crate) mod addons;
mod alarms;
mod autoscaler;
mod backups;
mod crash;
mod files;
mod gateway;
mod healing;
mod kubelet;
mod lifecycle;
mod losses;
mod monitoring;
mod neighbours;
mod pods;
mod preview;
mod quorum;
mod restores;
mod store;
pub(crate) mod tenant;
mod versions;
pub(crate) mod world;

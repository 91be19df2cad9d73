//! Control planes on a real API server, with a real controller-manager making pods, an actor in the place of kubelets
//! and load balancers, and a second real API server in the place of the tenant.

mod actor;
mod crash;
mod lifecycle;
mod tenant;
mod world;

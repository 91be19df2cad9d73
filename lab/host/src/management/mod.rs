//! The nodes of the management cluster: their machines, the control plane and the configuration of their kubelets.
//!
//! All of it is pure, except that [`credentials`] mints what is missing and [`machine`] links programs.

pub mod control_plane;
pub mod credentials;
pub mod kubelet;
pub mod machine;
mod node;
pub mod startup;
#[cfg(test)]
mod tests;

pub use node::{Node, ZONE_LABEL};

/// The name of the first node and its machine; those of others begin with it.
pub const NAME: &str = "management";

/// Where the API server listens.
pub const API_SERVER_PORT: u16 = 6443;

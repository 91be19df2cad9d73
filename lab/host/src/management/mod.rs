//! The management cluster's one node: its machine, its control plane and the configuration of its kubelet.
//!
//! All of it is pure, except that [`credentials`] mints what is missing and [`machine`] links programs.

pub mod control_plane;
pub mod credentials;
pub mod kubelet;
pub mod machine;
pub mod startup;
#[cfg(test)]
mod tests;

/// The name of the machine and of the node.
pub const NAME: &str = "management";

/// Where the API server listens.
pub const API_SERVER_PORT: u16 = 6443;

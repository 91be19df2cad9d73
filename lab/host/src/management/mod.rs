//! The management cluster's one node: what its machine is, what its control plane runs with, what its kubelet reads.
//! All of it is pure, except [`credentials`], which mints what is missing, and that [`machine`] links programs.

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

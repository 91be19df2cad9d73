//! The payload of the management cluster: Hangar itself, from the crates above this one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;

use crate::addresses::Addresses;
use crate::management::API_SERVER_PORT;

/// Something that goes into the cluster as soon as its API server answers, while the node and the other pods get
/// ready. It is the phase [`crate::Phase::Hangar`].
pub trait Payload: Send + Sync {
    /// Puts it there and waits until it works. Every `up` calls it: it looks first and does only what is missing.
    fn install<'a>(&'a self, cluster: &'a Cluster) -> Installing<'a>;
}

/// The cluster as those who put something into it see it.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The administrator's kubeconfig, for use on the host.
    pub kubeconfig: PathBuf,
    /// Addresses on the private network.
    pub addresses: Addresses,
    /// How many nodes it has. If there are several, all are Ready before something is put into it: pods that are spread
    /// need a choice.
    pub nodes: u8,
}

impl Cluster {
    /// Where its API server listens, for clients on the private network and in pods.
    pub fn api_server(&self) -> SocketAddr {
        SocketAddr::from((self.addresses.management, API_SERVER_PORT))
    }
}

/// [`Payload::install`] at work.
pub type Installing<'a> = Pin<Box<dyn Future<Output = Result<Installed, PayloadError>> + Send + 'a>>;

/// Whatever went wrong with it.
pub type PayloadError = Box<dyn std::error::Error + Send + Sync>;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// A short message for users.
    pub outcome: String,
    /// Whether anything was made or changed.
    pub changed: bool,
}

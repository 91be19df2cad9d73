//! The objects of the cloud, and what each call does to them.
//!
//! There is one file per kind of object, with its rules: what may be created, what is refused and with which message,
//! what must be deleted first. Nothing here uses HTTP or waits; time and fresh ids come from [`Draw`]. A refused
//! operation may leave the model half changed: the caller works on a copy and drops it.

mod address;
mod draw;
mod flavor;
mod floating_ip;
mod identity;
mod image;
mod keypair;
mod network;
mod port;
mod quota;
mod refusal;
mod router;
mod security_group;
mod security_rule;
mod seed;
mod server;
mod server_event;
mod server_group;
mod standard;
mod subnet;
mod token;
mod topology;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use address::{Pool, first_host, last_host};
pub use draw::Draw;
pub use flavor::Flavor;
pub use floating_ip::FloatingIp;
pub use identity::{ApplicationCredential, Caller, Project, User};
pub use image::Image;
pub use keypair::Keypair;
pub use network::{Network, NewNetwork};
pub(crate) use port::check_port_security;
pub use port::{FixedIp, NewPort, Pair, Port, mac_text};
pub use refusal::Refusal;
pub use router::{Gateway, Router};
pub use security_group::SecurityGroup;
pub use security_rule::SecurityRule;
pub use server::{NewServer, Server, ServerFault, Status, WantedPort};
pub use server_group::ServerGroup;
pub use standard::Standard;
pub use subnet::{NewSubnet, Subnet, WantedGateway};
pub use token::{Named, Proof, Scope, Token};
pub use topology::topology;

use crate::config::Quota;

/// The whole cloud.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    /// Projects by id. Like users, credentials, images and flavors they come from the configuration at each start
    /// and are not in the state file, so that passwords are not either.
    #[serde(skip)]
    pub projects: BTreeMap<String, Project>,
    #[serde(skip)]
    pub users: BTreeMap<String, User>,
    /// Application credentials by id.
    #[serde(skip)]
    pub application_credentials: BTreeMap<String, ApplicationCredential>,
    #[serde(skip)]
    pub images: BTreeMap<Uuid, Image>,
    #[serde(skip)]
    pub flavors: BTreeMap<String, Flavor>,
    /// Zones; the first is the default.
    #[serde(skip)]
    pub availability_zones: Vec<String>,
    /// Limits of projects that have none of their own.
    #[serde(skip)]
    pub default_quota: Quota,
    /// How long after its creation a server takes the ports that it was given.
    #[serde(skip)]
    pub binding_delay: SignedDuration,
    pub quotas: BTreeMap<String, Quota>,
    /// Tokens by their secret.
    pub tokens: BTreeMap<String, Token>,
    pub networks: BTreeMap<Uuid, Network>,
    pub subnets: BTreeMap<Uuid, Subnet>,
    pub routers: BTreeMap<Uuid, Router>,
    /// Ports, those of routers and floating IPs included.
    pub ports: BTreeMap<Uuid, Port>,
    pub security_groups: BTreeMap<Uuid, SecurityGroup>,
    pub security_rules: BTreeMap<Uuid, SecurityRule>,
    pub floating_ips: BTreeMap<Uuid, FloatingIp>,
    /// Keypairs by user and name.
    pub keypairs: BTreeMap<String, BTreeMap<String, Keypair>>,
    pub server_groups: BTreeMap<Uuid, ServerGroup>,
    /// Servers, those that are being deleted included.
    pub servers: BTreeMap<Uuid, Server>,
    /// Counts objects, so that lists can be in order of creation although times have only seconds.
    pub serial: u64,
}

impl Model {
    /// The next number in order of creation.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

//! The OpenStack client that the controllers need.
//!
//! ```text
//! clouds.yaml (bytes of a Secret) --CloudConfig--> Session --+-- compute(): servers, flavors, zones, groups, keys
//!                                                            +-- network(): networks, subnets, routers, groups, ports
//!                                                            +-- image():   images
//! ```
//!
//! One [`Session`] stands for one credential in one region. It logs in when first used, once for all callers that wait,
//! and renews its token before it ends and after a 401; clones share it. Service handles ([`ComputeClient`],
//! [`NetworkClient`], [`ImageClient`]) are cheap and borrow nothing.
//!
//! What callers can rely on:
//! - **Unknown is not absent.** A `get` answers `None` only when the service itself said that this object does not
//!   exist; a 404 of a proxy or of a wrong address is an error. A list is complete (all pages) or an error. Deleting
//!   what is absent succeeds.
//! - **A write is sent at most once**, except after a 401, which proves that nothing was done. [`Error::is_lost`] tells
//!   calls that may have happened from those that did not. Reads are repeated a few times.
//! - **Nothing waits for long**: every call has a time limit ([`Limits`]), and `Retry-After` is data
//!   ([`Error::retry_after`]).
//! - **A pause is for all callers** ([`Error::Paused`]): a cloud that sends `Retry-After`, does not answer or does not
//!   accept the credentials is not called for a while.
//! - **Every call passes the gates** ([`CallGate`]), which may stop it or keep its answer: the fence, metrics and the
//!   crash sweep are built on that. A delete or update knows only a random id; [`NetworkClient::about`] and
//!   [`ComputeClient::about`] give such a call the name it has in every run.
//! - **Credentials, tokens and user data** appear in no `Debug`, error or log line, even where a service echoes them.
//!
//! This crate decides nothing: choosing among matches, ownership and order belong to the plan.

mod call;
mod compute;
mod config;
mod error;
mod id;
mod image;
mod lenient;
mod network;
mod session;

pub use call::{Answer, Call, CallGate, Delivery, Service, Verb};
pub use compute::{
    Address, AddressKind, AvailabilityZone, ComputeClient, Fault, Flavor, MAX_USER_DATA_BYTES, Server,
    ServerCreate, ServerGroup, ServerNetwork, ServerQuery, UserData, UserDataTooLong,
};
pub use config::{CloudConfig, ConfigError, Fingerprint, Interface};
pub use error::{Error, Refusal, RefusalKind};
pub use id::{
    FlavorId, ImageId, NetworkId, PortId, ProjectId, RouterId, SecurityGroupId, SecurityGroupRuleId,
    ServerGroupId, ServerId, SubnetId,
};
pub use image::{Image, ImageClient, ImageQuery};
pub use network::{
    AddressPair, AllocationPool, ExternalGateway, Filter, FixedIp, FixedIpRequest, GatewayAddress, Network,
    NetworkClient, NetworkCreate, NetworkQuery, Port, PortCreate, PortQuery, Router, RouterCreate,
    RouterQuery, SecurityGroup, SecurityGroupCreate, SecurityGroupQuery, SecurityGroupRule,
    SecurityGroupRuleCreate, Subnet, SubnetCreate, SubnetQuery, SubnetUpdate,
};
pub use network::{Creation, NetworkResource, Query, Update};
pub use session::{LONGEST_WRITE, Limits, Session, SessionOptions};

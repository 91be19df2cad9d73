//! What the OpenStack controllers share: owner ids, facts about cloud objects, reasons of conditions, and how one
//! server is made and deleted ([`server`]).
//!
//! Ownership: every cloud object of ours carries the owner id of the Kubernetes object it was made for, in its
//! description (Neutron) or metadata (Nova), written by the create call itself. The id is recorded in an annotation
//! before the first create; unlike a uid it survives a move to another management cluster. Only objects that carry the
//! id are found and deleted. Names are for users and tools; two clusters with the same name in one project never touch
//! each other's objects.

mod assumed;
pub mod conditions;
mod draft;
mod facts;
mod ids;
mod owner;
mod pick;
mod request;
pub mod server;

pub(crate) use assumed::named;
pub(crate) use draft::InCloud;
pub use facts::{
    Access, Address, CloudTrouble, Flavor, Group, GroupRule, Image, KnownRule, Network, Port, Router, Server,
    Subnet, Zone, range,
};
pub use ids::{
    FlavorId, ImageId, NetworkId, PortId, RouterId, SecurityGroupId, SecurityGroupRuleId, ServerGroupId,
    ServerId, SubnetId,
};
pub use owner::{OWNER_ID_ANNOTATION, OWNER_METADATA_KEY, PROJECT_ANNOTATION, carries_mark, mark, owner_id};
pub(crate) use owner::{claim, release};
pub use pick::{Picked, pick};
pub use request::{
    REQUESTED_ANNOTATION, Request, SERVER_REQUESTED_ANNOTATION, SETTLING, server_requested_at,
};

//! The kinds of Neutron, and the types of their ids, queries and bodies.

use serde::{Serialize, de::DeserializeOwned};

use super::{Network, Port, Router, SecurityGroup, SecurityGroupRule, Subnet};
use crate::{NetworkId, PortId, RouterId, SecurityGroupId, SecurityGroupRuleId, SubnetId};

/// A kind of Neutron object, named by the type of its id.
pub trait NetworkResource: AsRef<str> + Send + Sync {
    /// What the service says about one.
    type Item: DeserializeOwned + Send;
    /// As in calls: `port`.
    const KIND: &'static str;
    /// The call that replaces its tags: `port/tags`.
    const TAGS_KIND: &'static str;
    /// The key of one in a body.
    const SINGULAR: &'static str;
    /// The key of many in a body.
    const PLURAL: &'static str;
    /// The path of the collection.
    const PATH: &'static str;
}

/// The body of a create.
pub trait Creation: Serialize + Sync {
    /// What it makes.
    type Id: NetworkResource;
    /// The name the new object will have, for the call's identity.
    fn name(&self) -> Option<&str>;
}

/// The body of an update: what is `None` stays as it is.
pub trait Update: Serialize + Sync {
    /// What it changes.
    type Id: NetworkResource;
}

/// Which objects of a kind.
pub trait Query: Sync {
    /// Of which kind.
    type Id: NetworkResource;
    /// As pairs of the query string.
    fn pairs(&self) -> Vec<(&'static str, String)>;
}

macro_rules! resources {
    ($($id:ident => $item:ident, $kind:literal, $singular:literal, $plural:literal, $path:literal;)*) => {$(
        impl NetworkResource for $id {
            type Item = $item;
            const KIND: &'static str = $kind;
            const TAGS_KIND: &'static str = concat!($kind, "/tags");
            const SINGULAR: &'static str = $singular;
            const PLURAL: &'static str = $plural;
            const PATH: &'static str = $path;
        }
    )*};
}

resources! {
    NetworkId => Network, "network", "network", "networks", "networks";
    SubnetId => Subnet, "subnet", "subnet", "subnets", "subnets";
    RouterId => Router, "router", "router", "routers", "routers";
    PortId => Port, "port", "port", "ports", "ports";
    SecurityGroupId => SecurityGroup, "security-group", "security_group", "security_groups", "security-groups";
    SecurityGroupRuleId => SecurityGroupRule,
        "security-group-rule", "security_group_rule", "security_group_rules", "security-group-rules";
}

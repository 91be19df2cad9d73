//! What is known of cloud objects: the part that decisions are made from.

use std::collections::BTreeMap;

use hangar_api::conditions::Actor;

/// Why a cloud cannot be asked at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudTrouble {
    /// Stable, one word in `PascalCase`.
    pub reason: &'static str,
    /// One line, in the words of who said so.
    pub message: String,
    /// Who can end it.
    pub actor: Actor,
}

/// A cloud's answers, or why there are none.
#[derive(Clone, Debug, PartialEq)]
pub enum Access<T> {
    /// Nobody asked: something else is waited for.
    NotAsked,
    /// It cannot be asked.
    Trouble(CloudTrouble),
    /// What it said.
    Facts(T),
}

impl<T> Access<T> {
    /// What it said, if it did.
    pub fn facts(&self) -> Option<&T> {
        match self {
            Self::Facts(facts) => Some(facts),
            Self::NotAsked | Self::Trouble(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn facts_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Facts(facts) => Some(facts),
            Self::NotAsked | Self::Trouble(_) => None,
        }
    }
}

/// A network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The network it is on.
    pub network_id: String,
    /// Its range.
    pub cidr: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Its name servers, in order.
    pub dns_nameservers: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Router {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The external network it leads to.
    pub gateway_network_id: Option<String>,
    /// Its addresses there.
    pub gateway_addresses: Vec<String>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The network it is on.
    pub network_id: String,
    /// The subnets it has addresses on.
    pub subnet_ids: Vec<String>,
    /// Who uses it; empty for nobody.
    pub device_id: String,
    /// What uses it; empty for nobody.
    pub device_owner: String,
    /// Its tags.
    pub tags: Vec<String>,
}

/// What a rule of a security group says.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupRule {
    /// `ingress` or `egress`.
    pub direction: String,
    /// `IPv4` or `IPv6`.
    pub ether_type: String,
    /// A name or a number; any if none.
    pub protocol: Option<String>,
    /// The first port; the type for ICMP.
    pub port_range_min: Option<u16>,
    /// The last port; the code for ICMP.
    pub port_range_max: Option<u16>,
    /// Only from or to this range.
    pub remote_ip_prefix: Option<String>,
    /// Only from or to ports in this group.
    pub remote_group_id: Option<String>,
}

impl GroupRule {
    /// The same rule in one spelling: any address is no restriction, protocols have no capitals.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let mut rule = self.clone();
        let is_any = |prefix: &String| ["0.0.0.0/0", "::/0"].contains(&prefix.as_str());
        rule.remote_ip_prefix = rule.remote_ip_prefix.filter(|prefix| !is_any(prefix));
        rule.protocol = rule.protocol.map(|protocol| protocol.to_lowercase()).filter(|name| name != "any");
        rule
    }
}

/// A rule that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRule {
    /// Its id.
    pub id: String,
    /// What it says.
    pub rule: GroupRule,
}

/// A security group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its rules.
    pub rules: Vec<KnownRule>,
}

/// An availability zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// Whether servers can be put there now.
    pub is_available: bool,
}

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its status; `active` when it can be used.
    pub status: String,
}

/// A flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flavor {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub address: String,
    /// Whether it leads to the server and is not its own.
    pub is_floating: bool,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its status, as Nova spells it.
    pub status: String,
    /// Why it failed, in Nova's words.
    pub fault: Option<String>,
    /// Its addresses by network.
    pub addresses: BTreeMap<String, Vec<Address>>,
    /// Whether its end was asked for.
    pub is_going: bool,
}

impl Server {
    /// Gone as far as we are concerned, though the cloud may still show it.
    pub fn is_gone(&self) -> bool {
        matches!(self.status.as_str(), "DELETED" | "SOFT_DELETED")
    }
}

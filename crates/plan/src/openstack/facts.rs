//! Facts about cloud objects: the part of them that decisions need.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hangar_api::conditions::{Actor, Bad};
use ipnet::IpNet;
use jiff::Timestamp;

use super::conditions::cloud;
use super::{
    FlavorId, ImageId, NetworkId, PortId, RouterId, SecurityGroupId, SecurityGroupRuleId, ServerId, SubnetId,
};
use crate::flow::{Outcome, StepId};

/// Why a cloud cannot be asked at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudTrouble {
    pub reason: Bad,
    /// One line, from whoever said so.
    pub message: String,
    /// Who can end it.
    pub actor: Actor,
}

impl CloudTrouble {
    /// What a step that did not work said. `refused` is the reason for a refusal.
    pub(crate) fn of_step(refused: Bad, step: &StepId, outcome: &Outcome) -> Self {
        let (reason, actor) = match outcome {
            Outcome::Refused(_) => (refused, Actor::ClusterOwner),
            Outcome::Failed(failure) if failure.is_retryable => {
                (cloud::named(failure.category), Actor::Cloud)
            }
            Outcome::Failed(failure) => (cloud::named(failure.category), Actor::ClusterOwner),
            Outcome::Stale => (cloud::OUTDATED, Actor::Hangar),
            Outcome::Lost | Outcome::Created(_) | Outcome::Done => (cloud::ANSWER_LOST, Actor::Hangar),
        };
        let message = match outcome.trouble() {
            Some(words) => format!("{step}: {words}"),
            None => format!("{step}: {outcome}"),
        };
        Self { reason, message, actor }
    }
}

/// A cloud's answers, or why there are none.
#[derive(Clone, Debug, PartialEq)]
pub enum Access<T> {
    /// Nobody asked: something else is waited for.
    NotAsked,
    /// It cannot be asked.
    Trouble(CloudTrouble),
    Facts(T),
}

#[cfg(test)]
impl<T: crate::flow::doubt::Reads> crate::flow::doubt::Reads for Access<T> {
    fn reads(&mut self, doubt: &mut crate::flow::doubt::Doubt) {
        let Self::Facts(facts) = self else { return };
        facts.reads(doubt);
        let (reason, message) = (cloud::CALL_FAILED, crate::flow::doubt::FAILED.to_owned());
        doubt.here(self, Self::Trouble(CloudTrouble { reason, message, actor: Actor::Cloud }), None);
    }
}

#[cfg(test)]
crate::flow::doubt::reads! {;
    CloudTrouble, Network, Subnet, Router, Port, Group, Zone, Image, Flavor, Server, super::ServerGroupId,
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

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    pub id: NetworkId,
    pub name: String,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subnet {
    pub id: SubnetId,
    pub name: String,
    /// The network it is on.
    pub network_id: NetworkId,
    pub cidr: IpNet,
    /// Its name servers, in order.
    pub dns_nameservers: Vec<IpAddr>,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Router {
    pub id: RouterId,
    pub name: String,
    pub tags: Vec<String>,
    /// The external network it leads to.
    pub gateway_network_id: Option<NetworkId>,
    pub gateway_addresses: Vec<IpAddr>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    pub id: PortId,
    pub name: String,
    /// The network it is on.
    pub network_id: NetworkId,
    /// The subnets it has addresses on.
    pub subnet_ids: Vec<SubnetId>,
    /// Who uses it, a server or a router; empty for nobody.
    pub device_id: String,
    /// What uses it; empty for nobody.
    pub device_owner: String,
    /// Whether it has no address: its network had no subnet when it was made. Nova refuses such a port.
    pub has_no_address: bool,
    pub tags: Vec<String>,
}

/// What a rule of a security group says.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupRule {
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
    pub remote_ip_prefix: Option<IpNet>,
    /// Only from or to ports in this group.
    pub remote_group_id: Option<SecurityGroupId>,
}

impl GroupRule {
    /// The same rule in one spelling. Neutron writes some of what it is given in another one, and refuses a second rule
    /// that means the same: compared as text, such a rule would be deleted and made again for ever.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let is_six = self.ether_type == "IPv6";
        let protocol = self.protocol.as_deref().and_then(|name| one_protocol(name, is_six));
        let has_ports = protocol.as_deref().is_some_and(|number| WITH_PORTS.contains(&number));
        let is_every_port = self.port_range_min == Some(1) && self.port_range_max == Some(u16::MAX);
        let ports = |end: Option<u16>| end.filter(|_| !(has_ports && is_every_port));
        Self {
            // Any address is no restriction, and bits behind the prefix mean nothing.
            remote_ip_prefix: self
                .remote_ip_prefix
                .filter(|range| range.prefix_len() > 0)
                .map(|range| range.trunc()),
            port_range_min: ports(self.port_range_min),
            port_range_max: ports(self.port_range_max),
            protocol,
            ..self.clone()
        }
    }
}

/// Protocols that have ports: `tcp`, `udp`, `dccp`, `sctp`, `udplite`.
const WITH_PORTS: [&str; 5] = ["6", "17", "33", "132", "136"];

/// A range of addresses as text; one address is a range of one.
pub fn range(text: &str) -> Option<IpNet> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
}

/// The number of a protocol, where Neutron knows its name. Over IPv6 there is only one ICMP, whatever it is called.
fn one_protocol(name: &str, is_six: bool) -> Option<String> {
    let name = name.to_lowercase();
    let number = match name.as_str() {
        "any" => return None,
        "icmp" | "1" if is_six => "58",
        "icmp" => "1",
        "igmp" => "2",
        "ipip" => "4",
        "tcp" => "6",
        "egp" => "8",
        "udp" => "17",
        "dccp" => "33",
        "ipv6-encap" => "41",
        "ipv6-route" => "43",
        "ipv6-frag" => "44",
        "rsvp" => "46",
        "gre" => "47",
        "esp" => "50",
        "ah" => "51",
        "icmpv6" | "ipv6-icmp" => "58",
        "ipv6-nonxt" => "59",
        "ipv6-opts" => "60",
        "ospf" => "89",
        "vrrp" => "112",
        "pgm" => "113",
        "sctp" => "132",
        "udplite" => "136",
        other => other,
    };
    Some(number.to_owned())
}

/// A rule that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRule {
    pub id: SecurityGroupRuleId,
    pub rule: GroupRule,
}

/// A security group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub id: SecurityGroupId,
    pub name: String,
    pub tags: Vec<String>,
    pub rules: Vec<KnownRule>,
}

/// An availability zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    pub name: String,
    /// Whether servers can be put there now.
    pub is_available: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub id: ImageId,
    pub name: String,
    /// Its status; `active` when it can be used.
    pub status: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flavor {
    pub id: FlavorId,
    pub name: String,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub address: IpAddr,
    /// Whether it leads to the server and is not its own.
    pub is_floating: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    pub id: ServerId,
    pub name: String,
    /// Its status, as Nova spells it.
    pub status: String,
    /// Why it failed, in Nova's words.
    pub fault: Option<String>,
    /// Its addresses by network.
    pub addresses: BTreeMap<String, Vec<Address>>,
    /// Whether its end was asked for.
    pub is_going: bool,
    /// When it last changed, by the cloud's clock.
    pub updated: Option<Timestamp>,
}

impl Server {
    /// Gone as far as we are concerned, though the cloud may still show it.
    pub fn is_gone(&self) -> bool {
        matches!(self.status.as_str(), "DELETED" | "SOFT_DELETED")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(ether_type: &str, protocol: &str, prefix: &str) -> GroupRule {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        GroupRule {
            direction: "ingress".to_owned(),
            ether_type: ether_type.to_owned(),
            protocol: given(protocol),
            remote_ip_prefix: range(prefix),
            ..GroupRule::default()
        }
        .normalized()
    }

    #[test]
    fn rules_that_mean_the_same_are_the_same() {
        for (one, other) in [
            (("IPv4", "TCP", "0.0.0.0/0"), ("IPv4", "6", "")),
            (("IPv4", "udp", "10.1.2.3"), ("IPv4", "17", "10.1.2.3/32")),
            (("IPv4", "", "10.1.2.3/24"), ("IPv4", "any", "10.1.2.0/24")),
            (("IPv4", "ipip", ""), ("IPv4", "4", "")),
            (("IPv6", "icmp", "::/0"), ("IPv6", "ipv6-icmp", "")),
            (("IPv6", "icmpv6", "2001:DB8::1"), ("IPv6", "58", "2001:db8:0::1/128")),
        ] {
            assert_eq!(rule(one.0, one.1, one.2), rule(other.0, other.1, other.2), "{one:?} {other:?}");
        }
        let every = |protocol: &str, first, last| {
            let ports = GroupRule {
                port_range_min: Some(first),
                port_range_max: Some(last),
                ..rule("IPv4", protocol, "")
            };
            ports.normalized() == rule("IPv4", protocol, "")
        };
        assert!(
            every("tcp", 1, 65535) && every("udp", 1, 65535),
            "Neutron keeps no ports where all are meant"
        );
        assert!(!every("tcp", 1, 65534) && !every("tcp", 2, 65535) && !every("icmp", 1, 65535));
        assert_ne!(rule("IPv4", "icmp", ""), rule("IPv4", "ipv6-icmp", ""));
        assert_ne!(rule("IPv4", "tcp", "10.1.2.0/24"), rule("IPv4", "tcp", "10.1.2.0/25"));
        assert_eq!(range("nonsense"), None);
    }
}

//! Links, addresses and routes of one network namespace.

use std::{
    net::{IpAddr, Ipv4Addr},
    os::fd::{AsRawFd, OwnedFd},
};

use ipnet::{IpNet, Ipv4Net};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressMessage, AddressScope},
    link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage},
    route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType},
};
use rustix::io::Errno;

use super::{netlink::Netlink, nic::Route};
use crate::{
    error::{Doing, Error, Result},
    name::check_link,
};

/// One end of a pair of links.
#[derive(Debug, Clone, Default)]
pub struct VethEnd {
    /// Name of the link, at most 15 characters.
    pub name: String,
    /// Hardware address; the kernel chooses one otherwise.
    pub mac: Option<[u8; 6]>,
    /// Largest packet; the kernel's default otherwise.
    pub mtu: Option<u32>,
}

/// What is known of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// Number of the link in its namespace.
    pub index: u32,
    pub name: String,
    /// Free text that was attached to it.
    pub alias: Option<String>,
    /// Hardware address, empty for links without.
    pub mac: Vec<u8>,
}

/// A conversation with the kernel in the network namespace of the thread that opened it.
pub struct Network {
    netlink: Netlink,
}

impl Network {
    /// Opens one where the calling thread is.
    pub fn here() -> Result<Self> {
        Ok(Self { netlink: Netlink::open().doing(|| "open a netlink socket")? })
    }

    /// Looks for a link.
    pub fn link(&mut self, name: &str) -> Result<Option<LinkState>> {
        check_link(name)?;
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        match self.netlink.get(RouteNetlinkMessage::GetLink(message)) {
            Ok(answers) => Ok(answers.iter().find_map(link_state)),
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(None),
            Err(error) => Err(error).doing(|| format!("look for the link {name}")),
        }
    }

    pub fn links(&mut self) -> Result<Vec<LinkState>> {
        let answers = self.netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()));
        Ok(answers.doing(|| "list the links")?.iter().filter_map(link_state).collect())
    }

    fn index(&mut self, name: &str) -> Result<u32> {
        let gone = || std::io::Error::from_raw_os_error(Errno::NODEV.raw_os_error());
        let found = self.link(name)?.ok_or_else(gone).doing(|| format!("find the link {name}"))?;
        Ok(found.index)
    }

    /// Makes a bridge and brings it up.
    pub fn add_bridge(&mut self, name: &str, mtu: Option<u32>) -> Result<()> {
        let mut message = link_message(&VethEnd { name: name.to_owned(), mac: None, mtu })?;
        message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]));
        self.add(message, name)?;
        self.set_up(name)
    }

    /// Makes a pair of links: one here, the other in `peer_netns` (or here too). Both are down.
    pub fn add_veth(&mut self, here: &VethEnd, peer: &VethEnd, peer_netns: Option<&OwnedFd>) -> Result<()> {
        let mut other = link_message(peer)?;
        if let Some(namespace) = peer_netns {
            other.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        }
        let mut message = link_message(here)?;
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]));
        self.add(message, &here.name)
    }

    fn add(&mut self, message: LinkMessage, name: &str) -> Result<()> {
        let request = RouteNetlinkMessage::NewLink(message);
        match self.netlink.change(request, NLM_F_CREATE | NLM_F_EXCL) {
            Err(error) if error.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {
                Err(Error::NameTaken { what: "link", name: name.to_owned(), hint: String::new() })
            }
            done => done.doing(|| format!("create the link {name}")),
        }
    }

    /// Removes a link (and the other end of a pair). `true` when it was there.
    pub fn delete(&mut self, name: &str) -> Result<bool> {
        let Some(found) = self.link(name)? else {
            return Ok(false);
        };
        let mut message = LinkMessage::default();
        message.header.index = found.index;
        match self.netlink.change(RouteNetlinkMessage::DelLink(message), 0) {
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(false),
            done => done.doing(|| format!("delete the link {name}")).map(|()| true),
        }
    }

    /// Brings a link up.
    pub fn set_up(&mut self, name: &str) -> Result<()> {
        self.set(name, |message| {
            message.header.flags |= LinkFlags::Up;
            message.header.change_mask |= LinkFlags::Up;
        })
    }

    /// Makes a link a port of a bridge.
    pub fn set_bridge(&mut self, name: &str, bridge: &str) -> Result<()> {
        let bridge = self.index(bridge)?;
        self.set(name, |message| {
            message.attributes.push(LinkAttribute::Controller(bridge));
        })
    }

    /// Gives a link a fixed hardware address.
    pub fn set_mac(&mut self, name: &str, mac: [u8; 6]) -> Result<()> {
        self.set(name, |message| {
            message.attributes.push(LinkAttribute::Address(mac.to_vec()));
        })
    }

    /// Attaches free text to a link, which `ip link` shows.
    pub fn set_alias(&mut self, name: &str, alias: &str) -> Result<()> {
        self.set(name, |message| {
            message.attributes.push(LinkAttribute::IfAlias(alias.to_owned()));
        })
    }

    fn set(&mut self, name: &str, change: impl FnOnce(&mut LinkMessage)) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        change(&mut message);
        self.netlink
            .change(RouteNetlinkMessage::SetLink(message), 0)
            .doing(|| format!("change the link {name}"))
    }

    /// Gives a link an address; no complaint if it has it already.
    pub fn add_address(&mut self, name: &str, address: IpNet) -> Result<()> {
        let message = self.address_message(name, address)?;
        self.netlink
            .change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing(|| format!("add the address {address} to {name}"))
    }

    /// Takes an address away; no complaint if it is not there.
    pub fn delete_address(&mut self, name: &str, address: IpNet) -> Result<()> {
        let message = self.address_message(name, address)?;
        match self.netlink.change(RouteNetlinkMessage::DelAddress(message), 0) {
            Err(error) if error.raw_os_error() == Some(Errno::ADDRNOTAVAIL.raw_os_error()) => Ok(()),
            done => done.doing(|| format!("remove the address {address} from {name}")),
        }
    }

    fn address_message(&mut self, name: &str, address: IpNet) -> Result<AddressMessage> {
        let mut message = AddressMessage::default();
        message.header.index = self.index(name)?;
        message.header.prefix_len = address.prefix_len();
        message.header.scope = AddressScope::Universe;
        message.header.family = family(address.addr());
        message.attributes.push(AddressAttribute::Address(address.addr()));
        if let IpNet::V4(net) = address {
            message.attributes.push(AddressAttribute::Local(address.addr()));
            if net.prefix_len() < 31 {
                message.attributes.push(AddressAttribute::Broadcast(net.broadcast()));
            }
        }
        Ok(message)
    }

    /// Adds a route, or replaces the one to the same destination.
    pub fn add_route(&mut self, route: &Route) -> Result<()> {
        let message = self.route_message(route)?;
        self.netlink
            .change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing(|| format!("add the route to {}", route.destination))
    }

    fn route_message(&mut self, route: &Route) -> Result<RouteMessage> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(route.destination.addr());
        message.header.destination_prefix_length = route.destination.prefix_len();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        message.header.scope = if route.via.is_some() { RouteScope::Universe } else { RouteScope::Link };
        if route.destination.prefix_len() > 0 {
            message.attributes.push(RouteAttribute::Destination(route.destination.network().into()));
        }
        if let Some(via) = route.via {
            message.attributes.push(RouteAttribute::Gateway(via.into()));
        }
        if let Some(link) = &route.link {
            message.attributes.push(RouteAttribute::Oif(self.index(link)?));
        }
        Ok(message)
    }

    /// IPv4 addresses as (link number, address with its prefix).
    pub fn addresses(&mut self) -> Result<Vec<(u32, Ipv4Net)>> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        let answers = self.netlink.dump(RouteNetlinkMessage::GetAddress(message));
        let mut found = Vec::new();
        for answer in answers.doing(|| "list the addresses")? {
            let RouteNetlinkMessage::NewAddress(message) = answer else {
                continue;
            };
            for attribute in &message.attributes {
                if let AddressAttribute::Local(IpAddr::V4(address)) = attribute
                    && let Ok(net) = Ipv4Net::new(*address, message.header.prefix_len)
                {
                    found.push((message.header.index, net));
                }
            }
        }
        Ok(found)
    }

    /// IPv4 routes of all tables as (link number, destination).
    pub fn routes(&mut self) -> Result<Vec<(Option<u32>, Ipv4Net)>> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        let answers = self.netlink.dump(RouteNetlinkMessage::GetRoute(message));
        let mut found = Vec::new();
        for answer in answers.doing(|| "list the routes")? {
            let RouteNetlinkMessage::NewRoute(message) = answer else {
                continue;
            };
            let (mut destination, mut link) = (Ipv4Addr::UNSPECIFIED, None);
            for attribute in &message.attributes {
                match attribute {
                    RouteAttribute::Destination(RouteAddress::Inet(address)) => destination = *address,
                    RouteAttribute::Oif(index) => link = Some(*index),
                    _ => {}
                }
            }
            if let Ok(net) = Ipv4Net::new(destination, message.header.destination_prefix_length) {
                found.push((link, net));
            }
        }
        Ok(found)
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn link_message(end: &VethEnd) -> Result<LinkMessage> {
    check_link(&end.name)?;
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(end.name.clone()));
    if let Some(mac) = end.mac {
        message.attributes.push(LinkAttribute::Address(mac.to_vec()));
    }
    if let Some(mtu) = end.mtu {
        message.attributes.push(LinkAttribute::Mtu(mtu));
    }
    Ok(message)
}

fn link_state(answer: &RouteNetlinkMessage) -> Option<LinkState> {
    let RouteNetlinkMessage::NewLink(message) = answer else {
        return None;
    };
    let mut state =
        LinkState { index: message.header.index, name: String::new(), alias: None, mac: Vec::new() };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => state.name.clone_from(name),
            LinkAttribute::IfAlias(alias) => state.alias = Some(alias.clone()),
            LinkAttribute::Address(mac) => state.mac.clone_from(mac),
            _ => {}
        }
    }
    Some(state)
}

//! Makes a network: a namespace with a bridge that servers and routers are plugged into, and the metadata service.
//!
//! The bridge routes nothing. It has one address, the metadata service's, and routes to the subnets, so that answers
//! reach the servers.

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

use hangar_machine::Result;
use hangar_machine::net::{Attachment, Netns, Route};
use ipnet::{IpNet, Ipv4Net};
use uuid::Uuid;

use super::names::{self, BRIDGE};
use super::work::Work;
use super::{metadata, rules};
use crate::topology::{Network, Topology};

impl Work<'_> {
    /// Where ports of a network are plugged in, if we know it.
    pub(super) fn attachment(&self, network: Uuid) -> Result<Option<Attachment>> {
        if self.topology.external == Some(network) {
            return Ok(Some(self.fabric.attachment()));
        }
        if !self.topology.networks.contains_key(&network) {
            return Ok(None);
        }
        let netns = self.environment.netns(&names::network(network)?);
        Ok(Some(Attachment { netns: netns.path().to_owned(), bridge: BRIDGE.to_owned() }))
    }

    /// Makes or repairs a network.
    pub(super) fn ensure_network(&mut self, id: Uuid, network: &Network) -> Result<()> {
        let netns = self.environment.netns(&names::network(id)?);
        netns.ensure()?;
        // Not inherited from the host, whatever that has.
        netns.set_sysctl("ipv4/ip_forward", "0")?;
        for setting in ["bridge/bridge-nf-call-iptables", "bridge/bridge-nf-call-ip6tables"] {
            netns.set_sysctl(setting, "1")?;
        }
        let address = Ipv4Net::new_assert(metadata::ADDRESS, 32);
        netns.network(|inside| {
            if inside.link(BRIDGE)?.is_none() {
                inside.add_bridge(BRIDGE, Some(network.mtu))?;
            }
            // A bridge without an address of its own takes that of its lowest port, and changes it as ports come and go.
            inside.set_mac(BRIDGE, names::mac(id))?;
            inside.add_address(BRIDGE, IpNet::V4(address))?;
            inside.set_up(BRIDGE)?;
            for subnet in network.subnets.iter().filter(|subnet| subnet.cidr.addr().is_ipv4()) {
                let link = Some(BRIDGE.to_owned());
                inside.add_route(&Route { destination: subnet.cidr, via: None, link })?;
            }
            Ok(())
        })?;
        let link_of = |port: Uuid| self.port_link(port);
        let text = rules::network(self.topology, id, link_of);
        self.apply(&netns, text)?;
        let empty = Topology::default();
        let before = self.memory.before.as_ref().unwrap_or(&empty);
        self.forget(&netns, rules::revoked(before, self.topology, id))?;
        let namespace = identity(&netns);
        self.memory.services.ensure(id, &netns, namespace, self.runtime)
    }

    /// The bridge's end of the link of a port that a server has.
    fn port_link(&self, port: Uuid) -> Option<String> {
        let (server, index) = self.topology.servers.iter().find_map(|(id, server)| {
            let index = server.ports.iter().position(|other| *other == port)?;
            Some((*id, index))
        })?;
        let machine = names::server(server).ok()?;
        Some(self.environment.port_link(&machine, &super::server::link_name(index)))
    }

    /// Removes a network that is no longer wanted.
    pub(super) fn remove_network(&mut self, id: Uuid) -> Result<()> {
        self.memory.services.end(id, self.runtime);
        self.environment.delete_netns(&names::network(id)?).map(drop)
    }

    /// Applies rules, unless this very namespace has them.
    pub(super) fn apply(&mut self, netns: &Netns, text: String) -> Result<()> {
        let applied = (identity(netns), text);
        if self.memory.rules.get(netns.path()) == Some(&applied) {
            return Ok(());
        }
        self.memory.rules.remove(netns.path());
        self.nft.apply(netns, &applied.1)?;
        self.memory.rules.insert(netns.path().to_owned(), applied);
        Ok(())
    }

    /// Forgets connections of these addresses.
    pub(super) fn forget(&self, netns: &Netns, addresses: impl IntoIterator<Item = IpAddr>) -> Result<()> {
        addresses.into_iter().try_for_each(|address| self.conntrack.forget(netns, address))
    }
}

/// The kernel's number of the namespace behind a path.
fn identity(netns: &Netns) -> u64 {
    std::fs::metadata(netns.path()).map_or(0, |found| found.ino())
}

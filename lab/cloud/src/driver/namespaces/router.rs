//! Makes a router: a namespace with a leg in each of its networks and, if it has a gateway, one in the external
//! network.
//!
//! It holds the gateway addresses of the subnets, its external address and the floating addresses, and translates.

use std::net::IpAddr;

use hangar_machine::net::{Attachment, Netns, Route, VethEnd};
use hangar_machine::{Error, Result};
use ipnet::{IpNet, Ipv4Net};
use uuid::Uuid;

use super::names::{self, EXTERNAL};
use super::rules;
use super::work::Work;
use crate::topology::Router;

/// A link of a router.
struct Leg {
    name: String,
    port: String,
    attachment: Attachment,
    mac: [u8; 6],
    mtu: Option<u32>,
    addresses: Vec<IpNet>,
}

impl Work<'_> {
    /// Makes or repairs a router.
    pub(super) fn ensure_router(&mut self, id: Uuid, router: &Router) -> Result<()> {
        let netns = self.environment.netns(&names::router(id)?);
        netns.ensure()?;
        for (setting, value) in
            [("ipv4/ip_forward", "1"), ("ipv4/conf/all/rp_filter", "0"), ("ipv4/conf/default/rp_filter", "0")]
        {
            netns.set_sysctl(setting, value)?;
        }
        let legs = self.legs(id, router)?;
        remove_surplus(&netns, &legs)?;
        for leg in &legs {
            ensure_leg(&netns, leg)?;
        }
        if router.external_address.is_some() {
            let gateway = Route::default_via(IpAddr::V4(self.fabric.spec().gateway.addr()));
            netns.network(|inside| inside.add_route(&gateway))?;
        }
        self.apply(&netns, rules::router(router))?;
        let before = self.memory.before.as_ref().and_then(|before| before.routers.get(&id));
        let before = before.map(|router| router.floating.clone()).unwrap_or_default();
        self.forget(&netns, rules::dropped_floating(&before, &router.floating))
    }

    fn legs(&self, id: Uuid, router: &Router) -> Result<Vec<Leg>> {
        let mut legs = Vec::new();
        for (port, interface) in &router.interfaces {
            let attachment = self.attachment(interface.network)?.ok_or_else(|| {
                Error::Invalid(format!("network {} of router {id} does not exist", interface.network))
            })?;
            legs.push(Leg {
                name: names::leg(*port),
                port: names::leg_port(*port),
                attachment,
                mac: names::mac(*port),
                mtu: self.topology.networks.get(&interface.network).map(|network| network.mtu),
                addresses: interface.addresses.clone(),
            });
        }
        if let Some(external) = router.external_address {
            let prefix = self.fabric.range().prefix_len();
            let own = IpNet::new(external, prefix)
                .map_err(|error| Error::Invalid(format!("external address {external}: {error}")))?;
            let floating = router.floating.keys().map(|address| IpNet::from(*address));
            legs.push(Leg {
                name: EXTERNAL.to_owned(),
                port: names::external_port(id),
                attachment: self.fabric.attachment(),
                mac: names::mac(id),
                mtu: self.fabric.spec().mtu,
                addresses: [own].into_iter().chain(floating).collect(),
            });
        }
        Ok(legs)
    }

    /// Removes a router that is no longer wanted.
    pub(super) fn remove_router(&mut self, id: Uuid) -> Result<()> {
        self.environment.delete_netns(&names::router(id)?).map(drop)
    }
}

fn remove_surplus(netns: &Netns, legs: &[Leg]) -> Result<()> {
    netns.network(|inside| {
        for link in inside.links()? {
            let is_ours = names::is_leg(&link.name) || link.name == EXTERNAL;
            if is_ours && !legs.iter().any(|leg| leg.name == link.name) {
                inside.delete(&link.name)?;
            }
        }
        Ok(())
    })
}

fn ensure_leg(netns: &Netns, leg: &Leg) -> Result<()> {
    let outside = Netns::at(&leg.attachment.netns);
    let has_inner = netns.network(|inside| inside.link(&leg.name))?.is_some();
    let has_port = outside.network(|network| network.link(&leg.port))?.is_some();
    if !(has_inner && has_port) {
        netns.network(|inside| inside.delete(&leg.name))?;
        let namespace = netns.open()?;
        let port = VethEnd { name: leg.port.clone(), mac: None, mtu: leg.mtu };
        let inner = VethEnd { name: leg.name.clone(), mac: Some(leg.mac), mtu: leg.mtu };
        outside.network(|network| {
            network.delete(&port.name)?;
            network.add_veth(&port, &inner, Some(&namespace))
        })?;
    }
    // Also for a pair that is there: its maker may have been killed half way.
    outside.network(|network| {
        network.set_bridge(&leg.port, &leg.attachment.bridge)?;
        network.set_up(&leg.port)
    })?;
    let new = netns.network(|inside| {
        let index = inside.link(&leg.name)?.map(|link| link.index);
        let present: Vec<Ipv4Net> = inside
            .addresses()?
            .into_iter()
            .filter(|(on, _)| Some(*on) == index)
            .map(|(_, net)| net)
            .collect();
        for surplus in present.iter().filter(|net| !leg.addresses.contains(&IpNet::V4(**net))) {
            inside.delete_address(&leg.name, IpNet::V4(*surplus))?;
        }
        for address in &leg.addresses {
            inside.add_address(&leg.name, *address)?;
        }
        inside.set_up(&leg.name)?;
        let is_new = |address: &IpNet| matches!(address, IpNet::V4(net) if !present.contains(net));
        Ok(leg.addresses.iter().copied().filter(is_new).collect::<Vec<_>>())
    })?;
    announce(netns, leg, &new);
    Ok(())
}

/// Floating addresses come without a range: they are announced in that of the link's own address.
fn announce(netns: &Netns, leg: &Leg, new: &[IpNet]) {
    let range = leg.addresses.iter().find_map(|address| match address {
        IpNet::V4(net) if net.prefix_len() < 32 => Some(*net),
        _ => None,
    });
    for address in new {
        if let (IpNet::V4(address), Some(range)) = (address, range) {
            netns.announce(address.addr(), range);
        }
    }
}

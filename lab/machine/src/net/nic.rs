//! A machine's link to a network: a pair of links, one end in the machine, the other a port of a bridge.

use std::{net::IpAddr, path::PathBuf};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Netns, VethEnd};
use crate::{
    error::{Error, Result},
    name::{EnvironmentIdentity, Name, check_link},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Where it leads; `0.0.0.0/0` is the default route.
    pub destination: IpNet,
    /// The next hop; directly attached without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<IpAddr>,
    /// The link, needed where there is no next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

impl Route {
    /// The default route through `gateway`.
    pub fn default_via(gateway: IpAddr) -> Self {
        let destination = match gateway {
            IpAddr::V4(_) => IpNet::V4(ipnet::Ipv4Net::default()),
            IpAddr::V6(_) => IpNet::V6(ipnet::Ipv6Net::default()),
        };
        Self { destination, via: Some(gateway), link: None }
    }
}

/// A bridge that links can be attached to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Path of the network namespace the bridge is in.
    pub netns: PathBuf,
    /// Name of the bridge.
    pub bridge: String,
}

/// A machine's link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Name inside the machine, such as `eth0`.
    pub name: String,
    /// What it is attached to.
    pub attachment: Attachment,
    /// Addresses, each with the prefix of its network.
    pub addresses: Vec<IpNet>,
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Hardware address; by default one that follows from the machine's name, so that it survives a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<[u8; 6]>,
    /// Largest packet; the kernel's default otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
}

impl Nic {
    pub(crate) fn check(&self) -> Result<()> {
        check_link(&self.name)?;
        if self.name == "lo" {
            return Err(Error::Invalid("a machine's link cannot be called \"lo\"".to_owned()));
        }
        Ok(())
    }

    /// Makes the pair unless both ends are there, then addresses and routes.
    pub(crate) fn ensure(
        &self,
        identity: &EnvironmentIdentity,
        machine: &Name,
        inside: &Netns,
    ) -> Result<()> {
        let outside = Netns::at(&self.attachment.netns);
        if !outside.exists() {
            let netns = self.attachment.netns.display();
            return Err(Error::Invalid(format!("the network {netns} of link {} is not up", self.name)));
        }
        let port = identity.port(machine, &self.name);
        let has_inner = inside.network(|network| network.link(&self.name))?.is_some();
        let has_port = outside.network(|network| network.link(&port))?.is_some();
        if !(has_inner && has_port) {
            self.connect(identity, machine, inside)?;
        }
        // Also for a pair that is there: its maker may have been killed half way.
        outside.network(|network| {
            network.set_alias(&port, &format!("{machine} {}", self.name))?;
            network.set_bridge(&port, &self.attachment.bridge)?;
            network.set_up(&port)
        })?;
        inside.network(|network| {
            for address in &self.addresses {
                network.add_address(&self.name, *address)?;
            }
            network.set_up(&self.name)?;
            for route in &self.routes {
                let link = route.link.clone().unwrap_or_else(|| self.name.clone());
                network.add_route(&Route { link: Some(link), ..route.clone() })?;
            }
            Ok(())
        })?;
        for address in &self.addresses {
            if let IpNet::V4(net) = address {
                inside.announce(net.addr(), *net);
            }
        }
        Ok(())
    }

    fn connect(&self, identity: &EnvironmentIdentity, machine: &Name, inside: &Netns) -> Result<()> {
        let namespace = inside.open()?;
        let port = VethEnd { name: identity.port(machine, &self.name), mac: None, mtu: self.mtu };
        let mac = self.mac.unwrap_or_else(|| identity.mac(machine, &self.name));
        let inner = VethEnd { name: self.name.clone(), mac: Some(mac), mtu: self.mtu };
        Netns::at(&self.attachment.netns).network(|network| {
            network.delete(&port.name)?;
            network.add_veth(&port, &inner, Some(&namespace))
        })
    }

    /// Removes the pair, also when the machine's namespace is gone already.
    pub(crate) fn remove(&self, identity: &EnvironmentIdentity, machine: &Name) -> Result<()> {
        let outside = Netns::at(&self.attachment.netns);
        if outside.exists() {
            outside.network(|network| network.delete(&identity.port(machine, &self.name)))?;
        }
        Ok(())
    }
}

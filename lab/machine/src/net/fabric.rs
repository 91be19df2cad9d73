//! The private network of an environment: a namespace with a bridge, and one link to the host.
//!
//! The bridge has the gateway address. The host is one more station on it: its end of the link carries an address of
//! the range, and nothing else of the host changes (no forwarding, no filter rules, no settings). The host would no
//! longer reach a range that it already uses elsewhere, so overlaps are refused. [`super::outside`] provides the way
//! out, if the host has one.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use super::{Attachment, Netns, Network, Nic, Route, VethEnd, names, outside, overlap};
use crate::{
    environment::Environment,
    error::{Error, Result},
    host, json_file,
    lock::Lock,
    name::{Name, mac},
};

/// The bridge's name in its namespace.
const BRIDGE: &str = "br0";
/// The bridge's end of the host's link.
const HOST_PORT: &str = "host";
/// A change of a fabric takes milliseconds; who waits longer waits for a process that hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a private network should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricSpec {
    /// Name, unique in the environment.
    pub name: Name,
    /// Address of the bridge with the prefix of the whole range, such as `100.72.0.1/20`.
    pub gateway: Ipv4Net,
    /// The host's address in the range; without it the host has no link to this network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Ipv4Addr>,
    /// Largest packet; the kernel's default otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Machines reach the outside by TCP where the host can ([`Fabric::outside_obstacle`] says why not).
    #[serde(default)]
    pub outside: bool,
    /// Ranges that mean something inside machines, such as a cluster's Services before anything serves them: what is
    /// sent to them is answered as unreachable at once, rather than by whoever has such an address outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_outside: Vec<Ipv4Net>,
}

impl FabricSpec {
    fn check(&self) -> Result<()> {
        let range = self.gateway.trunc();
        let (first, last) = (range.network(), range.broadcast());
        for (what, address) in [("gateway", Some(self.gateway.addr())), ("host", self.host)] {
            let Some(address) = address else { continue };
            if !range.contains(&address) || address == first || address == last {
                return Err(Error::Invalid(format!("{what} address {address} is not usable in {range}")));
            }
        }
        if self.host == Some(self.gateway.addr()) {
            return Err(Error::Invalid(format!("gateway and host both want {}", self.gateway.addr())));
        }
        Ok(())
    }
}

/// A private network that is up.
#[derive(Debug, Clone)]
pub struct Fabric {
    environment: Environment,
    spec: FabricSpec,
}

impl Fabric {
    /// What it was made from.
    pub fn spec(&self) -> &FabricSpec {
        &self.spec
    }

    /// Its range of addresses.
    pub fn range(&self) -> Ipv4Net {
        self.spec.gateway.trunc()
    }

    /// Its namespace, where gateway services listen and rules apply.
    pub fn netns(&self) -> Netns {
        Netns::at(self.environment.identity().fabric_netns(&self.spec.name))
    }

    /// The bridge, for links.
    pub fn attachment(&self) -> Attachment {
        Attachment { netns: self.netns().path().to_owned(), bridge: BRIDGE.to_owned() }
    }

    /// Name of the host's end of its link, if there is one.
    pub fn host_link(&self) -> Option<String> {
        self.spec.host.map(|_| self.environment.identity().host_link(&self.spec.name))
    }

    /// A machine's link with this address and the default route through the gateway.
    pub fn nic(&self, name: impl Into<String>, address: Ipv4Addr) -> Result<Nic> {
        let range = self.range();
        if !range.contains(&address) || Some(address) == self.spec.host || address == self.spec.gateway.addr()
        {
            return Err(Error::Invalid(format!("address {address} is not free in {range}")));
        }
        let address = Ipv4Net::new(address, range.prefix_len())
            .map_err(|error| Error::Invalid(format!("prefix of {range}: {error}")))?;
        Ok(Nic {
            name: name.into(),
            attachment: self.attachment(),
            addresses: vec![IpNet::V4(address)],
            routes: vec![Route::default_via(IpAddr::V4(self.spec.gateway.addr()))],
            mac: None,
            mtu: self.spec.mtu,
        })
    }

    /// Why machines cannot reach the outside, if they cannot.
    pub fn outside_obstacle(&self) -> Result<Option<&'static str>> {
        if self.spec.outside {
            outside::obstacle(self.environment.nft())
        } else {
            Ok(Some("it was not asked for"))
        }
    }

    /// Where names of the outside can be asked on this network, by UDP and TCP; only while there is a way out.
    pub fn names(&self) -> SocketAddr {
        SocketAddr::from((self.spec.gateway.addr(), names::PORT))
    }

    fn build(&self, directory: &Path, lock: &Lock) -> Result<()> {
        let netns = self.netns();
        netns.ensure()?;
        let mac = mac(&[netns.path().as_os_str().as_encoded_bytes(), b"gateway"]);
        netns.network(|network| {
            if network.link(BRIDGE)?.is_none() {
                network.add_bridge(BRIDGE, self.spec.mtu)?;
            }
            // A bridge without an address of its own takes that of its lowest port, and changes it as machines
            // come and go, which breaks every neighbour's cache.
            network.set_mac(BRIDGE, mac)?;
            network.add_address(BRIDGE, IpNet::V4(self.spec.gateway))?;
            network.set_up(BRIDGE)
        })?;
        netns.set_sysctl("ipv4/ip_forward", "1")?;
        self.link_host(&netns)?;
        if self.outside_obstacle()?.is_none() {
            let environment = &self.environment;
            let (nft, supervisor) = (environment.nft(), environment.supervisor());
            let mut inside = vec![self.range()];
            inside.extend(&self.spec.never_outside);
            outside::open(directory, &netns, BRIDGE, &inside, nft, supervisor, lock)?;
        }
        Ok(())
    }

    fn link_host(&self, netns: &Netns) -> Result<()> {
        let (Some(address), Some(name)) = (self.spec.host, self.host_link()) else {
            return Ok(());
        };
        let address = Ipv4Net::new(address, self.range().prefix_len())
            .map_err(|error| Error::Invalid(format!("prefix of {}: {error}", self.range())))?;
        let alias = format!("{}{} {}", outside::ALIAS, self.environment.name(), self.spec.name);
        let mut host = Network::here()?;
        let has_port = netns.network(|network| network.link(HOST_PORT))?.is_some();
        match host.link(&name)? {
            Some(link) if link.alias.as_ref().is_some_and(|other| *other != alias) => {
                let hint = " on this host and is not ours".to_owned();
                return Err(Error::NameTaken { what: "link", name, hint });
            }
            // Without a name its maker was killed half way: it is made again.
            Some(link) if link.alias.is_some() && has_port => {}
            _ => {
                host.delete(&name)?;
                let inside = netns.open()?;
                let end = VethEnd { name: name.clone(), mac: None, mtu: self.spec.mtu };
                let port = VethEnd { name: HOST_PORT.to_owned(), mac: None, mtu: self.spec.mtu };
                host.add_veth(&end, &port, Some(&inside))?;
                host.set_alias(&name, &alias)?;
            }
        }
        netns.network(|network| {
            network.set_bridge(HOST_PORT, BRIDGE)?;
            network.set_up(HOST_PORT)
        })?;
        host.set_up(&name)?;
        host.add_address(&name, IpNet::V4(address))
    }
}

impl Environment {
    fn fabric_directory(&self, name: &Name) -> PathBuf {
        self.directory().join("fabrics").join(name.as_str())
    }

    fn fabric_handle(&self, spec: FabricSpec) -> Fabric {
        Fabric { environment: self.clone(), spec }
    }

    /// Makes a private network, or repairs one that was made from the same specification (after a reboot, say).
    pub fn create_fabric(&self, spec: FabricSpec) -> Result<Fabric> {
        host::check_privileges()?;
        // Before the lock's file is written.
        spec.check()?;
        let directory = self.fabric_directory(&spec.name);
        let lock = Lock::acquire(&directory, PATIENCE, || Ok(()))?;
        let record = directory.join("fabric.json");
        // Half a record, of a host that crashed, is written anew.
        let known: Option<FabricSpec> = json_file::read_if_whole(&record)?;
        if known.as_ref().is_some_and(|known| *known != spec) {
            let hint = " with other values: delete it first".to_owned();
            return Err(Error::NameTaken { what: "fabric", name: spec.name.to_string(), hint });
        }
        let fabric = self.fabric_handle(spec);
        let made = self.make_fabric(&fabric, &directory, &lock);
        if made.is_err() && known.is_none() {
            // The first failure is what matters.
            let _ = self.remove_fabric(&fabric.spec.name);
        }
        drop(lock);
        self.tidy();
        made.map(|()| fabric)
    }

    /// Refuses a network that [`Self::create_fabric`] would refuse, and makes nothing.
    pub fn check_fabric(&self, spec: &FabricSpec) -> Result<()> {
        spec.check()?;
        match spec.host {
            Some(_) => overlap::check(spec.gateway.trunc(), &self.identity().host_link(&spec.name)),
            None => Ok(()),
        }
    }

    fn make_fabric(&self, fabric: &Fabric, directory: &Path, lock: &Lock) -> Result<()> {
        self.check_fabric(&fabric.spec)?;
        json_file::write(&directory.join("fabric.json"), &fabric.spec)?;
        fabric.build(directory, lock)
    }

    /// Finds a network that was made earlier, perhaps by another process.
    pub fn fabric(&self, name: &Name) -> Result<Fabric> {
        let record = self.fabric_directory(name).join("fabric.json");
        match json_file::read(&record)? {
            Some(spec) => Ok(self.fabric_handle(spec)),
            None => Err(Error::NotFound {
                what: "fabric",
                name: name.to_string(),
                environment: self.name().to_string(),
            }),
        }
    }

    /// Names of all networks, also of half-made ones.
    pub fn fabrics(&self) -> Result<Vec<Name>> {
        self.names_in("fabrics")
    }

    /// Removes a network and its host link. Machines on it must be gone. `true` when something was there.
    pub fn delete_fabric(&self, name: &Name) -> Result<bool> {
        host::check_privileges()?;
        let netns = self.identity().fabric_netns(name);
        for status in self.machines()? {
            let attached = status.nics.iter().any(|nic| nic.attachment.netns == netns);
            if attached {
                let (fabric, machine) = (name.to_string(), status.name.to_string());
                return Err(Error::FabricInUse { fabric, machine });
            }
        }
        let directory = self.fabric_directory(name);
        let lock =
            if directory.exists() { Some(Lock::acquire(&directory, PATIENCE, || Ok(()))?) } else { None };
        let existed = self.remove_fabric(name)?;
        drop(lock);
        self.tidy();
        Ok(existed)
    }

    fn remove_fabric(&self, name: &Name) -> Result<bool> {
        // First: its socket would keep the namespace alive.
        outside::close(&self.fabric_directory(name))?;
        let mut host = Network::here()?;
        let link = self.identity().host_link(name);
        // Removed by name and alias: a link that happens to have our name is left alone.
        let prefix = format!("{}{} {name}", outside::ALIAS, self.name());
        let ours = host.link(&link)?.is_some_and(|found| found.alias.is_none_or(|alias| alias == prefix));
        let mut existed = ours && host.delete(&link)?;
        existed |= Netns::at(self.identity().fabric_netns(name)).delete()?;
        let directory = self.fabric_directory(name);
        existed |= directory.exists();
        Lock::remove_directory(&directory)?;
        Ok(existed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(gateway: &str, host: Option<&str>) -> FabricSpec {
        FabricSpec {
            name: Name::new("private").unwrap(),
            gateway: gateway.parse().unwrap(),
            host: host.map(|address| address.parse().unwrap()),
            mtu: None,
            outside: false,
            never_outside: Vec::new(),
        }
    }

    #[test]
    fn addresses_must_fit_the_range() {
        spec("100.72.0.1/20", Some("100.72.0.2")).check().unwrap();
        for (gateway, host) in [
            ("100.72.0.0/20", None),
            ("100.72.15.255/20", None),
            ("100.72.0.1/20", Some("100.72.16.1")),
            ("100.72.0.1/20", Some("100.72.0.1")),
            ("100.72.0.1/20", Some("100.72.15.255")),
        ] {
            assert!(spec(gateway, host).check().is_err(), "{gateway} {host:?}");
        }
    }
}

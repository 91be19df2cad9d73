//! Makes a server: a machine with the links, files and services that its ports and its image ask for.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use hangar_machine::net::{Netns, Nic, Route};
use hangar_machine::{Error, Machine, MachineSpec, MachineState, Result};
use ipnet::{IpNet, Ipv4Net};
use uuid::Uuid;

use super::cloud_init::{READY, SEED};
use super::image::{KUBERNETES_VERSION, MachineImage};
use super::work::Work;
use super::{metadata, names};
use crate::driver::Event;
use crate::topology::{Port, Server, Subnet};

/// What services get to end when a server is stopped.
const GRACE: Duration = Duration::from_secs(10);
/// A machine that another process makes or ends right now is soon one or the other.
const PATIENCE: Duration = Duration::from_secs(20);

/// The name of a server's link, by its place among the ports.
pub(super) fn link_name(index: usize) -> String {
    format!("eth{index}")
}

impl Work<'_> {
    /// Makes, starts, stops or repairs a server's machine. Fails when that machine's state is unknown: such an error
    /// is not attributed to the server.
    pub(super) fn ensure_server(&mut self, id: Uuid, server: &Server) -> Result<()> {
        if self.memory.failed.contains(&id) {
            return Ok(());
        }
        let machine = self.environment.machine(&names::server(id)?);
        let state = settled(&machine)?;
        let event = match self.bring(id, server, &machine, state) {
            Ok(event) => event,
            Err(error) => Event::Failed(id, error.to_string()),
        };
        self.say(id, event);
        Ok(())
    }

    fn bring(
        &mut self,
        id: Uuid,
        server: &Server,
        machine: &Machine,
        state: Option<MachineState>,
    ) -> Result<Event> {
        match (state, server.runs) {
            (Some(MachineState::Running(_)), true) => self.reconnect(server, machine)?,
            (Some(MachineState::Running(_)), false) => {
                machine.stop(GRACE)?;
                return Ok(Event::Stopped(id));
            }
            (Some(MachineState::Stopped) | None, false) => return Ok(Event::Stopped(id)),
            (Some(MachineState::Stopped), true) => machine.start()?,
            (Some(_), _) => {
                machine.delete()?;
                self.create(id, server)?;
            }
            (None, true) => self.create(id, server)?,
        }
        self.prepare(id, server, machine)?;
        Ok(Event::Active(id))
    }

    fn create(&mut self, id: Uuid, server: &Server) -> Result<()> {
        let made = self.spec(id, server).and_then(|spec| self.environment.create_machine(spec));
        if made.is_err() {
            self.memory.failed.insert(id);
        }
        made.map(drop)
    }

    /// Gives a machine what must be there before its services go on: images and the config drive.
    fn prepare(&mut self, id: Uuid, server: &Server, machine: &Machine) -> Result<()> {
        if self.memory.prepared.contains(&id) {
            return Ok(());
        }
        if machine.read_file(Path::new(READY)).is_err() {
            for seed in &self.image(server)?.seeds {
                machine.seed(&seed.data, &seed.source)?;
            }
            let directory = Path::new(SEED);
            let document = metadata::document(id, server).to_string();
            machine.write_file(&directory.join("meta_data.json"), document.as_bytes(), 0o600)?;
            if let Some(user_data) = &server.user_data {
                machine.write_file(&directory.join("user_data"), user_data, 0o600)?;
            }
            // Last: whoever reads the others waits for it.
            machine.write_file(Path::new(READY), b"", 0o600)?;
        }
        self.memory.prepared.insert(id);
        Ok(())
    }

    /// Plugs a running machine in again where its network was made anew.
    fn reconnect(&self, server: &Server, machine: &Machine) -> Result<()> {
        for (index, port) in server.ports.iter().enumerate() {
            let network = self.topology.ports.get(port).map(|port| port.network);
            let Some(attachment) = network.map(|id| self.attachment(id)).transpose()?.flatten() else {
                continue;
            };
            let link = self.environment.port_link(machine.name(), &link_name(index));
            let netns = Netns::at(&attachment.netns);
            if netns.exists() && netns.network(|network| network.link(&link))?.is_none() {
                return machine.reconnect();
            }
        }
        Ok(())
    }

    pub(super) fn remove_server(&mut self, id: Uuid) -> Result<()> {
        self.environment.machine(&names::server(id)?).delete()?;
        self.say(id, Event::Gone(id));
        self.memory.said.remove(&id);
        self.memory.prepared.remove(&id);
        self.memory.failed.remove(&id);
        Ok(())
    }

    fn image(&self, server: &Server) -> Result<&MachineImage> {
        let known = || self.settings.images.keys().cloned().collect::<Vec<_>>().join(", ");
        let Some(version) = server.image.get(KUBERNETES_VERSION) else {
            let why =
                format!("its image has no property {KUBERNETES_VERSION}; there are images of {}", known());
            return Err(Error::Invalid(why));
        };
        self.settings.images.get(version).ok_or_else(|| {
            Error::Invalid(format!("no image of Kubernetes {version} is here, only of: {}", known()))
        })
    }

    fn spec(&self, id: Uuid, server: &Server) -> Result<MachineSpec> {
        let image = self.image(server)?;
        let mut spec = MachineSpec::new(names::server(id)?);
        spec.hostname = Some(names::host_name(&server.name, id));
        spec.layers = image.layers.clone();
        spec.binds.clone_from(&image.binds);
        spec.files.clone_from(&image.files);
        spec.services.clone_from(&image.services);
        for (index, id) in server.ports.iter().enumerate() {
            let port = self.topology.ports.get(id);
            let port = port.ok_or_else(|| Error::Invalid(format!("port {id} does not exist")))?;
            let has_default = spec.nics.iter().any(|nic| nic.routes.iter().any(is_default));
            spec.nics.push(self.nic(index, port, has_default)?);
            let subnets = port.fixed.iter().filter_map(|(subnet, _)| self.subnet(port, *subnet));
            let servers: Vec<IpAddr> = subnets.flat_map(|subnet| subnet.name_servers.clone()).collect();
            spec.nameservers.extend(servers);
        }
        if spec.nameservers.is_empty() {
            spec.nameservers.clone_from(&self.settings.name_servers);
        }
        Ok(spec)
    }

    fn subnet(&self, port: &Port, subnet: Uuid) -> Option<&Subnet> {
        let network = self.topology.networks.get(&port.network)?;
        network.subnets.iter().find(|other| other.id == subnet)
    }

    fn nic(&self, index: usize, port: &Port, has_default: bool) -> Result<Nic> {
        let attachment = self.attachment(port.network)?;
        let attachment =
            attachment.ok_or_else(|| Error::Invalid(format!("network {} does not exist", port.network)))?;
        let is_external = self.topology.external == Some(port.network);
        let network = self.topology.networks.get(&port.network);
        let mut nic = Nic {
            name: link_name(index),
            attachment,
            addresses: Vec::new(),
            routes: Vec::new(),
            mac: Some(port.mac),
            mtu: network.map(|network| network.mtu).or(self.fabric.spec().mtu),
        };
        let mut gateway = is_external.then(|| IpAddr::V4(self.fabric.spec().gateway.addr()));
        for (subnet, address) in &port.fixed {
            let subnet = self.subnet(port, *subnet);
            let prefix = match subnet {
                Some(subnet) => subnet.cidr.prefix_len(),
                None if is_external => self.fabric.range().prefix_len(),
                None => return Err(Error::Invalid(format!("the subnet of {address} does not exist"))),
            };
            let net = IpNet::new(*address, prefix)
                .map_err(|error| Error::Invalid(format!("address {address}: {error}")))?;
            nic.addresses.push(net);
            gateway = gateway.or(subnet.and_then(|subnet| subnet.gateway));
            for (destination, via) in subnet.map(|subnet| subnet.host_routes.as_slice()).unwrap_or_default() {
                nic.routes.push(Route { destination: *destination, via: Some(*via), link: None });
            }
        }
        if let Some(gateway) = gateway.filter(|_| !has_default) {
            nic.routes.push(Route::default_via(gateway));
        }
        if index == 0 && !is_external {
            let destination = IpNet::V4(Ipv4Net::new_assert(metadata::ADDRESS, 32));
            nic.routes.push(Route { destination, via: None, link: None });
        }
        Ok(nic)
    }
}

fn is_default(route: &Route) -> bool {
    route.destination.prefix_len() == 0
}

/// The state of a machine, once no process changes it.
fn settled(machine: &Machine) -> Result<Option<MachineState>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = machine.state()?;
        if state != Some(MachineState::Changing) || Instant::now() >= deadline {
            return Ok(state);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

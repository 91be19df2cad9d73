//! Servers.
//!
//! The status of a server is what the driver last reported about it; what it should be (`runs`, `is_deleting`) is what
//! API calls asked for. A server that is being deleted keeps its ports and addresses until the driver reports that
//! nothing is left of it: an address is not given to another server while the first may still answer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Caller, Draw, Flavor, Model, NewPort, Port, Refusal, Standard};

/// Prefix of a port's owner that is a server; the zone follows.
pub(crate) const COMPUTE: &str = "compute:";

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Build,
    Active,
    Shutoff,
    /// It is being started again.
    Reboot,
    /// It could not be made, or died.
    Error,
}

/// Why a server is in error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFault {
    pub message: String,
    pub created: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    pub id: Uuid,
    pub name: String,
    pub description: Option<String>,
    pub project: String,
    pub user: String,
    /// What became of it.
    pub status: Status,
    /// Why it is in error.
    pub fault: Option<ServerFault>,
    /// Whether it should run.
    pub runs: bool,
    /// Whether it should start again once it has stopped.
    pub is_restarting: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// The message with which it fails instead of being made.
    #[serde(alias = "doom")]
    pub fails_with: Option<String>,
    /// The image it was made from.
    pub image: Uuid,
    /// That image's properties at the time.
    pub image_properties: BTreeMap<String, String>,
    pub flavor: Flavor,
    /// Its ports, in order.
    pub ports: Vec<Uuid>,
    /// Those of them that were made for it and go with it.
    pub own_ports: BTreeSet<Uuid>,
    /// When it takes the others; `None` once it has.
    #[serde(default)]
    pub binds_at: Option<Timestamp>,
    pub metadata: BTreeMap<String, String>,
    pub tags: BTreeSet<String>,
    /// User data, in base64 as it was given.
    pub user_data: Option<String>,
    /// Whether a configuration drive was asked for.
    pub config_drive: bool,
    /// Name and text of its key.
    pub key: Option<(String, String)>,
    pub zone: String,
    pub group: Option<Uuid>,
    /// When it was asked for.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// When it first ran.
    pub launched: Option<Timestamp>,
    /// In order of creation.
    pub serial: u64,
}

/// A port that a server shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedPort {
    Existing(String),
    /// A new one in this network, perhaps with this address.
    InNetwork(String, Option<IpAddr>),
}

/// What a server is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the server")]
pub struct NewServer {
    pub name: String,
    pub description: Option<String>,
    pub image: String,
    pub flavor: String,
    /// Nothing said: the project's only network.
    pub networks: Option<Vec<WantedPort>>,
    /// Names or ids, for ports that are made for it.
    pub security_groups: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    pub tags: BTreeSet<String>,
    pub user_data: Option<String>,
    pub config_drive: bool,
    pub key_name: Option<String>,
    pub zone: Option<String>,
    pub group: Option<String>,
    pub fails_with: Option<String>,
}

pub(crate) fn server_not_found(id: impl std::fmt::Display) -> Refusal {
    Refusal::not_found("InstanceNotFound", format!("Instance {id} could not be found."))
}

impl Model {
    /// Makes a server.
    pub fn create_server(
        &mut self,
        caller: &Caller,
        new: NewServer,
        draw: &mut Draw,
    ) -> Result<Uuid, Refusal> {
        let image = Uuid::parse_str(&new.image).ok().and_then(|id| self.images.get(&id));
        let image = image.ok_or_else(|| Refusal::bad("Can not find requested image"))?;
        let (image, image_properties) = (image.id, image.properties.clone());
        let flavor = self.flavors.get(&new.flavor).cloned();
        let flavor =
            flavor.ok_or_else(|| Refusal::bad(format!("Flavor {} could not be found.", new.flavor)))?;
        if flavor.disk == 0 && !caller.is_admin {
            let words = "Only volume-backed servers are allowed for flavors with zero disk.";
            return Err(Refusal::forbidden(words));
        }
        let key = match &new.key_name {
            None => None,
            Some(name) => {
                let key = self.keypair(&caller.user, name);
                let key = key.map_err(|_| Refusal::bad("Invalid key_name provided."))?;
                Some((key.name.clone(), key.public_key.clone()))
            }
        };
        let zone = self.zone(new.zone.as_deref())?;
        let group = match &new.group {
            None => None,
            Some(id) => {
                let group = self.server_group(caller, id);
                Some(group.map_err(|refusal| Refusal::bad(refusal.message))?.id)
            }
        };
        self.check_compute_quota(&caller.project, &flavor, new.metadata.len())?;
        let (id, serial) = (draw.id(), self.next_serial());
        let (ports, own_ports) = self.plug(caller, id, &zone, &new, draw)?;
        let server = Server {
            id,
            name: new.name,
            description: new.description,
            project: caller.project.clone(),
            user: caller.user.clone(),
            status: Status::Build,
            fault: None,
            runs: true,
            is_restarting: false,
            is_deleting: false,
            fails_with: new.fails_with,
            image,
            image_properties,
            flavor,
            ports,
            own_ports,
            binds_at: Some(draw.now + self.binding_delay),
            metadata: new.metadata,
            tags: new.tags,
            user_data: new.user_data,
            config_drive: new.config_drive,
            key,
            zone,
            group,
            created: draw.now,
            updated: draw.now,
            launched: None,
            serial,
        };
        self.servers.insert(id, server);
        Ok(id)
    }

    fn zone(&self, wanted: Option<&str>) -> Result<String, Refusal> {
        // Nova understands zone:host:node; there is one host.
        match wanted.map(|zone| zone.split(':').next().unwrap_or_default()) {
            None => Ok(self.availability_zones.first().cloned().unwrap_or_else(|| "nova".into())),
            Some(zone) if self.availability_zones.iter().any(|it| it == zone) => Ok(zone.into()),
            Some(_) => Err(Refusal::bad("The requested availability zone is not available")),
        }
    }

    /// A project's servers, cores and memory in use.
    pub fn compute_usage(&self, project: &str) -> (i64, i64, i64) {
        let mine = self.servers.values().filter(|server| server.project == project);
        mine.fold((0, 0, 0), |(count, cores, ram), server| {
            (count + 1, cores + i64::from(server.flavor.vcpus), ram + i64::from(server.flavor.ram))
        })
    }

    fn check_compute_quota(&self, project: &str, flavor: &Flavor, metadata: usize) -> Result<(), Refusal> {
        let quota = self.quota(project);
        let (servers, cores, ram) = self.compute_usage(project);
        let limits = [
            ("instances", 1, servers, quota.instances),
            ("cores", i64::from(flavor.vcpus), cores, quota.cores),
            ("ram", i64::from(flavor.ram), ram, quota.ram),
        ];
        for (resource, more, used, limit) in limits {
            if limit >= 0 && used + more > limit {
                return Err(Refusal::forbidden(format!(
                    "Quota exceeded for {resource}: Requested {more}, but already used {used} of {limit} {resource}"
                )));
            }
        }
        let limit = quota.metadata_items;
        if limit >= 0 && i64::try_from(metadata).unwrap_or(i64::MAX) > limit {
            return Err(Refusal::forbidden(format!("Maximum number of metadata items exceeds {limit}")));
        }
        Ok(())
    }

    /// Finds or makes the ports of a new server: all of them, and those that were made for it.
    fn plug(
        &mut self,
        caller: &Caller,
        server: Uuid,
        zone: &str,
        new: &NewServer,
        draw: &mut Draw,
    ) -> Result<(Vec<Uuid>, BTreeSet<Uuid>), Refusal> {
        let wanted = match &new.networks {
            Some(wanted) => wanted.clone(),
            None => self.only_network(caller)?,
        };
        let groups = self.groups_by_name(caller, &new.security_groups)?;
        let (mut ports, mut own) = (vec![], BTreeSet::new());
        for wanted in wanted {
            let port = match wanted {
                WantedPort::Existing(id) => self.free_port(caller, &id)?.id,
                WantedPort::InNetwork(network, address) => {
                    let network = self.server_network(caller, &network)?;
                    let standard = Standard::new(&caller.project, "", "", draw);
                    let owner = format!("{COMPUTE}{zone}");
                    let mut port = NewPort::plain(standard, network, &owner, &server.to_string());
                    port.fixed_ips = address.map(|address| vec![(None, Some(address))]);
                    port.security_groups.clone_from(&groups);
                    let port = self.create_port(port, draw).map_err(as_compute)?;
                    own.insert(port);
                    port
                }
            };
            ports.push(port);
        }
        Ok((ports, own))
    }

    /// A port that a server can be given: one that is taken is refused.
    fn free_port(&mut self, caller: &Caller, id: &str) -> Result<&mut Port, Refusal> {
        let port = self.port_mut(caller, id);
        let port = port.map_err(|_| Refusal::bad(format!("Port id {id} could not be found.")))?;
        if !port.device_id.is_empty() {
            return Err(Refusal::conflict("PortInUse", format!("Port {id} is still in use.")));
        }
        if port.fixed_ips.is_empty() {
            return Err(Refusal::bad(format!("Port {id} requires a FixedIP in order to be used.")));
        }
        Ok(port)
    }

    /// Makes a free port a server's.
    pub(crate) fn bind_port(
        &mut self,
        caller: &Caller,
        server: Uuid,
        zone: &str,
        id: &str,
    ) -> Result<Uuid, Refusal> {
        let port = self.free_port(caller, id)?;
        port.bind(server, zone);
        Ok(port.id)
    }

    fn only_network(&self, caller: &Caller) -> Result<Vec<WantedPort>, Refusal> {
        let mine: Vec<_> =
            self.networks.values().filter(|network| network.standard.project == caller.project).collect();
        match mine[..] {
            [] => Ok(vec![]),
            [network] => Ok(vec![WantedPort::InNetwork(network.id.to_string(), None)]),
            _ => Err(Refusal::conflict(
                "NetworkAmbiguous",
                "Multiple possible networks found, use a Network ID to be more specific.",
            )),
        }
    }

    pub(crate) fn server_network(&self, caller: &Caller, id: &str) -> Result<Uuid, Refusal> {
        let network = self.network(caller, id).map_err(|refusal| Refusal::bad(refusal.message))?;
        if network.external && !caller.is_admin {
            let words = format!("It is not allowed to create an interface on external network {id}");
            return Err(Refusal::forbidden(words));
        }
        if self.subnets_of(network.id).next().is_none() {
            let words = format!("Network {id} requires a subnet in order to boot instances on.");
            return Err(Refusal::bad(words));
        }
        Ok(network.id)
    }

    /// Security groups by name or id; `None` where none was named.
    pub(crate) fn groups_by_name(
        &self,
        caller: &Caller,
        names: &[String],
    ) -> Result<Option<BTreeSet<Uuid>>, Refusal> {
        let mut groups = BTreeSet::new();
        for name in names {
            let mine = self.security_groups.values().filter(|group| group.standard.project == caller.project);
            let matches: Vec<Uuid> = mine
                .filter(|group| group.standard.name == *name || group.id.to_string() == *name)
                .map(|group| group.id)
                .collect();
            match matches[..] {
                [id] => groups.insert(id),
                [] => {
                    return Err(Refusal::bad(format!(
                        "Security group {name} not found for project {}.",
                        caller.project
                    )));
                }
                _ => {
                    let words = format!(
                        "Multiple security groups found matching '{name}'. Use an ID to be more specific."
                    );
                    return Err(Refusal::conflict("NoUniqueMatch", words));
                }
            };
        }
        Ok((!groups.is_empty()).then_some(groups))
    }

    /// A server that the caller may see.
    pub fn server(&self, caller: &Caller, id: &str) -> Result<&Server, Refusal> {
        let server = Uuid::parse_str(id).ok().and_then(|id| self.servers.get(&id));
        server
            .filter(|server| caller.is_admin || server.project == caller.project)
            .ok_or_else(|| server_not_found(id))
    }

    /// A server that the caller may change.
    pub fn server_mut(&mut self, caller: &Caller, id: &str) -> Result<&mut Server, Refusal> {
        let id = self.server(caller, id)?.id;
        self.servers.get_mut(&id).ok_or_else(|| server_not_found(id))
    }

    /// Begins to delete a server. It is gone when the driver says so.
    pub fn delete_server(&mut self, caller: &Caller, id: &str, draw: &Draw) -> Result<(), Refusal> {
        let server = self.server_mut(caller, id)?;
        if !server.is_deleting {
            server.is_deleting = true;
            server.updated = draw.now;
        }
        Ok(())
    }
}

/// Neutron's refusals, as Nova passes them on.
fn as_compute(refusal: Refusal) -> Refusal {
    match refusal.kind.as_str() {
        "OverQuota" => Refusal::forbidden("Maximum number of ports exceeded"),
        "IpAddressAlreadyAllocated" => {
            Refusal::bad(format!("Fixed IP address is already in use: {}", refusal.message))
        }
        "IpAddressGenerationFailure" => Refusal::bad(refusal.message),
        _ => refusal,
    }
}

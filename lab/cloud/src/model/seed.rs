//! Writes the objects of the configuration into the model at each start, over those of the state file.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::address::Pool;
use super::{ApplicationCredential, Draw, Flavor, Image, Model, Network, Project, Standard, Subnet, User};
use crate::config::{Config, ExternalNetworkSeed};
use crate::error::Error;

/// Ids that are derived from names live under this one.
const NAMESPACE: Uuid = Uuid::from_u128(0x6861_6e67_6172_4c63_8f75_6400_0000_0001);

/// The id of a thing that the configuration names and gives no id.
pub(crate) fn id_of(kind: &str, name: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{kind}/{name}").as_bytes())
}

impl Model {
    /// Puts the configuration in.
    pub fn seed(&mut self, config: &Config, draw: &mut Draw) -> Result<(), Error> {
        self.availability_zones.clone_from(&config.availability_zones);
        self.default_quota = config.quota.clone();
        self.binding_delay = SignedDuration::from_millis(config.ports_bound_after_milliseconds.into());
        for seed in &config.projects {
            let id = seed.id.clone().unwrap_or_else(|| id_of("project", &seed.name).simple().to_string());
            self.projects.insert(id.clone(), Project { id: id.clone(), name: seed.name.clone() });
            let group = self.ensure_default_group(&id, draw);
            group
                .map_err(|_| Error::Unknown { what: "quota for the default security group of", name: id })?;
        }
        for seed in &config.users {
            let id = id_of("user", &seed.name).simple().to_string();
            let projects =
                seed.projects.iter().map(|name| self.project_id(name)).collect::<Result<_, _>>()?;
            let user = User {
                id: id.clone(),
                name: seed.name.clone(),
                password: seed.password.clone(),
                projects,
                roles: seed.roles.clone(),
            };
            self.users.insert(id, user);
        }
        for seed in &config.application_credentials {
            let user = id_of("user", &seed.user).simple().to_string();
            if !self.users.contains_key(&user) {
                return Err(Error::Unknown { what: "user", name: seed.user.clone() });
            }
            let derived = || id_of("credential", &format!("{user}/{}", seed.name)).simple().to_string();
            let id = seed.id.clone().unwrap_or_else(derived);
            let credential = ApplicationCredential {
                id: id.clone(),
                name: seed.name.clone(),
                secret: seed.secret.clone(),
                project: self.project_id(&seed.project)?,
                user,
            };
            self.application_credentials.insert(id, credential);
        }
        self.seed_images(config, draw.now);
        for seed in &config.flavors {
            let id = seed.id.clone().unwrap_or_else(|| id_of("flavor", &seed.name).to_string());
            let flavor = Flavor {
                id: id.clone(),
                name: seed.name.clone(),
                vcpus: seed.vcpus,
                ram: seed.ram,
                disk: seed.disk,
                extra_specs: seed.extra_specs.clone(),
            };
            self.flavors.insert(id, flavor);
        }
        if let Some(seed) = &config.external_network {
            self.seed_external(seed, draw);
        }
        Ok(())
    }

    fn project_id(&self, name: &str) -> Result<String, Error> {
        let project = self.projects.values().find(|project| project.name == name);
        let missing = || Error::Unknown { what: "project", name: name.into() };
        Ok(project.ok_or_else(missing)?.id.clone())
    }

    fn seed_images(&mut self, config: &Config, now: Timestamp) {
        let owner = self.projects.keys().next().cloned().unwrap_or_default();
        for seed in &config.images {
            let id = seed.id.unwrap_or_else(|| id_of("image", &seed.name));
            let image = Image {
                id,
                name: seed.name.clone(),
                owner: owner.clone(),
                properties: seed.properties.clone(),
                tags: seed.tags.clone(),
                created: now,
            };
            self.images.insert(id, image);
        }
    }

    fn seed_external(&mut self, seed: &ExternalNetworkSeed, draw: &Draw) {
        let id = seed.id.unwrap_or_else(|| id_of("network", &seed.name));
        let subnet_id = id_of("subnet", &id.to_string());
        // Nobody's: only an administrator may change it.
        let standard = Standard::new("", &seed.name, "", draw);
        let network = self.networks.entry(id).or_insert_with(|| Network {
            id,
            standard: standard.clone(),
            admin_state_up: true,
            shared: false,
            external: true,
            mtu: seed.mtu,
            port_security_enabled: true,
        });
        network.standard.name.clone_from(&seed.name);
        network.mtu = seed.mtu;
        let subnet = self.subnets.entry(subnet_id).or_insert_with(|| Subnet {
            id: subnet_id,
            standard,
            network: id,
            cidr: seed.cidr,
            gateway: seed.gateway,
            pools: vec![],
            name_servers: vec![],
            host_routes: vec![],
            enable_dhcp: false,
            ipv6_address_mode: None,
            ipv6_ra_mode: None,
        });
        subnet.standard.name.clone_from(&seed.name);
        subnet.cidr = seed.cidr;
        subnet.gateway = seed.gateway;
        subnet.pools = vec![Pool { start: seed.pool.0, end: seed.pool.1 }];
        subnet.name_servers.clone_from(&seed.name_servers);
    }
}

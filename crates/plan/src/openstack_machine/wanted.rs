//! Derives the wanted server from an OpenStackMachine.

use hangar_api::infrastructure::v1beta1::{OpenStackMachineSpec, Port};

use super::{InfrastructureFacts, Observed, status};
use crate::openstack::server::{WantedPort, WantedServer, union};

impl Observed {
    /// The server. Its name is the object's own, which is the Machine's too wherever a set made both.
    pub fn wanted_server(&self) -> WantedServer {
        let spec = &self.object.spec;
        let infrastructure = self.infrastructure.iter().next().cloned().unwrap_or_default();
        let machine = self.machine.iter().next().cloned().unwrap_or_default();
        let omits_zone = machine.is_control_plane && infrastructure.omits_zone;
        let metadata = spec.server_metadata.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
        let name = self.object.metadata.name.clone().unwrap_or_default();
        WantedServer {
            field: "spec",
            ports: ports(&name, spec, &infrastructure),
            name,
            owner_id: self.owner_id().unwrap_or_default(),
            image: spec.image.clone(),
            flavor_id: spec.flavor_id.as_deref().map(Into::into),
            flavor: spec.flavor.clone(),
            server_group: spec.server_group.clone(),
            security_groups: spec.security_groups.clone(),
            metadata: metadata.collect(),
            tags: union(&[&spec.tags, &infrastructure.tags]),
            key_name: spec.ssh_key_name.clone().filter(|name| !name.is_empty()),
            config_drive: spec.config_drive,
            availability_zone: machine.failure_domain.filter(|zone| !zone.is_empty() && !omits_zone),
            scheduler_hints: status::scheduler_hints(spec),
        }
    }
}

/// The ports in order. Names follow from the server's: they are how a port is found again.
fn ports(server: &str, spec: &OpenStackMachineSpec, infrastructure: &InfrastructureFacts) -> Vec<WantedPort> {
    let mut given = spec.ports.clone();
    if given.is_empty() {
        given.push(Port::default());
    }
    let ports = given.into_iter().enumerate().map(|(index, port)| {
        let is_in_cluster = port.network.is_none();
        let is_left_open = is_in_cluster && port.fixed_ips.is_empty();
        let managed_group =
            infrastructure.security_group_id.iter().filter(|_| port.security_groups.is_empty());
        let is_unfiltered = is_in_cluster && infrastructure.disables_port_security;
        WantedPort {
            name: format!("{server}-{}", suffix(index, &port)),
            network_id: infrastructure.network_id.clone(),
            subnet_ids: if is_left_open { infrastructure.subnet_ids.clone() } else { Vec::new() },
            security_group_ids: managed_group.cloned().collect(),
            given: Port {
                tags: union(&[&port.tags, &spec.tags, &infrastructure.tags]),
                disable_port_security: port.disable_port_security.or(Some(is_unfiltered)),
                ..port
            },
        }
    });
    ports.collect()
}

/// The end of a port's name: given, or its place in the list.
pub(super) fn suffix(index: usize, port: &Port) -> String {
    port.name_suffix.clone().unwrap_or_else(|| index.to_string())
}

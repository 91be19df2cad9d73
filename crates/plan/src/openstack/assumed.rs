//! What a preview without a cloud assumes: everything that a specification names exists, and nothing else.
//!
//! Ids that only the cloud knows are shown as placeholders, such as `<network public>`.

use serde::Serialize;
use serde_json::Value;

use super::server::{PortFacts, Preflight, ServerFacts, UserData, WantedPort, WantedServer};
use super::{Flavor, Group, Image, Network, Subnet};
use crate::flow::Read;

/// Id and name of what a parameter (an id, or a filter) leads to.
pub(crate) fn named(kind: &str, parameter: &impl Serialize) -> (String, String) {
    let parameter = serde_json::to_value(parameter).unwrap_or_default();
    let text = |pointer: &str| parameter.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    if let Some(id) = text("/id") {
        return (id.clone(), id);
    }
    let name = text("/filter/name").or_else(|| text("/imageRef/name"));
    let name = name.unwrap_or_else(|| "of the specification".to_owned());
    (format!("<{kind} {name}>"), name)
}

impl ServerFacts {
    /// There is nothing yet.
    pub(crate) fn none(wanted: &WantedServer) -> Self {
        let ports = wanted.ports.iter().map(|port| (port.name.clone(), Read::Absent));
        Self { servers: Read::Absent, ports: ports.collect(), preflight: None }
    }
}

impl Preflight {
    /// Everything that the specification names is there.
    pub(crate) fn assumed(wanted: &WantedServer) -> Self {
        let (image, name) = named("image", &wanted.image);
        let named_by_id = || wanted.flavor_id.as_ref().map(ToString::to_string);
        let flavor = wanted.flavor.clone().or_else(named_by_id).unwrap_or_default();
        let flavor_id = wanted.flavor_id.clone().unwrap_or_else(|| format!("<flavor {flavor}>").into());
        let server_group = wanted.server_group.as_ref().map(|group| named("server group", group).0.into());
        Self {
            image: Read::One(Image { id: image.into(), name, status: "active".to_owned() }),
            flavor: Read::One(Flavor { id: flavor_id, name: flavor }),
            server_group: Read::found(server_group),
            key: Read::One(true),
            wanted: wanted.ports.iter().map(port).collect(),
            groups: wanted.security_groups.iter().map(group).collect(),
            user_data: Read::One(UserData(Vec::new())),
        }
    }
}

fn port(wanted: &WantedPort) -> PortFacts {
    let network = wanted.given.network.as_ref().map(|parameter| {
        let (id, name) = named("network", parameter);
        Network { id: id.into(), name, ..Network::default() }
    });
    let subnets = wanted.given.fixed_ips.iter().filter_map(|fixed| fixed.subnet.as_ref());
    PortFacts {
        network: Read::found(network),
        has_subnet: Read::One(true),
        subnets: subnets
            .map(|parameter| {
                let (id, name) = named("subnet", parameter);
                Read::One(Subnet { id: id.into(), name, ..Subnet::default() })
            })
            .collect(),
        groups: wanted.given.security_groups.iter().map(group).collect(),
    }
}

fn group(parameter: &impl Serialize) -> Read<Group> {
    let (id, name) = named("security group", parameter);
    Read::One(Group { id: id.into(), name, ..Group::default() })
}

//! The metadata service's answers. Pure: topology, the client's address and the path decide the answer.

use std::net::IpAddr;

use uuid::Uuid;

use super::{document, ec2_id};
use crate::driver::namespaces::names;
use crate::topology::{Server, Topology};

/// Versions of the OpenStack part that clients ask for by name. All say the same.
const VERSIONS: [&str; 10] = [
    "2012-08-10",
    "2013-04-04",
    "2013-10-17",
    "2015-10-15",
    "2016-06-30",
    "2016-10-06",
    "2017-02-22",
    "2018-08-27",
    "2020-10-14",
    "latest",
];

/// An answer's body, or nothing where nothing is.
pub(super) fn answer(topology: &Topology, network: Uuid, asker: IpAddr, path: &str) -> Option<Vec<u8>> {
    let (id, server) = asking(topology, network, asker)?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => Some(b"openstack\nlatest".to_vec()),
        ["openstack"] => Some(VERSIONS.join("\n").into_bytes()),
        ["openstack", version] if VERSIONS.contains(version) => Some(
            b"meta_data.json\nuser_data\nvendor_data.json\nvendor_data2.json\nnetwork_data.json".to_vec(),
        ),
        ["openstack", version, file] if VERSIONS.contains(version) => openstack(topology, id, server, file),
        ["latest" | "2009-04-04"] => Some(b"meta-data/\nuser-data".to_vec()),
        ["latest" | "2009-04-04", "user-data"] => server.user_data.clone(),
        ["latest" | "2009-04-04", "meta-data", rest @ ..] => {
            ec2(id, server, asker, rest).map(String::into_bytes)
        }
        _ => None,
    }
}

/// The server whose port has this address on this network.
fn asking(topology: &Topology, network: Uuid, asker: IpAddr) -> Option<(Uuid, &Server)> {
    let has_address = |port: &Uuid| {
        topology.ports.get(port).is_some_and(|port| {
            port.network == network && port.fixed.iter().any(|(_, address)| *address == asker)
        })
    };
    let found = topology.servers.iter().find(|(_, server)| server.ports.iter().any(has_address));
    found.map(|(id, server)| (*id, server))
}

fn openstack(topology: &Topology, id: Uuid, server: &Server, file: &str) -> Option<Vec<u8>> {
    match file {
        "meta_data.json" => Some(document(id, server).to_string().into_bytes()),
        "user_data" => server.user_data.clone(),
        "vendor_data.json" | "vendor_data2.json" => Some(b"{}".to_vec()),
        "network_data.json" => Some(network_data(topology, server).to_string().into_bytes()),
        _ => None,
    }
}

/// Links with their hardware addresses. Addresses are set before a machine starts, so nothing has to be configured.
fn network_data(topology: &Topology, server: &Server) -> serde_json::Value {
    let ports = server.ports.iter().filter_map(|id| Some((id, topology.ports.get(id)?)));
    let links: Vec<serde_json::Value> = ports
        .map(|(id, port)| {
            let mac = port.mac.map(|byte| format!("{byte:02x}")).join(":");
            serde_json::json!({"id": id.to_string(), "type": "phy", "ethernet_mac_address": mac})
        })
        .collect();
    serde_json::json!({"links": links, "networks": [], "services": []})
}

fn ec2(id: Uuid, server: &Server, asker: IpAddr, path: &[&str]) -> Option<String> {
    let host = names::host_name(&server.name, id);
    Some(match path {
        [] => "hostname\ninstance-id\nlocal-hostname\nlocal-ipv4\nplacement/\npublic-hostname\npublic-keys/"
            .to_owned(),
        ["instance-id"] => ec2_id(id),
        ["hostname" | "local-hostname" | "public-hostname"] => host,
        ["local-ipv4"] => asker.to_string(),
        ["placement"] => "availability-zone".to_owned(),
        ["placement", "availability-zone"] => server.availability_zone.clone(),
        ["public-keys"] => server.key.as_ref().map(|(name, _)| format!("0={name}"))?,
        ["public-keys", "0"] => server.key.as_ref().map(|_| "openssh-key".to_owned())?,
        ["public-keys", "0", "openssh-key"] => server.key.as_ref().map(|(_, key)| key.clone())?,
        _ => return None,
    })
}

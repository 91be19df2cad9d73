//! Reads one server from a cloud with its ports, and everything that a new server needs, for any kind that has a
//! server.
//!
//! The decisions are in `hangar_plan::openstack::server`; the submodule `run` makes the calls.

mod run;

use hangar_openstack::{NetworkClient, Session, SubnetQuery};
use hangar_plan::flow::Read;
use hangar_plan::openstack::server::{PortFacts, Preflight, ServerFacts, UserData, WantedPort, WantedServer};
use hangar_plan::openstack::{NetworkId, ServerId};

use super::find::{
    find_flavor, find_group, find_image, find_network, find_server_group, find_subnet, read_all,
};
use super::{CloudId as _, project::Project};

/// What carries the owner id: a server whatever its name, for people rename them, and ports by theirs.
pub(crate) async fn server_facts(
    project: &Project,
    wanted: &WantedServer,
    recorded_id: Option<&ServerId>,
) -> ServerFacts {
    let (servers, all) =
        futures::join!(project.servers_of(&wanted.owner_id, recorded_id), project.ports_of(&wanted.owner_id));
    let named = |name: &str| all.clone().filter(|port| port.name == name);
    let ports = wanted.ports.iter().map(|port| (port.name.clone(), named(&port.name))).collect();
    ServerFacts { servers, ports, preflight: None }
}

/// Everything a new server needs.
pub(crate) async fn preflight(
    session: &Session,
    wanted: &WantedServer,
    user_data: Read<UserData>,
) -> Preflight {
    let client = session.network();
    let group = async {
        match &wanted.server_group {
            Some(param) => find_server_group(session, param).await,
            None => Read::Absent,
        }
    };
    let key = async {
        match &wanted.key_name {
            Some(name) => {
                read_all(session.compute().has_key_pair(name).await.map(|has| vec![has]), |has| has)
            }
            None => Read::Absent,
        }
    };
    let flavor = find_flavor(session, wanted.flavor_id.as_ref(), wanted.flavor.as_deref());
    let (image, flavor, server_group, key) =
        futures::join!(find_image(session, &wanted.image), flavor, group, key);
    let mut found = Preflight { image, flavor, server_group, key, user_data, ..Preflight::default() };
    for param in &wanted.security_groups {
        found.groups.push(find_group(&client, param).await);
    }
    for port in &wanted.ports {
        let network = match &port.given.network {
            Some(param) => find_network(&client, param, None).await,
            None => Read::Absent,
        };
        let network_id = network.iter().next().map(|network| network.id.clone());
        let has_subnet = has_subnet(&client, port, network_id.as_ref()).await;
        let mut subnets = Vec::new();
        for param in port.given.fixed_ips.iter().filter_map(|fixed| fixed.subnet.as_ref()) {
            subnets.push(find_subnet(&client, param, network_id.as_ref()).await);
        }
        let mut groups = Vec::new();
        for param in &port.given.security_groups {
            groups.push(find_group(&client, param).await);
        }
        found.wanted.push(PortFacts { network, has_subnet, subnets, groups });
    }
    found
}

/// Whether the network of a port has a subnet. Where subnets are named they are looked for themselves.
async fn has_subnet(client: &NetworkClient, port: &WantedPort, network_id: Option<&NetworkId>) -> Read<bool> {
    if !port.subnet_ids.is_empty() || port.given.fixed_ips.iter().any(|fixed| fixed.subnet.is_some()) {
        return Read::One(true);
    }
    let own = port.network_id.as_ref().filter(|_| port.given.network.is_none());
    let Some(id) = network_id.or(own) else { return Read::Absent };
    let query = SubnetQuery { network_id: Some(id.to_cloud()), ..SubnetQuery::default() };
    let answer = client.list(&query).await.map(|subnets| vec![!subnets.is_empty()]);
    read_all(answer, |has| has)
}

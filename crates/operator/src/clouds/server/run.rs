//! Makes the calls of the steps about a server and its ports. Every create carries the owner id.

use std::collections::BTreeMap;

use hangar_openstack::{
    AddressPair, FixedIpRequest, PortCreate, ServerCreate, ServerNetwork, Session, UserData,
};
use hangar_plan::flow::Outcome;
use hangar_plan::openstack::server::{NewPort, NewServer, ServerStep};
use hangar_plan::openstack::{OWNER_METADATA_KEY, Request};

use crate::clouds::CloudId;
use crate::reconcile::RunInCloud;
use crate::reconcile::answer::{done, made};

impl RunInCloud for ServerStep {
    async fn run(&self, session: &Session, owner_id: &str) -> Outcome {
        match self {
            Self::CreatePort(port) => create_port(session, port).await,
            Self::TagPort { name, id, tags } => {
                done(session.network().about(name).set_tags(&id.to_cloud(), tags).await)
            }
            Self::CreateServer(server) => create_server(session, owner_id, server).await,
            Self::DeleteServer { name, id } => {
                done(session.compute().about(name).delete_server(&id.to_cloud()).await)
            }
            Self::DeletePort { name, id } => done(session.network().about(name).delete(&id.to_cloud()).await),
        }
    }

    fn request(&self) -> Option<Request> {
        self.request()
    }
}

/// The description carries the owner; the plan wrote it.
async fn create_port(session: &Session, port: &NewPort) -> Outcome {
    let fixed_ips = port.addresses.iter().map(|(subnet, address)| FixedIpRequest {
        subnet_id: subnet.as_ref().map(CloudId::to_cloud),
        ip_address: *address,
    });
    // Without groups of its own a port gets the project's default group, as everywhere; an unfiltered one must have none.
    let groups = (port.is_unfiltered || !port.security_group_ids.is_empty())
        .then(|| port.security_group_ids.iter().map(CloudId::to_cloud).collect());
    let pairs = port.allowed_address_pairs.iter().map(|pair| AddressPair {
        ip_address: pair.ip_address.clone(),
        mac_address: pair.mac_address.clone(),
    });
    let body = PortCreate {
        description: port.description.clone(),
        fixed_ips: fixed_ips.collect(),
        security_group_ids: groups,
        allowed_address_pairs: pairs.collect(),
        mac_address: port.mac_address.clone(),
        is_up: port.admin_state_up,
        is_port_security_enabled: port.is_unfiltered.then_some(false),
        vnic_type: port.vnic_type.clone(),
        ..PortCreate::new(&port.name, port.network_id.to_cloud())
    };
    made(session.network().create(&body).await, |made| made.id.to_string())
}

async fn create_server(session: &Session, owner_id: &str, server: &NewServer) -> Outcome {
    let NewServer {
        name,
        image_id,
        flavor_id,
        server_group_id,
        port_ids,
        user_data,
        metadata,
        tags,
        key_name,
        config_drive,
        availability_zone,
        scheduler_hints,
    } = server;
    let user_data = match UserData::new(&user_data.0) {
        Ok(user_data) => user_data,
        Err(error) => return Outcome::refused(error.to_string()),
    };
    let mut metadata: BTreeMap<String, String> = metadata.clone();
    metadata.insert(OWNER_METADATA_KEY.to_owned(), owner_id.to_owned());
    let body = ServerCreate {
        networks: port_ids.iter().map(|id| ServerNetwork::Port(id.to_cloud())).collect(),
        user_data: Some(user_data),
        metadata,
        tags: tags.clone(),
        key_name: key_name.clone(),
        has_config_drive: *config_drive,
        availability_zone: availability_zone.clone(),
        server_group: server_group_id.as_ref().map(CloudId::to_cloud),
        scheduler_hints: scheduler_hints.clone(),
        ..ServerCreate::new(name, flavor_id.to_cloud(), image_id.to_cloud())
    };
    made(session.compute().create_server(&body).await, ToString::to_string)
}

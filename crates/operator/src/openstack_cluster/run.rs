//! Makes the calls of an OpenStackCluster's steps in the cloud. Every create carries the owner id.

use hangar_openstack::{
    AllocationPool, ExternalGateway, GatewayAddress, NetworkClient, NetworkCreate, RouterCreate,
    SecurityGroupCreate, SecurityGroupRuleCreate, Session, SubnetCreate, SubnetUpdate,
};
use hangar_plan::flow::Outcome;
use hangar_plan::openstack::{GroupRule, Request, SecurityGroupId, mark};
use hangar_plan::openstack_cluster::{NetworkStep, NewSubnet, ObjectId};

use crate::clouds::CloudId;
use crate::reconcile::RunInCloud;
use crate::reconcile::answer::{done, made};

impl RunInCloud for NetworkStep {
    async fn run(&self, session: &Session, owner_id: &str) -> Outcome {
        run(session, owner_id, self).await
    }

    fn request(&self) -> Option<Request> {
        self.request()
    }
}

async fn run(session: &Session, owner_id: &str, step: &NetworkStep) -> Outcome {
    let client = session.network();
    let description = mark(owner_id);
    match step {
        NetworkStep::CreateNetwork { name, mtu, is_port_security_enabled } => {
            let body = NetworkCreate {
                name: name.clone(),
                description,
                mtu: *mtu,
                is_port_security_enabled: *is_port_security_enabled,
            };
            made(client.create(&body).await, |made| made.id.to_string())
        }
        NetworkStep::CreateSubnet { name, network_id, subnet } => {
            let NewSubnet { cidr, dns_nameservers, allocation_pools } = subnet;
            let pools = allocation_pools.iter().map(|&(start, end)| AllocationPool { start, end });
            let body = SubnetCreate {
                description,
                dns_nameservers: dns_nameservers.clone(),
                allocation_pools: pools.collect(),
                ..SubnetCreate::new(name, network_id.to_cloud(), *cidr)
            };
            made(client.create(&body).await, |made| made.id.to_string())
        }
        NetworkStep::SetNameServers { name, id, dns_nameservers } => {
            let body =
                SubnetUpdate { dns_nameservers: Some(dns_nameservers.clone()), ..SubnetUpdate::default() };
            done(client.about(name).update(&id.to_cloud(), &body).await)
        }
        NetworkStep::CreateRouter { name, gateway_network_id, gateway_addresses } => {
            let addresses = gateway_addresses.iter().map(|(subnet, address)| GatewayAddress {
                subnet_id: Some(subnet.to_cloud()),
                ip_address: *address,
            });
            let body = RouterCreate {
                name: name.clone(),
                description,
                external_gateway: Some(ExternalGateway {
                    network_id: gateway_network_id.to_cloud(),
                    addresses: addresses.collect(),
                }),
            };
            made(client.create(&body).await, |made| made.id.to_string())
        }
        NetworkStep::AddInterface { name, router_id, subnet_id } => {
            done(client.about(name).add_router_interface(&router_id.to_cloud(), &subnet_id.to_cloud()).await)
        }
        NetworkStep::RemoveInterface { name, router_id, subnet_id } => done(
            client.about(name).remove_router_interface(&router_id.to_cloud(), &subnet_id.to_cloud()).await,
        ),
        NetworkStep::CreateGroup { name, .. } => {
            let body = SecurityGroupCreate { name: name.clone(), description };
            made(client.create(&body).await, |made| made.id.to_string())
        }
        NetworkStep::CreateRule { role, group_id, rule, label, description } => {
            let body = rule_body(group_id, rule, description);
            match client.about(format!("{role}: {label}")).create(&body).await {
                // An equal one exists: that is what was asked for.
                Err(error) if error.is_conflict() => Outcome::Done,
                answer => made(answer, |made| made.id.to_string()),
            }
        }
        NetworkStep::DeleteRule { role, id, label } => {
            done(client.about(format!("{role}: {label}")).delete(&id.to_cloud()).await)
        }
        NetworkStep::Tag { id, name, tags } => tag(&client.about(name), id, tags).await,
        NetworkStep::Delete { id, name } => delete(&client.about(name), id).await,
    }
}

async fn tag(client: &NetworkClient, id: &ObjectId, tags: &[String]) -> Outcome {
    done(match id {
        ObjectId::Network(id) => client.set_tags(&id.to_cloud(), tags).await,
        ObjectId::Subnet(id) => client.set_tags(&id.to_cloud(), tags).await,
        ObjectId::Router(id) => client.set_tags(&id.to_cloud(), tags).await,
        ObjectId::Group(id) => client.set_tags(&id.to_cloud(), tags).await,
    })
}

async fn delete(client: &NetworkClient, id: &ObjectId) -> Outcome {
    done(match id {
        ObjectId::Network(id) => client.delete(&id.to_cloud()).await,
        ObjectId::Subnet(id) => client.delete(&id.to_cloud()).await,
        ObjectId::Router(id) => client.delete(&id.to_cloud()).await,
        ObjectId::Group(id) => client.delete(&id.to_cloud()).await,
    })
}

fn rule_body(group_id: &SecurityGroupId, rule: &GroupRule, description: &str) -> SecurityGroupRuleCreate {
    SecurityGroupRuleCreate {
        security_group_id: group_id.to_cloud(),
        direction: rule.direction.clone(),
        ethertype: rule.ether_type.clone(),
        protocol: rule.protocol.clone(),
        port_range_min: rule.port_range_min,
        port_range_max: rule.port_range_max,
        remote_ip_prefix: rule.remote_ip_prefix.map(|range| range.to_string()),
        remote_group_id: rule.remote_group_id.as_ref().map(CloudId::to_cloud),
        description: description.to_owned(),
    }
}

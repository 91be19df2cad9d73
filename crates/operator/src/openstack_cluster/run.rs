//! Makes the calls of an OpenStackCluster's steps in the cloud. Every create carries the owner id.

use hangar_openstack::{
    AllocationPool, ExternalGateway, GatewayAddress, NetworkClient, NetworkCreate, NetworkId, RouterCreate,
    RouterId, SecurityGroupCreate, SecurityGroupId, SecurityGroupRuleCreate, SecurityGroupRuleId, Session,
    SubnetCreate, SubnetId, SubnetUpdate,
};
use hangar_plan::flow::Outcome;
use hangar_plan::openstack::{GroupRule, mark};
use hangar_plan::openstack_cluster::{Kind, NetworkStep};

use crate::reconcile::RunInCloud;
use crate::reconcile::answer::{done, made};

impl RunInCloud for NetworkStep {
    async fn run(&self, session: &Session, owner_id: &str) -> Outcome {
        run(session, owner_id, self).await
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
            let pools = subnet.allocation_pools.iter();
            let body = SubnetCreate {
                description,
                dns_nameservers: subnet.dns_nameservers.clone(),
                allocation_pools: pools.map(|&(start, end)| AllocationPool { start, end }).collect(),
                ..SubnetCreate::new(name, network_id.as_str().into(), subnet.cidr)
            };
            made(client.create(&body).await, |made| made.id.to_string())
        }
        NetworkStep::SetNameServers { name, id, dns_nameservers } => {
            let body =
                SubnetUpdate { dns_nameservers: Some(dns_nameservers.clone()), ..SubnetUpdate::default() };
            done(client.about(name).update(&SubnetId::from(id.as_str()), &body).await)
        }
        NetworkStep::CreateRouter { name, gateway_network_id, gateway_addresses } => {
            let addresses = gateway_addresses.iter().map(|(subnet, address)| GatewayAddress {
                subnet_id: Some(subnet.as_str().into()),
                ip_address: *address,
            });
            let body = RouterCreate {
                name: name.clone(),
                description,
                external_gateway: Some(ExternalGateway {
                    network_id: gateway_network_id.as_str().into(),
                    addresses: addresses.collect(),
                }),
            };
            made(client.create(&body).await, |made| made.id.to_string())
        }
        NetworkStep::AddInterface { name, router_id, subnet_id } => {
            let (router, subnet) = (router_id.as_str().into(), subnet_id.as_str().into());
            done(client.about(name).add_router_interface(&router, &subnet).await)
        }
        NetworkStep::RemoveInterface { name, router_id, subnet_id } => {
            let (router, subnet) = (router_id.as_str().into(), subnet_id.as_str().into());
            done(client.about(name).remove_router_interface(&router, &subnet).await)
        }
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
        NetworkStep::DeleteRule { role, id, label } => done(
            client.about(format!("{role}: {label}")).delete(&SecurityGroupRuleId::from(id.as_str())).await,
        ),
        NetworkStep::Tag { kind, name, id, tags } => tag(&client.about(name), *kind, id, tags).await,
        NetworkStep::Delete { kind, name, id } => delete(&client.about(name), *kind, id).await,
    }
}

async fn tag(client: &NetworkClient, kind: Kind, id: &str, tags: &[String]) -> Outcome {
    done(match kind {
        Kind::Network => client.set_tags(&NetworkId::from(id), tags).await,
        Kind::Subnet => client.set_tags(&SubnetId::from(id), tags).await,
        Kind::Router => client.set_tags(&RouterId::from(id), tags).await,
        Kind::Group => client.set_tags(&SecurityGroupId::from(id), tags).await,
    })
}

async fn delete(client: &NetworkClient, kind: Kind, id: &str) -> Outcome {
    done(match kind {
        Kind::Network => client.delete(&NetworkId::from(id)).await,
        Kind::Subnet => client.delete(&SubnetId::from(id)).await,
        Kind::Router => client.delete(&RouterId::from(id)).await,
        Kind::Group => client.delete(&SecurityGroupId::from(id)).await,
    })
}

fn rule_body(group_id: &str, rule: &GroupRule, description: &str) -> SecurityGroupRuleCreate {
    SecurityGroupRuleCreate {
        security_group_id: group_id.into(),
        direction: rule.direction.clone(),
        ethertype: rule.ether_type.clone(),
        protocol: rule.protocol.clone(),
        port_range_min: rule.port_range_min,
        port_range_max: rule.port_range_max,
        remote_ip_prefix: rule.remote_ip_prefix.map(|range| range.to_string()),
        remote_group_id: rule.remote_group_id.as_deref().map(Into::into),
        description: description.to_owned(),
    }
}

//! Folds the outcome of a step into the observation of an OpenStackCluster.

use super::{CloudFacts, NetworkStep, ObjectId, Observed, Step};
use crate::flow::{Read, StepId};
use crate::openstack::{Group, KnownRule, Network, Port, Router, SecurityGroupRuleId, Subnet};

/// After a lost answer nothing is known of what may have changed.
pub(super) fn forget(observed: &mut Observed, step: &StepId) {
    if let Some(facts) = observed.cloud.facts_mut() {
        let why = format!("the answer to {step} was lost");
        facts.networks = Read::unknown(&why);
        facts.subnets = Read::unknown(&why);
        facts.routers = Read::unknown(&why);
        facts.interfaces = Read::unknown(&why);
        facts.groups = Read::unknown(&why);
    }
}

pub(super) fn done(observed: &mut Observed, step: &Step, id: &str) {
    match step {
        Step::Write(write) => write.on_itself(&mut observed.object),
        Step::Cloud(step) => {
            if let Some(facts) = observed.cloud.facts_mut() {
                done_in_cloud(facts, step, id);
            }
        }
        Step::Own(never) | Step::Tenant(never) => match *never {},
    }
}

fn done_in_cloud(facts: &mut CloudFacts, step: &NetworkStep, id: &str) {
    match step {
        NetworkStep::CreateNetwork { name, .. } => {
            facts.networks.add(Network { id: id.into(), name: name.clone(), tags: Vec::new() });
        }
        NetworkStep::CreateSubnet { name, network_id, subnet } => {
            facts.subnets.add(Subnet {
                id: id.into(),
                name: name.clone(),
                network_id: network_id.clone(),
                cidr: subnet.cidr,
                dns_nameservers: subnet.dns_nameservers.clone(),
                tags: Vec::new(),
            });
        }
        NetworkStep::SetNameServers { id, dns_nameservers, .. } => {
            for subnet in facts.subnets.iter_mut().filter(|subnet| subnet.id == *id) {
                subnet.dns_nameservers.clone_from(dns_nameservers);
            }
        }
        NetworkStep::CreateRouter { name, gateway_network_id, .. } => {
            let gateway_network_id = Some(gateway_network_id.clone());
            let (id, name) = (id.into(), name.clone());
            facts.routers.add(Router { id, name, gateway_network_id, ..Router::default() });
        }
        NetworkStep::AddInterface { router_id, subnet_id, .. } => {
            let (device_id, subnet_ids) = (router_id.to_string(), vec![subnet_id.clone()]);
            facts.interfaces.add(Port { subnet_ids, device_id, ..Port::default() });
        }
        NetworkStep::RemoveInterface { subnet_id, .. } => {
            facts.interfaces.retain(|port| !port.subnet_ids.contains(subnet_id));
        }
        NetworkStep::CreateGroup { name, .. } => {
            let rules = super::security_groups::born_with();
            let rules = rules
                .into_iter()
                .map(|rule| KnownRule { id: SecurityGroupRuleId::default(), rule })
                .collect();
            facts.groups.add(Group { id: id.into(), name: name.clone(), tags: Vec::new(), rules });
        }
        NetworkStep::CreateRule { group_id, rule, .. } => {
            for group in facts.groups.iter_mut().filter(|group| group.id == *group_id) {
                group.rules.push(KnownRule { id: id.into(), rule: rule.clone() });
            }
        }
        NetworkStep::DeleteRule { id, .. } => {
            for group in facts.groups.iter_mut() {
                group.rules.retain(|known| known.id != *id);
            }
        }
        NetworkStep::Tag { id, tags, .. } => tagged(facts, id, tags),
        NetworkStep::Delete { id, .. } => match id {
            ObjectId::Network(id) => facts.networks.retain(|network| network.id != *id),
            ObjectId::Subnet(id) => facts.subnets.retain(|subnet| subnet.id != *id),
            ObjectId::Router(id) => facts.routers.retain(|router| router.id != *id),
            ObjectId::Group(id) => facts.groups.retain(|group| group.id != *id),
        },
    }
}

fn tagged(facts: &mut CloudFacts, id: &ObjectId, tags: &[String]) {
    let found: Option<&mut Vec<String>> = match id {
        ObjectId::Network(id) => {
            facts.networks.iter_mut().find(|item| item.id == *id).map(|item| &mut item.tags)
        }
        ObjectId::Subnet(id) => {
            facts.subnets.iter_mut().find(|item| item.id == *id).map(|item| &mut item.tags)
        }
        ObjectId::Router(id) => {
            facts.routers.iter_mut().find(|item| item.id == *id).map(|item| &mut item.tags)
        }
        ObjectId::Group(id) => facts.groups.iter_mut().find(|item| item.id == *id).map(|item| &mut item.tags),
    };
    if let Some(found) = found {
        *found = tags.to_vec();
    }
}

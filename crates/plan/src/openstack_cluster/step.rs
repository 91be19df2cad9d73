//! The calls, and what each does to the observation.

use hangar_api::conditions::Actor;
use hangar_api::names::OPENSTACK_CLUSTER_FINALIZER;

use super::{CloudFacts, Observed, Role};
use crate::flow::{Outcome, Read, Step as FlowStep, StepId};
use crate::openstack::{
    CloudTrouble, Group, GroupRule, KnownRule, Network, OWNER_ID_ANNOTATION, Port, Router, Subnet,
};

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Puts the owner id and the finalizer on the object.
    Claim {
        /// The id.
        owner_id: String,
    },
    /// Makes the network.
    CreateNetwork {
        /// Its name.
        name: String,
        /// Its MTU, where one is asked for.
        mtu: Option<u32>,
        /// Whether its ports are filtered, where that is said.
        is_port_security_enabled: Option<bool>,
    },
    /// Makes the subnet.
    CreateSubnet {
        /// Its name.
        name: String,
        /// The network it is on.
        network_id: String,
        /// Its range.
        cidr: String,
        /// Its name servers.
        dns_nameservers: Vec<String>,
        /// Where addresses are given out from.
        allocation_pools: Vec<(String, String)>,
    },
    /// Changes the name servers of the subnet.
    SetNameServers {
        /// The subnet's name.
        name: String,
        /// Its id.
        id: String,
        /// All name servers.
        dns_nameservers: Vec<String>,
    },
    /// Makes the router.
    CreateRouter {
        /// Its name.
        name: String,
        /// The external network.
        gateway_network_id: String,
        /// Addresses asked for there: subnet id and address.
        gateway_addresses: Vec<(Option<String>, Option<String>)>,
    },
    /// Connects the router to the subnet.
    AddInterface {
        /// The router's name.
        name: String,
        /// The router.
        router_id: String,
        /// The subnet.
        subnet_id: String,
    },
    /// Takes the router off a subnet.
    RemoveInterface {
        /// The router's name.
        name: String,
        /// The router.
        router_id: String,
        /// The subnet.
        subnet_id: String,
    },
    /// Makes a security group.
    CreateGroup {
        /// Whose.
        role: Role,
        /// Its name.
        name: String,
    },
    /// Makes a rule.
    CreateRule {
        /// In whose group.
        role: Role,
        /// The group.
        group_id: String,
        /// The rule.
        rule: GroupRule,
        /// What it says, in words that are the same in every run.
        label: String,
        /// A description for people.
        description: String,
    },
    /// Deletes a rule.
    DeleteRule {
        /// In whose group.
        role: Role,
        /// The rule's id.
        id: String,
        /// What it says, in words that are the same in every run.
        label: String,
    },
    /// Sets the tags of an object.
    Tag {
        /// Which kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// Its id.
        id: String,
        /// All tags.
        tags: Vec<String>,
    },
    /// Deletes an object.
    Delete {
        /// Which kind.
        kind: Kind,
        /// Its name; one that is too many has a number besides.
        name: String,
        /// Its id.
        id: String,
    },
    /// Lets the object go.
    Release,
}

/// Kinds of cloud objects that are made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A network.
    Network,
    /// A subnet.
    Subnet,
    /// A router.
    Router,
    /// A security group.
    Group,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Subnet => "subnet",
            Self::Router => "router",
            Self::Group => "security-group",
        }
    }

    /// The condition it belongs to.
    fn condition(self) -> &'static str {
        match self {
            Self::Network | Self::Subnet => "NetworkReady",
            Self::Router => "RouterReady",
            Self::Group => "SecurityGroupsReady",
        }
    }
}

impl FlowStep for Step {
    fn id(&self) -> StepId {
        match self {
            Self::Claim { .. } => StepId::new("claim", "object", "self"),
            Self::CreateNetwork { name, .. } => StepId::new("create", "network", name),
            Self::CreateSubnet { name, .. } => StepId::new("create", "subnet", name),
            Self::SetNameServers { name, .. } => StepId::new("update", "subnet", name),
            Self::CreateRouter { name, .. } => StepId::new("create", "router", name),
            Self::AddInterface { name, .. } => StepId::new("add", "router-interface", name),
            Self::RemoveInterface { name, .. } => StepId::new("remove", "router-interface", name),
            Self::CreateGroup { name, .. } => StepId::new("create", "security-group", name),
            Self::CreateRule { role, label, .. } => {
                StepId::new("create", "security-group-rule", format!("{role}: {label}"))
            }
            Self::DeleteRule { role, label, .. } => {
                StepId::new("delete", "security-group-rule", format!("{role}: {label}"))
            }
            Self::Tag { kind, name, .. } => StepId::new("tag", kind.as_str(), name),
            Self::Delete { kind, name, .. } => StepId::new("delete", kind.as_str(), name),
            Self::Release => StepId::new("release", "object", "self"),
        }
    }
}

impl Step {
    fn condition(&self) -> &'static str {
        match self {
            Self::Claim { .. } | Self::Release => "Ready",
            Self::CreateNetwork { .. } | Self::CreateSubnet { .. } | Self::SetNameServers { .. } => {
                "NetworkReady"
            }
            Self::CreateRouter { .. } | Self::AddInterface { .. } | Self::RemoveInterface { .. } => {
                "RouterReady"
            }
            Self::CreateGroup { .. } | Self::CreateRule { .. } | Self::DeleteRule { .. } => {
                "SecurityGroupsReady"
            }
            Self::Tag { kind, .. } | Self::Delete { kind, .. } => kind.condition(),
        }
    }
}

/// Makes the observation what it would be after an outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    let condition = step.condition();
    match outcome {
        Outcome::Created(id) => {
            observed.troubles.remove(condition);
            done(observed, step, id);
        }
        Outcome::Done => {
            observed.troubles.remove(condition);
            done(observed, step, "");
        }
        Outcome::Refused(words) => trouble(observed, step, "OpenStackRefused", words, Actor::ClusterOwner),
        Outcome::Failed(failure) => {
            let actor = if failure.is_retryable { Actor::Cloud } else { Actor::ClusterOwner };
            trouble(observed, step, failure.category, &failure.message, actor);
        }
        Outcome::Lost => {
            trouble(observed, step, "AnswerLost", "the answer was lost", Actor::Hangar);
            forget(observed);
        }
    }
}

fn trouble(observed: &mut Observed, step: &Step, reason: &'static str, words: &str, actor: Actor) {
    let message = format!("{}: {words}", step.id());
    observed.troubles.insert(step.condition(), CloudTrouble::of_step(reason, message, actor));
}

/// After a lost answer nothing is known of what may have changed.
fn forget(observed: &mut Observed) {
    if let Some(facts) = observed.cloud.facts_mut() {
        let why = "an answer was lost";
        facts.networks = Read::unknown(why);
        facts.subnets = Read::unknown(why);
        facts.routers = Read::unknown(why);
        facts.interfaces = Read::unknown(why);
        facts.groups = Read::unknown(why);
    }
}

fn done(observed: &mut Observed, step: &Step, id: &str) {
    match step {
        Step::Claim { owner_id } => {
            let meta = &mut observed.object.metadata;
            meta.annotations.get_or_insert_default().insert(OWNER_ID_ANNOTATION.to_owned(), owner_id.clone());
            let finalizers = meta.finalizers.get_or_insert_default();
            if !finalizers.iter().any(|present| present == OPENSTACK_CLUSTER_FINALIZER) {
                finalizers.push(OPENSTACK_CLUSTER_FINALIZER.to_owned());
            }
        }
        Step::Release => {
            let finalizers = observed.object.metadata.finalizers.get_or_insert_default();
            finalizers.retain(|present| present != OPENSTACK_CLUSTER_FINALIZER);
        }
        _ => {
            if let Some(facts) = observed.cloud.facts_mut() {
                done_in_cloud(facts, step, id);
            }
        }
    }
}

fn done_in_cloud(facts: &mut CloudFacts, step: &Step, id: &str) {
    match step {
        Step::CreateNetwork { name, .. } => {
            add(&mut facts.networks, Network { id: id.to_owned(), name: name.clone(), tags: Vec::new() });
        }
        Step::CreateSubnet { name, network_id, cidr, dns_nameservers, .. } => add(
            &mut facts.subnets,
            Subnet {
                id: id.to_owned(),
                name: name.clone(),
                network_id: network_id.clone(),
                cidr: cidr.clone(),
                ip_version: if cidr.contains(':') { 6 } else { 4 },
                dns_nameservers: dns_nameservers.clone(),
                tags: Vec::new(),
            },
        ),
        Step::SetNameServers { id, dns_nameservers, .. } => change(&mut facts.subnets, |subnet| {
            if subnet.id == *id {
                subnet.dns_nameservers.clone_from(dns_nameservers);
            }
        }),
        Step::CreateRouter { name, gateway_network_id, .. } => add(
            &mut facts.routers,
            Router {
                id: id.to_owned(),
                name: name.clone(),
                gateway_network_id: Some(gateway_network_id.clone()),
                ..Router::default()
            },
        ),
        Step::AddInterface { router_id, subnet_id, .. } => add(
            &mut facts.interfaces,
            Port { device_id: router_id.clone(), subnet_ids: vec![subnet_id.clone()], ..Port::default() },
        ),
        Step::RemoveInterface { subnet_id, .. } => {
            facts.interfaces = facts.interfaces.clone().filter(|port| !port.subnet_ids.contains(subnet_id));
        }
        Step::CreateGroup { name, .. } => {
            let rules = super::security_groups::born_with();
            let rules = rules.into_iter().map(|rule| KnownRule { id: String::new(), rule }).collect();
            let group = Group { id: id.to_owned(), name: name.clone(), tags: Vec::new(), rules };
            add(&mut facts.groups, group);
        }
        Step::CreateRule { group_id, rule, .. } => change(&mut facts.groups, |group| {
            if group.id == *group_id {
                group.rules.push(KnownRule { id: id.to_owned(), rule: rule.clone() });
            }
        }),
        Step::DeleteRule { id, .. } => {
            change(&mut facts.groups, |group| group.rules.retain(|known| known.id != *id));
        }
        Step::Tag { kind, id, tags, .. } => tagged(facts, *kind, id, tags),
        Step::Delete { kind, id, .. } => deleted(facts, *kind, id),
        Step::Claim { .. } | Step::Release => {}
    }
}

fn deleted(facts: &mut CloudFacts, kind: Kind, id: &str) {
    match kind {
        Kind::Network => facts.networks = facts.networks.clone().filter(|network| network.id != id),
        Kind::Subnet => facts.subnets = facts.subnets.clone().filter(|subnet| subnet.id != id),
        Kind::Router => facts.routers = facts.routers.clone().filter(|router| router.id != id),
        Kind::Group => facts.groups = facts.groups.clone().filter(|group| group.id != id),
    }
}

fn tagged(facts: &mut CloudFacts, kind: Kind, id: &str, tags: &[String]) {
    match kind {
        Kind::Network => change(&mut facts.networks, |item| {
            if item.id == id {
                item.tags = tags.to_vec();
            }
        }),
        Kind::Subnet => change(&mut facts.subnets, |item| {
            if item.id == id {
                item.tags = tags.to_vec();
            }
        }),
        Kind::Router => change(&mut facts.routers, |item| {
            if item.id == id {
                item.tags = tags.to_vec();
            }
        }),
        Kind::Group => change(&mut facts.groups, |item| {
            if item.id == id {
                item.tags = tags.to_vec();
            }
        }),
    }
}

fn add<T: Clone>(read: &mut Read<T>, item: T) {
    if let Ok(mut items) = read.clone().known() {
        items.push(item);
        *read = Read::found(items);
    }
}

fn change<T: Clone>(read: &mut Read<T>, mut edit: impl FnMut(&mut T)) {
    *read = read.clone().map(|mut item| {
        edit(&mut item);
        item
    });
}

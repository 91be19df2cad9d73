//! Plans the security groups of the workers: two groups, with the rules that upstream documents.
//!
//! Rules are compared by content. Missing rules are created and others deleted, also those that were added by hand: the
//! specification has a field for them. OpenStack creates each group with two rules that allow all outgoing traffic;
//! these are among the wanted rules.

use std::collections::BTreeMap;
use std::fmt;

use hangar_api::infrastructure::v1beta1::{
    EtherType, ManagedSecurityGroupName, ManagedSecurityGroups, RuleDirection, SecurityGroupRule,
    SecurityGroupStatus,
};
use ipnet::IpNet;

use super::conditions::security_groups_ready;
use super::{CloudFacts, Draft, NetworkStep, ObjectId};
use crate::openstack::{
    Group, GroupRule, KnownRule, Picked, SecurityGroupId, SecurityGroupRuleId, pick, range,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Machines of the control plane.
    ControlPlane,
    Worker,
}

/// Every role, in the order of making.
pub const ROLES: [Role; 2] = [Role::ControlPlane, Role::Worker];

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ControlPlane => "controlplane",
            Self::Worker => "worker",
        })
    }
}

/// The name of a group. People and tools know it.
pub fn group_name(namespace: &str, cluster: &str, role: Role) -> String {
    format!("k8s-cluster-{namespace}-{cluster}-secgroup-{role}")
}

/// The condition and its steps.
pub(super) fn draft(draft: &mut Draft<'_>, facts: &CloudFacts) {
    let Some(managed) = draft.observed.object.spec.managed_security_groups.clone() else {
        draft.status.control_plane_security_group = None;
        draft.status.worker_security_group = None;
        draft.say(security_groups_ready::NOT_NEEDED);
        return;
    };
    let Some(groups) = groups(draft, facts) else { return };
    let status =
        |group: &Group| Some(SecurityGroupStatus { id: group.id.to_string(), name: group.name.clone() });
    draft.status.control_plane_security_group = groups.get(&Role::ControlPlane).and_then(status);
    draft.status.worker_security_group = groups.get(&Role::Worker).and_then(status);
    let ids = groups.iter().map(|(role, group)| (*role, group.id.clone())).collect();
    let given: Result<BTreeMap<Role, Vec<_>>, String> =
        ROLES.into_iter().map(|role| Ok((role, given_rules(&managed, role, &ids)?))).collect();
    let given = match given {
        Ok(given) => given,
        Err(why) => return draft.broken(security_groups_ready::INVALID_RULE, "rules that can be made", why),
    };
    // Node ports are open to the cluster's own subnets; without them the rules would be half.
    let Some(network) = draft.status.network.clone() else {
        return draft.working(security_groups_ready::WORKING, "the network, whose range is in the rules");
    };
    let cidrs: Vec<IpNet> = network.subnets.iter().filter_map(|subnet| range(&subnet.cidr)).collect();
    let before = draft.steps.len();
    for ((role, group), given) in groups.iter().zip(given.into_values()) {
        let mut wanted = documented_rules(managed.allow_all_in_cluster_traffic, *role, &cidrs, &ids);
        wanted.extend(given);
        // A rule of the user may say what a documented one says.
        let mut seen = Vec::new();
        wanted.retain(|(rule, _)| {
            let is_new = !seen.contains(&rule.normalized());
            seen.push(rule.normalized());
            is_new
        });
        rules(draft, *role, group, &wanted, &ids);
    }
    if draft.steps.len() == before {
        draft.say(security_groups_ready::READY);
    } else {
        draft.working(security_groups_ready::WORKING, "the rules to be as they ought to be");
    }
}

/// Both groups, once they exist.
fn groups(draft: &mut Draft<'_>, facts: &CloudFacts) -> Option<BTreeMap<Role, Group>> {
    let namespace = draft.observed.object.metadata.namespace.clone().unwrap_or_default();
    let cluster = draft.observed.cluster_name();
    let mut found = BTreeMap::new();
    for role in ROLES {
        let name = group_name(&namespace, &cluster, role);
        let recorded = match role {
            Role::ControlPlane => draft.status.control_plane_security_group.as_ref(),
            Role::Worker => draft.status.worker_security_group.as_ref(),
        };
        let recorded = recorded.map(|group| group.id.as_str().into());
        // Its role is the end of its name: the beginning is the old cluster's where a cluster was moved.
        let own = facts.groups.clone().filter(|group| group.name.ends_with(&format!("-secgroup-{role}")));
        match pick(&own, |group| &group.id, recorded.as_ref()) {
            Picked::Unknown(why) => {
                draft.unknown(security_groups_ready::TYPE, &why);
                return None;
            }
            Picked::None => draft.step(NetworkStep::CreateGroup { role, name }),
            Picked::One(group, extras) => {
                for (number, extra) in extras.iter().enumerate() {
                    let name = format!("{name} (extra {})", number + 1);
                    draft.step(NetworkStep::Delete { id: ObjectId::Group(extra.id.clone()), name });
                }
                super::network::tag(draft, ObjectId::Group(group.id.clone()), &group.name, &group.tags);
                found.insert(role, group);
            }
        }
    }
    if found.len() < ROLES.len() {
        draft.working(security_groups_ready::WORKING, "the security groups to be made");
        return None;
    }
    Some(found)
}

fn rules(
    draft: &mut Draft<'_>,
    role: Role,
    group: &Group,
    wanted: &[(GroupRule, String)],
    ids: &BTreeMap<Role, SecurityGroupId>,
) {
    let is_same = |known: &KnownRule, rule: &GroupRule| known.rule.normalized() == rule.normalized();
    for (rule, description) in wanted {
        if !group.rules.iter().any(|known| is_same(known, rule)) {
            draft.step(NetworkStep::CreateRule {
                role,
                group_id: group.id.clone(),
                label: label(rule, ids),
                rule: rule.clone(),
                description: description.clone(),
            });
        }
    }
    for known in &group.rules {
        if !wanted.iter().any(|(rule, _)| is_same(known, rule)) && known.id != SecurityGroupRuleId::default()
        {
            let label = label(&known.rule, ids);
            draft.step(NetworkStep::DeleteRule { role, id: known.id.clone(), label });
        }
    }
}

/// A rule in one line, the same in every run.
fn label(rule: &GroupRule, ids: &BTreeMap<Role, SecurityGroupId>) -> String {
    let ports = match (rule.port_range_min, rule.port_range_max) {
        (None, None) => "any".to_owned(),
        (first, last) => format!("{}-{}", first.unwrap_or_default(), last.unwrap_or_default()),
    };
    let group = rule.remote_group_id.as_ref().map(|id| {
        let role = ids.iter().find(|(_, known)| *known == id).map(|(role, _)| role.to_string());
        role.unwrap_or_else(|| id.to_string())
    });
    let remote = group
        .or_else(|| rule.remote_ip_prefix.map(|range| range.to_string()))
        .unwrap_or_else(|| "any".to_owned());
    let protocol = rule.protocol.as_deref().unwrap_or("any");
    format!("{} {} {protocol} {ports} {remote}", rule.direction, rule.ether_type)
}

/// What every group is born with.
pub(super) fn born_with() -> Vec<GroupRule> {
    ["IPv4", "IPv6"].map(|ether_type| rule("egress", ether_type, None, None)).to_vec()
}

fn rule(direction: &str, ether_type: &str, protocol: Option<&str>, ports: Option<(u16, u16)>) -> GroupRule {
    GroupRule {
        direction: direction.to_owned(),
        ether_type: ether_type.to_owned(),
        protocol: protocol.map(str::to_owned),
        port_range_min: ports.map(|(first, _)| first),
        port_range_max: ports.map(|(_, last)| last),
        remote_ip_prefix: None,
        remote_group_id: None,
    }
}

fn ingress(protocol: &str, ports: (u16, u16)) -> GroupRule {
    rule("ingress", "IPv4", Some(protocol), Some(ports))
}

/// Everything a group ought to have besides what people ask for, with a description for people.
fn documented_rules(
    is_open_inside: bool,
    role: Role,
    cidrs: &[IpNet],
    ids: &BTreeMap<Role, SecurityGroupId>,
) -> Vec<(GroupRule, String)> {
    let from =
        |rule: GroupRule, remote: Role| GroupRule { remote_group_id: ids.get(&remote).cloned(), ..rule };
    let mut all: Vec<(GroupRule, String)> =
        born_with().into_iter().map(|rule| (rule, "Everything out".to_owned())).collect();
    let mut add = |rule: GroupRule, description: &str| all.push((rule, description.to_owned()));
    let other = if role == Role::Worker { Role::ControlPlane } else { Role::Worker };
    match role {
        Role::ControlPlane => add(ingress("tcp", (6443, 6443)), "Kubernetes API"),
        Role::Worker => {
            for protocol in ["tcp", "udp"] {
                let ports = ingress(protocol, (30000, 32767));
                for cidr in cidrs.iter().filter(|cidr| cidr.addr().is_ipv4()) {
                    add(GroupRule { remote_ip_prefix: Some(*cidr), ..ports.clone() }, "Node ports");
                }
                add(from(ports.clone(), Role::Worker), "Node ports");
                add(from(ports, Role::ControlPlane), "Node ports");
            }
        }
    }
    if is_open_inside {
        let any = rule("ingress", "IPv4", None, None);
        add(from(any.clone(), role), "All traffic in the cluster");
        add(from(any, other), "All traffic in the cluster");
    } else {
        if role == Role::ControlPlane {
            add(from(ingress("tcp", (2379, 2380)), role), "etcd");
        }
        add(from(ingress("tcp", (10250, 10250)), role), "Kubelet API");
        add(from(ingress("tcp", (10250, 10250)), other), "Kubelet API");
    }
    all
}

/// The rules that the specification has for a role, or which one cannot be made.
fn given_rules(
    managed: &ManagedSecurityGroups,
    role: Role,
    ids: &BTreeMap<Role, SecurityGroupId>,
) -> Result<Vec<(GroupRule, String)>, String> {
    let own = match role {
        Role::ControlPlane => {
            ("controlPlaneNodesSecurityGroupRules", &managed.control_plane_nodes_security_group_rules)
        }
        Role::Worker => ("workerNodesSecurityGroupRules", &managed.worker_nodes_security_group_rules),
    };
    let all = ("allNodesSecurityGroupRules", &managed.all_nodes_security_group_rules);
    let mut found = Vec::new();
    for (list, rules) in [all, own] {
        for rule in rules {
            let field = format!("spec.managedSecurityGroups.{list}[{}]", rule.name);
            found.extend(given_rule(&field, rule, ids)?);
        }
    }
    Ok(found)
}

/// One rule of the specification: one for each group on the other side. What cannot be read must never be left out of
/// the call: a rule without ports lets all of them through, one without a range everybody.
fn given_rule(
    field: &str,
    given: &SecurityGroupRule,
    ids: &BTreeMap<Role, SecurityGroupId>,
) -> Result<Vec<(GroupRule, String)>, String> {
    let port = |port: Option<i64>| {
        let port = port.map(u16::try_from).transpose();
        port.map_err(|_| format!("{field}: ports are from 0 to 65535"))
    };
    let prefix =
        |text: &str| range(text).ok_or_else(|| format!("{field}: {text:?} is no range of addresses"));
    let base = GroupRule {
        direction: match given.direction {
            RuleDirection::Ingress => "ingress",
            RuleDirection::Egress => "egress",
        }
        .to_owned(),
        ether_type: match given.ether_type.unwrap_or_default() {
            EtherType::IPv4 => "IPv4",
            EtherType::IPv6 => "IPv6",
        }
        .to_owned(),
        protocol: given.protocol.clone(),
        port_range_min: port(given.port_range_min)?,
        port_range_max: port(given.port_range_max)?,
        remote_ip_prefix: given.remote_ip_prefix.as_deref().map(prefix).transpose()?,
        remote_group_id: given.remote_group_id.as_deref().map(Into::into),
    };
    let description = given.description.clone().unwrap_or_else(|| given.name.clone());
    if given.remote_managed_groups.is_empty() {
        return Ok(vec![(base, description)]);
    }
    let rule = |name: &ManagedSecurityGroupName| {
        let role = match name {
            ManagedSecurityGroupName::ControlPlane => Role::ControlPlane,
            ManagedSecurityGroupName::Worker => Role::Worker,
            ManagedSecurityGroupName::Bastion => {
                return Err(format!("{field} names the bastion's group, and there is no bastion"));
            }
        };
        let remote_group_id = ids.get(&role).cloned();
        Ok((GroupRule { remote_group_id, ..base.clone() }, description.clone()))
    };
    given.remote_managed_groups.iter().map(rule).collect()
}

//! Checks everything that a server needs before anything is created, and reports all that is missing together.

use std::net::IpAddr;

use hangar_api::infrastructure::v1beta1::{ImageParam, ResolvedServer};

use super::{NewPort, PortFacts, Preflight, State, UserData, WantedPort, WantedServer, union};
use crate::flow::Read;
use crate::openstack::{FlavorId, Group, ImageId, SecurityGroupId, ServerGroupId, SubnetId, mark};

/// What Nova takes of user data, counted in base64.
pub const MAXIMUM_USER_DATA: usize = 65_535;

/// What a description means in this cloud.
pub(super) struct Resolved {
    pub image_id: ImageId,
    pub flavor_id: FlavorId,
    /// If one is asked for.
    pub server_group_id: Option<ServerGroupId>,
    pub ports: Vec<NewPort>,
}

impl Resolved {
    /// As the status of an object shows it.
    pub(super) fn recorded(&self) -> ResolvedServer {
        ResolvedServer {
            server_group_id: self.server_group_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            image_id: self.image_id.to_string(),
            flavor_id: self.flavor_id.to_string(),
            ports: self.ports.iter().map(NewPort::recorded).collect(),
        }
    }
}

/// What was found and the ports to make, or everything that was not found.
pub(super) fn resolve(wanted: &WantedServer, facts: &Preflight) -> Result<Resolved, State> {
    let mut found = Found { field: wanted.field, problems: Vec::new(), is_all_unknown: true };
    let by = described(&wanted.image);
    let image_id = found.one_by("image", "image", &by, &facts.image, |image| {
        (image.status == "active").then(|| image.id.clone()).ok_or(format!("its status is {}", image.status))
    });
    let flavor_field = if wanted.flavor_id.is_some() { "flavorID" } else { "flavor" };
    let flavor_id = found.one(flavor_field, "flavor", &facts.flavor, |flavor| Ok(flavor.id.clone()));
    let server_group_id = wanted
        .server_group
        .as_ref()
        .map(|_| found.one("serverGroup", "server group", &facts.server_group, |id| Ok(id.clone())));
    if wanted.key_name.is_some() {
        found.one("sshKeyName", "key", &facts.key, |has| {
            if *has { Ok(()) } else { Err("there is no key of that name".to_owned()) }
        });
    }
    user_data(&facts.user_data, &mut found);
    let ports = ports(wanted, facts, &mut found);
    match (found.problems.join("; "), found.is_all_unknown) {
        (none, _) if none.is_empty() => Ok(Resolved { image_id, flavor_id, server_group_id, ports }),
        (problems, true) => Err(State::Unknown(problems)),
        (problems, false) => Err(State::Invalid(problems)),
    }
}

/// What an image is looked for by.
fn described(image: &ImageParam) -> String {
    match image {
        ImageParam::Id(id) => format!(" with the id {:?}", id.0),
        ImageParam::Filter(filter) => {
            let name = filter.name.iter().map(|name| format!("name {name:?}"));
            let tags = filter.tags.iter().map(|tag| format!("tag {tag:?}"));
            let words: Vec<String> = name.chain(tags).collect();
            format!(" with {}", words.join(", "))
        }
        ImageParam::ImageRef(_) => String::new(),
    }
}

struct Found {
    /// Where the server is described.
    field: &'static str,
    /// What is not there, with the field in front.
    problems: Vec<String>,
    /// Whether nobody can tell if it is there.
    is_all_unknown: bool,
}

impl Found {
    fn one<T, I: Default>(
        &mut self,
        field: &str,
        what: &str,
        read: &Read<T>,
        take: impl Fn(&T) -> Result<I, String>,
    ) -> I {
        self.one_by(field, what, "", read, take)
    }

    /// The same, with what it is looked for by.
    fn one_by<T, I: Default>(
        &mut self,
        field: &str,
        what: &str,
        by: &str,
        read: &Read<T>,
        take: impl Fn(&T) -> Result<I, String>,
    ) -> I {
        let (words, is_unknown) = match read {
            Read::One(item) => match take(item) {
                Ok(id) => return id,
                Err(why) => (why, false),
            },
            Read::Absent => (format!("no {what}{by} matches"), false),
            Read::Many(many) => (format!("{} {what}s{by} match", many.len()), false),
            Read::Unknown(unknown) => (unknown.why.clone(), true),
        };
        self.problem(&format!("{}.{field}", self.field), &words, is_unknown);
        I::default()
    }

    fn problem(&mut self, what: &str, words: &str, is_unknown: bool) {
        self.problems.push(format!("{what}: {words}"));
        self.is_all_unknown &= is_unknown;
    }
}

fn user_data(read: &Read<UserData>, found: &mut Found) {
    let (words, is_unknown) = match read {
        Read::One(data) => {
            let encoded = data.0.len().div_ceil(3) * 4;
            if encoded <= MAXIMUM_USER_DATA {
                return;
            }
            let words =
                format!("{encoded} bytes in base64 are more than the {MAXIMUM_USER_DATA} that Nova takes");
            (words, false)
        }
        Read::Unknown(unknown) => (unknown.to_string(), true),
        Read::Absent | Read::Many(_) => ("the Secret has no key \"value\"".to_owned(), false),
    };
    found.problem("bootstrap data", &words, is_unknown);
}

fn ports(wanted: &WantedServer, facts: &Preflight, found: &mut Found) -> Vec<NewPort> {
    let shared = group_ids("securityGroups", &facts.groups, found);
    let (owner_mark, unread) = (mark(&wanted.owner_id), PortFacts::default());
    let resolved = wanted.ports.iter().enumerate().map(|(index, wanted)| {
        let known = facts.wanted.get(index).unwrap_or(&unread);
        let field = format!("ports[{index}]");
        let mut port = port(&field, wanted, known, found);
        if !port.is_unfiltered {
            port.security_group_ids = union(&[&port.security_group_ids, &shared]);
        }
        port.description = match port.description.as_str() {
            "" => owner_mark.clone(),
            words => format!("{words}. {owner_mark}"),
        };
        port.addresses = addresses(&field, wanted, known, found);
        port
    });
    resolved.collect()
}

fn group_ids(field: &str, reads: &[Read<Group>], found: &mut Found) -> Vec<SecurityGroupId> {
    let ids = reads.iter().enumerate().map(|(index, read)| {
        found.one(&format!("{field}[{index}]"), "security group", read, |group| Ok(group.id.clone()))
    });
    ids.collect()
}

fn port(field: &str, wanted: &WantedPort, known: &PortFacts, found: &mut Found) -> NewPort {
    let given = wanted.given.clone();
    let network_field = format!("{field}.network");
    let network_id = if given.network.is_some() {
        found.one(&network_field, "network", &known.network, |network| Ok(network.id.clone()))
    } else {
        let network = Read::found(wanted.network_id.clone());
        found.one(&network_field, "network of the cluster", &network, |id| Ok(id.clone()))
    };
    match &known.has_subnet {
        Read::One(false) => {
            let what = format!("{}.{network_field}", found.field);
            found.problem(&what, "the network has no subnet, and a port on it gets no address", false);
        }
        Read::Unknown(unknown) if !network_id.as_str().is_empty() => {
            found.problem(&format!("{}.{network_field}", found.field), &unknown.why, true);
        }
        _ => {}
    }
    let mut security_group_ids = group_ids(&format!("{field}.securityGroups"), &known.groups, found);
    security_group_ids.extend(wanted.security_group_ids.iter().cloned());
    let is_unfiltered = given.disable_port_security == Some(true);
    NewPort {
        name: wanted.name.clone(),
        description: given.description.unwrap_or_default(),
        network_id,
        addresses: Vec::new(),
        security_group_ids: if is_unfiltered { Vec::new() } else { security_group_ids },
        tags: given.tags,
        admin_state_up: given.admin_state_up,
        mac_address: given.mac_address,
        allowed_address_pairs: if is_unfiltered { Vec::new() } else { given.allowed_address_pairs },
        vnic_type: given.vnic_type,
        is_unfiltered,
    }
}

fn addresses(
    field: &str,
    wanted: &WantedPort,
    known: &PortFacts,
    found: &mut Found,
) -> Vec<(Option<SubnetId>, Option<IpAddr>)> {
    let mut subnets = known.subnets.iter();
    let given = wanted.given.fixed_ips.iter().enumerate().map(|(position, fixed)| {
        let field = format!("{field}.fixedIPs[{position}]");
        let subnet = fixed.subnet.as_ref().and_then(|_| subnets.next()).map(|read| {
            found.one(&format!("{field}.subnet"), "subnet", read, |subnet| Ok(subnet.id.clone()))
        });
        let address = fixed.ip_address.as_deref().and_then(|text| {
            let what = format!("{}.{field}.ipAddress", found.field);
            text.parse().map_err(|_| found.problem(&what, &format!("{text:?} is no address"), false)).ok()
        });
        (subnet, address)
    });
    let known = wanted.subnet_ids.iter().cloned();
    given.chain(known.map(|id| (Some(id), None))).collect()
}

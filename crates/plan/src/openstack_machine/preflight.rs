//! Everything a server needs, checked before anything is made, and told together.

use hangar_api::infrastructure::v1beta1::{
    ImageParam, OpenStackMachineSpec, ResolvedFixedIp, ResolvedMachine, ResolvedPort,
};

use super::ports::suffix;
use super::{InfrastructureFacts, Observed, PortFacts, Preflight, WantedPort, wanted_ports};
use crate::flow::Read;
use crate::openstack::{Group, mark};

/// What Nova takes of user data, counted in base64.
pub const MAXIMUM_USER_DATA: usize = 65_535;

/// Fields that cannot be honoured, by name.
pub(super) fn unsupported(spec: &OpenStackMachineSpec) -> Vec<String> {
    let mut fields = Vec::new();
    let mut refuse = |is_given: bool, field: String| {
        if is_given {
            fields.push(format!("{field} is not supported"));
        }
    };
    refuse(spec.root_volume.is_some(), "spec.rootVolume".to_owned());
    refuse(!spec.additional_block_devices.is_empty(), "spec.additionalBlockDevices".to_owned());
    refuse(spec.floating_ip_pool_ref.is_some(), "spec.floatingIPPoolRef".to_owned());
    refuse(spec.trunk == Some(true), "spec.trunk".to_owned());
    refuse(matches!(spec.image, ImageParam::ImageRef(_)), "spec.image.imageRef".to_owned());
    for (index, port) in spec.ports.iter().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        refuse(port.trunk == Some(true), field("trunk"));
        refuse(port.host_id.is_some(), field("hostID"));
        refuse(port.profile.is_some(), field("profile"));
        refuse(!port.value_specs.is_empty(), field("valueSpecs"));
        refuse(port.propagate_uplink_status.is_some(), field("propagateUplinkStatus"));
    }
    fields.extend(same_names(spec));
    fields
}

/// Ports are found again by their names: two of the same would be taken for one.
fn same_names(spec: &OpenStackMachineSpec) -> Vec<String> {
    let suffixes: Vec<String> =
        spec.ports.iter().enumerate().map(|(index, port)| suffix(index, port)).collect();
    let again = suffixes.iter().enumerate().filter(|(index, suffix)| suffixes[..*index].contains(suffix));
    again
        .map(|(index, suffix)| {
            format!("spec.ports[{index}].nameSuffix: another port is called {suffix:?} already")
        })
        .collect()
}

/// What was found, or everything that was not.
pub(super) fn resolve(observed: &Observed, facts: &Preflight) -> Result<ResolvedMachine, Vec<Problem>> {
    let mut found = Found::default();
    let image_id = found.one("spec.image", "image", &facts.image, |image| {
        (image.status == "active").then(|| image.id.clone()).ok_or(format!("its status is {}", image.status))
    });
    let flavor_field = if observed.object.spec.flavor_id.is_some() { "spec.flavorID" } else { "spec.flavor" };
    let flavor_id = found.one(flavor_field, "flavor", &facts.flavor, |flavor| Ok(flavor.id.clone()));
    let server_group_id = match &observed.object.spec.server_group {
        None => String::new(),
        Some(_) => found.one("spec.serverGroup", "server group", &facts.server_group, |id| Ok(id.clone())),
    };
    if observed.object.spec.ssh_key_name.as_ref().is_some_and(|name| !name.is_empty()) {
        found.one("spec.sshKeyName", "key", &facts.key, |has| {
            if *has { Ok(String::new()) } else { Err("there is no key of that name".to_owned()) }
        });
    }
    user_data(observed, &mut found);
    let ports = ports(observed, facts, &mut found);
    if found.problems.is_empty() {
        Ok(ResolvedMachine { server_group_id, image_id, flavor_id, ports })
    } else {
        Err(found.problems)
    }
}

/// One thing that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// The words, with the field in front.
    pub(super) words: String,
    /// Nobody can tell whether it is there.
    pub(super) is_unknown: bool,
}

#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
}

impl Found {
    fn one<T>(
        &mut self,
        field: &str,
        what: &str,
        read: &Read<T>,
        take: impl Fn(&T) -> Result<String, String>,
    ) -> String {
        let (words, is_unknown) = match read {
            Read::One(item) => match take(item) {
                Ok(id) => return id,
                Err(why) => (why, false),
            },
            Read::Absent => (format!("no {what} matches"), false),
            Read::Many(many) => (format!("{} {what}s match", many.len()), false),
            Read::Unknown(unknown) => (unknown.why.clone(), true),
        };
        self.problems.push(Problem { words: format!("{field}: {words}"), is_unknown });
        String::new()
    }
}

fn user_data(observed: &Observed, found: &mut Found) {
    match &observed.user_data {
        Read::One(data) => {
            let encoded = data.0.len().div_ceil(3) * 4;
            if encoded > MAXIMUM_USER_DATA {
                let words = format!(
                    "bootstrap data: {encoded} bytes in base64 are more than the {MAXIMUM_USER_DATA} that Nova takes"
                );
                found.problems.push(Problem { words, is_unknown: false });
            }
        }
        Read::Unknown(unknown) => {
            found.problems.push(Problem { words: format!("bootstrap data: {unknown}"), is_unknown: true });
        }
        Read::Absent | Read::Many(_) => {
            let words = "bootstrap data: the Secret has no key \"value\"".to_owned();
            found.problems.push(Problem { words, is_unknown: false });
        }
    }
}

fn ports(observed: &Observed, facts: &Preflight, found: &mut Found) -> Vec<ResolvedPort> {
    let infrastructure = observed.infrastructure_facts();
    let wanted = wanted_ports(&observed.server_name(), &observed.object.spec, &infrastructure);
    let shared = group_ids("spec.securityGroups", &facts.groups, found);
    let owner_mark = mark(&observed.owner_id().unwrap_or_default());
    let resolved = wanted.into_iter().enumerate().map(|(index, wanted)| {
        let field = format!("spec.ports[{index}]");
        let known = facts.wanted.get(index);
        let mut port = port(&field, wanted, known, &infrastructure, found);
        if port.disable_port_security.is_none() {
            port.security_groups.extend(shared.iter().cloned());
            super::ports::dedup(&mut port.security_groups);
        }
        port.description = match port.description.as_str() {
            "" => owner_mark.clone(),
            words => format!("{words}. {owner_mark}"),
        };
        port
    });
    resolved.collect()
}

fn group_ids(field: &str, reads: &[Read<Group>], found: &mut Found) -> Vec<String> {
    let ids = reads.iter().enumerate().map(|(index, read)| {
        found.one(&format!("{field}[{index}]"), "security group", read, |group| Ok(group.id.clone()))
    });
    ids.collect()
}

fn port(
    field: &str,
    wanted: WantedPort,
    known: Option<&PortFacts>,
    infrastructure: &InfrastructureFacts,
    found: &mut Found,
) -> ResolvedPort {
    let network_id = match (&wanted.network, known) {
        (None, _) => {
            let network = Read::found(infrastructure.network_id.clone());
            found.one(&format!("{field}.network"), "network of the cluster", &network, |id| Ok(id.clone()))
        }
        (Some(_), Some(known)) => {
            let read = &known.network;
            found.one(&format!("{field}.network"), "network", read, |network| Ok(network.id.clone()))
        }
        (Some(_), None) => String::new(),
    };
    let mut security_groups = match known {
        Some(known) => group_ids(&format!("{field}.securityGroups"), &known.groups, found),
        None => Vec::new(),
    };
    if wanted.uses_managed_group {
        security_groups.extend(infrastructure.security_group_id.clone());
    }
    let is_unfiltered = wanted.disable_port_security;
    ResolvedPort {
        fixed_ips: fixed_ips(field, &wanted, known, found),
        name: wanted.name,
        description: wanted.description.unwrap_or_default(),
        network_id,
        security_groups: if is_unfiltered { Vec::new() } else { security_groups },
        tags: wanted.tags,
        admin_state_up: wanted.admin_state_up,
        mac_address: wanted.mac_address,
        allowed_address_pairs: if is_unfiltered { Vec::new() } else { wanted.allowed_address_pairs },
        vnic_type: wanted.vnic_type,
        disable_port_security: is_unfiltered.then_some(true),
        ..ResolvedPort::default()
    }
}

fn fixed_ips(
    field: &str,
    wanted: &WantedPort,
    known: Option<&PortFacts>,
    found: &mut Found,
) -> Vec<ResolvedFixedIp> {
    let mut subnets = known.map(|known| known.subnets.iter()).into_iter().flatten();
    let mut all = Vec::new();
    for (position, fixed) in wanted.fixed_ips.iter().enumerate() {
        let subnet = match (&fixed.subnet, &fixed.subnet_id) {
            (None, id) => id.clone(),
            (Some(_), _) => subnets.next().map(|read| {
                let field = format!("{field}.fixedIPs[{position}].subnet");
                found.one(&field, "subnet", read, |subnet| Ok(subnet.id.clone()))
            }),
        };
        all.push(ResolvedFixedIp { subnet, ip_address: fixed.ip_address.clone() });
    }
    all
}

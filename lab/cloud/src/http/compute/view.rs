//! Renders a server as JSON, in the format of the microversion that was asked for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::time::{microseconds_bare, seconds};
use super::flavors;
use super::microversion::Version;
use crate::http::Call;
use crate::model::{Model, Server, Status, mac_text};

/// What Nova calls a server's state.
pub(super) fn status(server: &Server) -> &'static str {
    match server.status {
        Status::Build => "BUILD",
        Status::Active => "ACTIVE",
        Status::Shutoff => "SHUTOFF",
        Status::Reboot => "REBOOT",
        Status::Error => "ERROR",
    }
}

pub(super) fn links(call: &Call<'_>, collection: &str, id: &str) -> Value {
    json!([
        {"rel": "self", "href": call.url(&format!("/compute/v2.1/{collection}/{id}"))},
        {"rel": "bookmark", "href": call.url(&format!("/compute/{collection}/{id}"))},
    ])
}

pub(super) fn summary(call: &Call<'_>, server: &Server) -> Value {
    json!({"id": server.id, "name": server.name, "links": links(call, "servers", &server.id.to_string())})
}

/// A server in full. Alone it shows some more than in a list.
pub(super) fn server(call: &Call<'_>, server: &Server, version: Version, is_alone: bool) -> Value {
    let image = server.image.to_string();
    let image_link = json!([{"rel": "bookmark", "href": call.url(&format!("/compute/images/{image}"))}]);
    let mut view = json!({
        "id": server.id,
        "name": server.name,
        "status": status(server),
        "tenant_id": server.project,
        "user_id": server.user,
        "metadata": server.metadata,
        "hostId": host_id(server),
        "image": {"id": image, "links": image_link},
        "flavor": flavor(call, server, version),
        "created": seconds(server.created),
        "updated": seconds(server.updated),
        "addresses": addresses(call.model, server),
        "accessIPv4": "",
        "accessIPv6": "",
        "links": links(call, "servers", &server.id.to_string()),
        "OS-DCF:diskConfig": "MANUAL",
        "OS-EXT-AZ:availability_zone": server.zone,
        "config_drive": if server.config_drive { "True" } else { "" },
        "key_name": server.key.as_ref().map(|(name, _)| name),
        "OS-SRV-USG:launched_at": server.launched.map(microseconds_bare),
        "OS-SRV-USG:terminated_at": null,
        "OS-EXT-STS:task_state": task(server),
        "OS-EXT-STS:vm_state": machine_state(server),
        "OS-EXT-STS:power_state": power_state(server),
        "os-extended-volumes:volumes_attached": [],
    });
    let groups = security_groups(call.model, server);
    // A server without ports has no such key at all.
    if !groups.is_empty() {
        view["security_groups"] = groups.into_iter().map(|group| json!({"name": group["name"]})).collect();
    }
    if matches!(server.status, Status::Build | Status::Active | Status::Reboot) {
        view["progress"] = json!(0);
    }
    if let Some(fault) = server.fault.as_ref().filter(|_| server.status == Status::Error) {
        view["fault"] = json!({"code": 500, "created": seconds(fault.created), "message": fault.message});
    }
    add_versioned(call, &mut view, server, version, is_alone);
    view
}

fn add_versioned(call: &Call<'_>, view: &mut Value, server: &Server, version: Version, is_alone: bool) {
    if version >= Version(2, 9) {
        view["locked"] = json!(false);
    }
    if version >= Version(2, 19) {
        view["description"] = json!(server.description);
    }
    if version >= Version(2, 26) {
        view["tags"] = json!(server.tags);
    }
    if version >= Version(2, 63) {
        view["trusted_image_certificates"] = Value::Null;
    }
    if version >= Version(2, 71) && is_alone {
        view["server_groups"] = json!(server.group.into_iter().collect::<Vec<Uuid>>());
    }
    if version >= Version(2, 73) {
        view["locked_reason"] = Value::Null;
    }
    let sees_host_name = version >= Version(2, 90) || call.caller.is_admin && version >= Version(2, 3);
    if sees_host_name {
        view["OS-EXT-SRV-ATTR:hostname"] = json!(server.name.to_lowercase());
    }
    if call.caller.is_admin {
        view["OS-EXT-SRV-ATTR:host"] = json!("hangar");
        view["OS-EXT-SRV-ATTR:hypervisor_hostname"] = json!("hangar");
        view["OS-EXT-SRV-ATTR:instance_name"] = json!(format!("instance-{:08x}", server.serial));
        if version >= Version(2, 3) {
            view["OS-EXT-SRV-ATTR:user_data"] = json!(server.user_data);
        }
    }
}

fn flavor(call: &Call<'_>, server: &Server, version: Version) -> Value {
    if version >= Version(2, 47) {
        return flavors::embedded(&server.flavor);
    }
    let id = &server.flavor.id;
    json!({"id": id, "links": [{"rel": "bookmark", "href": call.url(&format!("/compute/flavors/{id}"))}]})
}

/// Hides which host it is, and is empty before there is one.
fn host_id(server: &Server) -> String {
    if server.launched.is_none() {
        return String::new();
    }
    let name = format!("{}/hangar", server.project);
    let (one, other) = (Uuid::NAMESPACE_OID, Uuid::NAMESPACE_DNS);
    // Nova writes 56 digits.
    let text = format!(
        "{}{}",
        Uuid::new_v5(&one, name.as_bytes()).simple(),
        Uuid::new_v5(&other, name.as_bytes()).simple()
    );
    text.chars().take(56).collect()
}

fn task(server: &Server) -> Option<&'static str> {
    match server.status {
        _ if server.is_deleting => Some("deleting"),
        Status::Build => Some("spawning"),
        Status::Active if !server.runs => Some("powering-off"),
        Status::Shutoff if server.runs => Some("powering-on"),
        Status::Reboot => Some("rebooting"),
        _ => None,
    }
}

fn machine_state(server: &Server) -> &'static str {
    match server.status {
        Status::Build => "building",
        Status::Active | Status::Reboot => "active",
        Status::Shutoff => "stopped",
        Status::Error => "error",
    }
}

fn power_state(server: &Server) -> u8 {
    match server.status {
        Status::Active | Status::Reboot => 1,
        Status::Shutoff => 4,
        Status::Build | Status::Error => 0,
    }
}

/// Addresses by network name, floating ones after the fixed ones they lead to.
pub(super) fn addresses(model: &Model, server: &Server) -> Value {
    let mut all: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for port in server.ports.iter().filter_map(|port| model.ports.get(port)) {
        let Some(network) = model.networks.get(&port.network) else { continue };
        let list = all.entry(&network.standard.name).or_default();
        let mut add = |address: std::net::IpAddr, kind: &str| {
            list.push(json!({
                "version": if address.is_ipv6() { 6 } else { 4 },
                "addr": address,
                "OS-EXT-IPS:type": kind,
                "OS-EXT-IPS-MAC:mac_addr": mac_text(port.mac),
            }));
        };
        for fixed in &port.fixed_ips {
            add(fixed.address, "fixed");
            let floating = model.floating_ips.values().filter(|floating| floating.port == Some(port.id));
            for floating in floating.filter(|floating| floating.fixed_address == Some(fixed.address)) {
                add(floating.address, "floating");
            }
        }
    }
    json!(all)
}

/// Groups of all its ports.
pub(super) fn security_groups(model: &Model, server: &Server) -> Vec<Value> {
    let ports = server.ports.iter().filter_map(|port| model.ports.get(port));
    let ids: BTreeSet<Uuid> = ports.flat_map(|port| port.security_groups.iter().copied()).collect();
    ids.iter()
        .filter_map(|id| model.security_groups.get(id))
        .map(|group| {
            json!({
                "id": group.id,
                "name": group.standard.name,
                "description": group.standard.description,
                "tenant_id": group.standard.project,
                "rules": [],
            })
        })
        .collect()
}

//! Ports over HTTP.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{changes, create, no_such_resource, show, standard};
use crate::http::{Attributes, Call, Reply, assign, attributes, network_list};
use crate::model::{NewPort, Pair, Port, Refusal, check_port_security, mac_text};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let visible = call.model.ports.values().filter(|it| it.standard.is_of(&call.caller));
            network_list(call, "ports", visible.map(view).collect())
        }
        ("POST", []) => create(call, "port", "ports", make),
        ("GET", [id]) => Ok(show(call, "port", view(call.model.port(&call.caller, id)?))),
        ("PUT", [id]) => update(call, id),
        ("DELETE", [id]) => call.model.delete_port(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, mut attributes: Attributes) -> Result<Value, Refusal> {
    let standard = standard::take(call, &mut attributes)?;
    let network = attributes.text("network_id")?.ok_or_else(|| {
        Refusal::bad("Failed to parse request. Required attribute 'network_id' not specified")
    })?;
    attributes::uuid("network_id", &network)?;
    let network = call.model.network(&call.caller, &network)?;
    if !network.standard.is_of(&call.caller) && !network.shared {
        let words = format!("Tenant {} not allowed to create port on this network", call.caller.project);
        return Err(Refusal::new(403, "HTTPForbidden", words));
    }
    let network = network.id;
    let new = NewPort {
        standard,
        network,
        mac: attributes.text("mac_address")?.map(|text| mac(&text)).transpose()?,
        fixed_ips: fixed_ips(&mut attributes)?,
        admin_state_up: attributes.boolean("admin_state_up")?.unwrap_or(true),
        device_id: attributes.text("device_id")?.unwrap_or_default(),
        device_owner: device_owner(call, &mut attributes)?.unwrap_or_default(),
        security_groups: groups(call, &mut attributes)?,
        allowed_address_pairs: pairs(&mut attributes)?.unwrap_or_default(),
        port_security_enabled: attributes.boolean("port_security_enabled")?,
        vnic_type: attributes.text("binding:vnic_type")?.unwrap_or_else(|| "normal".into()),
    };
    ignore(&mut attributes);
    attributes.finish()?;
    let id = call.model.create_port(new, &mut call.draw)?;
    Ok(call.model.ports.get(&id).map(view).unwrap_or_default())
}

/// Attributes that are understood and have no meaning on one host.
fn ignore(attributes: &mut Attributes) {
    for name in [
        "binding:profile",
        "binding:host_id",
        "propagate_uplink_status",
        "extra_dhcp_opts",
        "dns_name",
        "dns_domain",
        "qos_policy_id",
    ] {
        attributes.take(name);
    }
}

/// The cloud's own kinds of owners are not for others to claim.
fn device_owner(call: &Call<'_>, attributes: &mut Attributes) -> Result<Option<String>, Refusal> {
    let owner = attributes.text("device_owner")?;
    if owner.as_deref().is_some_and(|owner| owner.starts_with("network:")) && !call.caller.is_admin {
        let words = "(rule:create_port and rule:create_port:device_owner) is disallowed by policy";
        return Err(Refusal::forbidden(words));
    }
    Ok(owner)
}

fn mac(text: &str) -> Result<[u8; 6], Refusal> {
    let bytes: Option<Vec<u8>> =
        text.split([':', '-']).map(|part| u8::from_str_radix(part, 16).ok()).collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes
        .ok_or_else(|| Refusal::attribute("mac_address", format_args!("'{text}' is not a valid MAC address")))
}

type WantedAddress = (Option<Uuid>, Option<IpAddr>);

fn fixed_ips(attributes: &mut Attributes) -> Result<Option<Vec<WantedAddress>>, Refusal> {
    let Some(items) = attributes.objects("fixed_ips")? else { return Ok(None) };
    let one = |mut item: Attributes| {
        let wanted = (item.uuid("subnet_id")?, item.address("ip_address")?);
        item.finish()?;
        Ok(wanted)
    };
    items.into_iter().map(one).collect::<Result<_, _>>().map(Some)
}

fn groups(call: &Call<'_>, attributes: &mut Attributes) -> Result<Option<BTreeSet<Uuid>>, Refusal> {
    let Some(ids) = attributes.texts("security_groups")? else { return Ok(None) };
    let find = |id: &String| {
        attributes::uuid("security_groups", id)?;
        call.model.security_group(&call.caller, id).map(|group| group.id)
    };
    ids.iter().map(find).collect::<Result<_, _>>().map(Some)
}

fn pairs(attributes: &mut Attributes) -> Result<Option<Vec<Pair>>, Refusal> {
    let Some(items) = attributes.objects("allowed_address_pairs")? else { return Ok(None) };
    let one = |mut item: Attributes| {
        let missing =
            || Refusal::invalid("AllowedAddressPairsMissingIP", "AllowedAddressPair must contain ip_address");
        let text = item.text("ip_address")?.ok_or_else(missing)?;
        let address = attributes::range("allowed_address_pairs", &text, true)?;
        let mac = item.text("mac_address")?.map(|text| mac(&text)).transpose()?.map(mac_text);
        item.finish()?;
        Ok(Pair { address, is_range: text.contains('/'), mac })
    };
    let pairs: Vec<Pair> = items.into_iter().map(one).collect::<Result<_, _>>()?;
    for (index, pair) in pairs.iter().enumerate() {
        if pairs[..index].contains(pair) {
            let words = format!(
                "Request contains duplicate address pair: mac_address {:?} ip_address {}.",
                pair.mac, pair.address
            );
            return Err(Refusal::invalid("DuplicateAddressPairInRequest", words));
        }
    }
    Ok(Some(pairs))
}

fn update(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let mut attributes = changes(call, "port")?;
    let groups = groups(call, &mut attributes)?;
    let owner = device_owner(call, &mut attributes)?;
    let current = call.model.port(&call.caller, id)?;
    let addresses = match fixed_ips(&mut attributes)? {
        None => None,
        Some(wanted) => {
            Some(call.model.give_addresses(current.network, Some(&wanted), &current.fixed_ips)?)
        }
    };
    let port = call.model.port_mut(&call.caller, id)?;
    standard::update(&mut port.standard, &mut attributes, &call.draw)?;
    if let Some(addresses) = addresses {
        port.fixed_ips = addresses;
    }
    assign(&mut port.admin_state_up, attributes.boolean("admin_state_up")?);
    assign(&mut port.device_id, attributes.text("device_id")?);
    if let Some(owner) = owner {
        port.device_owner = owner;
    }
    assign(&mut port.port_security_enabled, attributes.boolean("port_security_enabled")?);
    if let Some(groups) = groups {
        port.security_groups = groups;
    }
    assign(&mut port.allowed_address_pairs, pairs(&mut attributes)?);
    assign(&mut port.vnic_type, attributes.text("binding:vnic_type")?);
    ignore(&mut attributes);
    attributes.finish()?;
    check_port_security(port)?;
    let view = view(port);
    Ok(show(call, "port", view))
}

pub(super) fn view(port: &Port) -> Value {
    let fixed: Vec<Value> = port
        .fixed_ips
        .iter()
        .map(|fixed| json!({"subnet_id": fixed.subnet, "ip_address": fixed.address}))
        .collect();
    let pairs: Vec<Value> = port
        .allowed_address_pairs
        .iter()
        .map(|pair| {
            let address =
                if pair.is_range { pair.address.to_string() } else { pair.address.addr().to_string() };
            let mac = pair.mac.clone().unwrap_or_else(|| mac_text(port.mac));
            json!({"ip_address": address, "mac_address": mac})
        })
        .collect();
    let mut view = json!({
        "id": port.id,
        "network_id": port.network,
        "mac_address": mac_text(port.mac),
        "admin_state_up": port.admin_state_up,
        "status": if port.is_active { "ACTIVE" } else { "DOWN" },
        "device_id": port.device_id,
        "device_owner": port.device_owner,
        "fixed_ips": fixed,
        "allowed_address_pairs": pairs,
        "extra_dhcp_opts": [],
        "security_groups": port.security_groups,
        "binding:vnic_type": port.vnic_type,
        "port_security_enabled": port.port_security_enabled,
        "qos_policy_id": null,
        "qos_network_policy_id": null,
        "resource_request": null,
        "propagate_uplink_status": true,
    });
    standard::add(&mut view, &port.standard, true);
    view
}

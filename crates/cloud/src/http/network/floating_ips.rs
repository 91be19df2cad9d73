//! Floating IPs over HTTP.

use serde_json::{Value, json};

use super::{changes, create, no_such_resource, ports, show, standard};
use crate::http::{Attributes, Call, Reply, network_list};
use crate::model::{FloatingIp, Model, Refusal};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let visible = call.model.floating_ips.values().filter(|it| it.standard.is_of(&call.caller));
            network_list(call, "floatingips", visible.map(|it| view(call.model, it)).collect())
        }
        ("POST", []) => create(call, "floatingip", "floatingips", make),
        ("GET", [id]) => {
            Ok(show(call, "floatingip", view(call.model, call.model.floating_ip(&call.caller, id)?)))
        }
        ("PUT", [id]) => update(call, id),
        ("DELETE", [id]) => call.model.delete_floating_ip(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, mut attributes: Attributes) -> Result<Value, Refusal> {
    let standard = standard::take(call, &mut attributes)?;
    let network = attributes.text("floating_network_id")?.ok_or_else(|| {
        Refusal::bad("Failed to parse request. Required attribute 'floating_network_id' not specified")
    })?;
    let network = call.model.network(&call.caller, &network)?.id;
    let address = attributes.address("floating_ip_address")?;
    let port = attributes.text("port_id")?;
    let fixed = attributes.address("fixed_ip_address")?;
    for ignored in ["subnet_id", "qos_policy_id", "dns_name", "dns_domain"] {
        attributes.take(ignored);
    }
    attributes.finish()?;
    let id = call.model.create_floating_ip(standard, network, address, &mut call.draw)?;
    if let Some(port) = port {
        let port = call.model.port(&call.caller, &port)?.id;
        call.model.associate(id, port, fixed)?;
    }
    Ok(call.model.floating_ips.get(&id).map(|it| view(call.model, it)).unwrap_or_default())
}

fn update(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let mut attributes = changes(call, "floatingip")?;
    // Neutron takes a port that is not named for one that is wanted away, unless only the description changes.
    let port = attributes.take("port_id");
    let fixed = attributes.address("fixed_ip_address")?;
    let floating = call.model.floating_ip_mut(&call.caller, id)?;
    standard::update(&mut floating.standard, &mut attributes, &call.draw)?;
    attributes.take("qos_policy_id");
    attributes.finish()?;
    let id = floating.id;
    match port {
        None => {}
        Some(Value::String(port)) => {
            floating.release();
            let port = call.model.port(&call.caller, &port)?.id;
            call.model.associate(id, port, fixed)?;
        }
        Some(_) => floating.release(),
    }
    let view = call.model.floating_ips.get(&id).map(|it| view(call.model, it)).unwrap_or_default();
    Ok(show(call, "floatingip", view))
}

fn view(model: &Model, floating: &FloatingIp) -> Value {
    let port = floating.port.and_then(|port| model.ports.get(&port)).map(|port| {
        let view = ports::view(port);
        let names =
            ["status", "name", "admin_state_up", "network_id", "device_owner", "mac_address", "device_id"];
        names.iter().map(|name| ((*name).to_owned(), view[*name].clone())).collect::<serde_json::Map<_, _>>()
    });
    let mut view = json!({
        "id": floating.id,
        "floating_ip_address": floating.address,
        "floating_network_id": floating.network,
        "router_id": floating.router,
        "port_id": floating.port,
        "fixed_ip_address": floating.fixed_address,
        "status": if floating.port.is_some() { "ACTIVE" } else { "DOWN" },
        "port_details": port,
        "qos_policy_id": null,
        "dns_domain": "",
        "dns_name": "",
        "port_forwardings": [],
    });
    standard::add(&mut view, &floating.standard, false);
    view
}

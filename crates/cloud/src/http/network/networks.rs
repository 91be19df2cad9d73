//! Networks over HTTP.

use serde_json::{Value, json};

use super::{changes, create, no_such_resource, show, standard};
use crate::http::{Attributes, Call, Reply, assign, network_list};
use crate::model::{Model, Network, NewNetwork, Refusal};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let visible = call
                .model
                .networks
                .values()
                .filter(|it| it.standard.is_of(&call.caller) || it.shared || it.external);
            network_list(call, "networks", visible.map(|it| view(call.model, it)).collect())
        }
        ("POST", []) => create(call, "network", "networks", make),
        ("GET", [id]) => Ok(show(call, "network", view(call.model, call.model.network(&call.caller, id)?))),
        ("PUT", [id]) => update(call, id),
        ("DELETE", [id]) => call.model.delete_network(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, mut attributes: Attributes) -> Result<Value, Refusal> {
    let standard = standard::take(call, &mut attributes)?;
    refuse_policy(call, &mut attributes, "create_network")?;
    let new = NewNetwork {
        standard,
        admin_state_up: attributes.boolean("admin_state_up")?.unwrap_or(true),
        mtu: attributes.number("mtu")?.filter(|mtu| *mtu > 0),
        port_security_enabled: attributes.boolean("port_security_enabled")?.unwrap_or(true),
    };
    attributes.take("availability_zone_hints");
    attributes.finish()?;
    let id = call.model.create_network(new, &mut call.draw)?;
    Ok(call.model.networks.get(&id).map(|it| view(call.model, it)).unwrap_or_default())
}

/// Sharing and being external are an administrator's, and there is one external network.
fn refuse_policy(call: &Call<'_>, attributes: &mut Attributes, rule: &str) -> Result<(), Refusal> {
    for name in ["shared", "router:external", "is_default"] {
        if attributes.boolean(name)? == Some(true) {
            let words = if call.caller.is_admin {
                "the external network comes from the cloud's configuration".to_owned()
            } else {
                format!("(rule:{rule} and rule:{rule}:{name}) is disallowed by policy")
            };
            return Err(Refusal::forbidden(words));
        }
    }
    Ok(())
}

fn update(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let mut attributes = changes(call, "network")?;
    refuse_policy(call, &mut attributes, "update_network")?;
    let network = call.model.network_mut(&call.caller, id, "update")?;
    standard::update(&mut network.standard, &mut attributes, &call.draw)?;
    assign(&mut network.admin_state_up, attributes.boolean("admin_state_up")?);
    assign(&mut network.mtu, attributes.number("mtu")?);
    assign(&mut network.port_security_enabled, attributes.boolean("port_security_enabled")?);
    attributes.finish()?;
    let network = network.clone();
    Ok(show(call, "network", view(call.model, &network)))
}

fn view(model: &Model, network: &Network) -> Value {
    let subnets: Vec<_> = model.subnets_of(network.id).map(|subnet| subnet.id).collect();
    let mut view = json!({
        "id": network.id,
        "admin_state_up": network.admin_state_up,
        "mtu": network.mtu,
        "status": "ACTIVE",
        "subnets": subnets,
        "shared": network.shared,
        "availability_zone_hints": [],
        "availability_zones": [],
        "ipv4_address_scope": null,
        "ipv6_address_scope": null,
        "router:external": network.external,
        "is_default": network.external,
        "port_security_enabled": network.port_security_enabled,
        "qos_policy_id": null,
    });
    standard::add(&mut view, &network.standard, true);
    view
}

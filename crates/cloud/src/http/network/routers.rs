//! Routers over HTTP.

use std::net::IpAddr;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{changes, create, no_such_resource, show, standard};
use crate::http::{Attributes, Call, Reply, assign, network_list};
use crate::model::{Model, Port, Refusal, Router};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let visible = call.model.routers.values().filter(|it| it.standard.is_of(&call.caller));
            network_list(call, "routers", visible.map(|it| view(call.model, it)).collect())
        }
        ("POST", []) => create(call, "router", "routers", make),
        ("GET", [id]) => Ok(show(call, "router", view(call.model, call.model.router(&call.caller, id)?))),
        ("PUT", [id]) => update(call, id),
        ("PUT", [id, "add_router_interface"]) => add_interface(call, id),
        ("PUT", [id, "remove_router_interface"]) => remove_interface(call, id),
        ("DELETE", [id]) => call.model.delete_router(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, mut attributes: Attributes) -> Result<Value, Refusal> {
    let standard = standard::take(call, &mut attributes)?;
    let up = attributes.boolean("admin_state_up")?.unwrap_or(true);
    let gateway = attributes.take("external_gateway_info");
    attributes.take("availability_zone_hints");
    attributes.take("ha");
    attributes.take("distributed");
    attributes.take("flavor_id");
    attributes.finish()?;
    let id = call.model.create_router(standard, up, &mut call.draw)?;
    set_gateway(call, id, gateway)?;
    Ok(call.model.routers.get(&id).map(|it| view(call.model, it)).unwrap_or_default())
}

fn update(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let mut attributes = changes(call, "router")?;
    let gateway = attributes.take("external_gateway_info");
    let router = call.model.router_mut(&call.caller, id)?;
    standard::update(&mut router.standard, &mut attributes, &call.draw)?;
    assign(&mut router.admin_state_up, attributes.boolean("admin_state_up")?);
    attributes.take("routes");
    attributes.finish()?;
    let id = router.id;
    set_gateway(call, id, gateway)?;
    let view = call.model.routers.get(&id).map(|it| view(call.model, it)).unwrap_or_default();
    Ok(show(call, "router", view))
}

/// Sets or clears the gateway, as the attribute says; nothing said changes nothing.
fn set_gateway(call: &mut Call<'_>, router: Uuid, info: Option<Value>) -> Result<(), Refusal> {
    let map = match info {
        None => return Ok(()),
        Some(Value::Null) => return call.model.clear_gateway(router),
        Some(Value::Object(map)) if map.is_empty() => return call.model.clear_gateway(router),
        Some(Value::Object(map)) => map,
        Some(other) => {
            return Err(Refusal::attribute(
                "external_gateway_info",
                format_args!("'{other}' is not a dictionary"),
            ));
        }
    };
    let mut info = Attributes::new(map);
    let missing = || Refusal::attribute("external_gateway_info", "network_id is missing");
    let network = info.text("network_id")?.ok_or_else(missing)?;
    let network = call.model.network(&call.caller, &network)?.id;
    let snat = info.boolean("enable_snat")?;
    if snat == Some(false) && !call.caller.is_admin {
        let words = "(rule:create_router and rule:create_router:external_gateway_info:enable_snat) is disallowed by policy";
        return Err(Refusal::forbidden(words));
    }
    let fixed = match info.objects("external_fixed_ips")? {
        None => None,
        Some(items) => {
            let one = |mut item: Attributes| Ok((item.uuid("subnet_id")?, item.address("ip_address")?));
            let wanted: Vec<(Option<Uuid>, Option<IpAddr>)> =
                items.into_iter().map(one).collect::<Result<_, Refusal>>()?;
            Some(wanted).filter(|wanted| !wanted.is_empty())
        }
    };
    info.take("qos_policy_id");
    info.finish()?;
    call.model.set_gateway(router, network, snat.unwrap_or(true), fixed, &mut call.draw)
}

fn add_interface(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let router = call.model.router(&call.caller, id)?.id;
    let (subnet, port) = interface(call)?;
    let port = match (subnet, port) {
        (Some(subnet), None) => {
            let subnet = call.model.subnet(&call.caller, &subnet)?.id;
            call.model.add_interface(router, subnet, &mut call.draw)?
        }
        (None, Some(port)) => {
            let port = call.model.port(&call.caller, &port)?.id;
            call.model.add_interface_port(router, port)?;
            port
        }
        (Some(_), Some(_)) => return Err(bad("Cannot specify both subnet-id and port-id")),
        (None, None) => return Err(bad("Either subnet_id or port_id must be specified")),
    };
    let leg = call.model.ports.get(&port).cloned();
    leg.map(|leg| interface_view(call, router, &leg)).ok_or_else(no_such_resource)
}

fn remove_interface(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let router = call.model.router(&call.caller, id)?.id;
    let (subnet, port) = interface(call)?;
    let subnet = match subnet {
        Some(subnet) => Some(call.model.subnet(&call.caller, &subnet)?.id),
        None => None,
    };
    let port = match port {
        Some(port) => Some(call.model.port(&call.caller, &port)?.id),
        None => None,
    };
    if subnet.is_none() && port.is_none() {
        return Err(bad("Either subnet_id or port_id must be specified"));
    }
    let leg = call.model.remove_interface(router, subnet, port)?;
    Ok(interface_view(call, router, &leg))
}

fn interface(call: &Call<'_>) -> Result<(Option<String>, Option<String>), Refusal> {
    let mut body = Attributes::new(call.request.json()?);
    Ok((body.text("subnet_id")?, body.text("port_id")?))
}

fn bad(why: &str) -> Refusal {
    Refusal::invalid("BadRequest", format!("Bad router request: {why}."))
}

fn interface_view(call: &Call<'_>, router: Uuid, leg: &Port) -> Reply {
    let project = call.model.routers.get(&router).map(|router| router.standard.project.clone());
    let subnets: Vec<Uuid> = leg.fixed_ips.iter().map(|fixed| fixed.subnet).collect();
    Reply::ok(&json!({
        "id": router,
        "tenant_id": project,
        "project_id": project,
        "port_id": leg.id,
        "network_id": leg.network,
        "subnet_id": subnets.first(),
        "subnet_ids": subnets,
        "tags": [],
    }))
}

fn view(model: &Model, router: &Router) -> Value {
    let gateway = router.gateway.as_ref().map(|gateway| {
        let port = model.ports.get(&gateway.port);
        let fixed: Vec<Value> = port
            .map(|port| port.fixed_ips.as_slice())
            .unwrap_or_default()
            .iter()
            .map(|fixed| json!({"subnet_id": fixed.subnet, "ip_address": fixed.address}))
            .collect();
        json!({"network_id": gateway.network, "enable_snat": gateway.enable_snat, "external_fixed_ips": fixed})
    });
    let mut view = json!({
        "id": router.id,
        "admin_state_up": router.admin_state_up,
        "status": "ACTIVE",
        "external_gateway_info": gateway,
        "availability_zone_hints": [],
        "availability_zones": [],
        "routes": [],
        "flavor_id": null,
    });
    standard::add(&mut view, &router.standard, true);
    view
}

//! Ports of servers, through Nova.

use serde_json::{Value, json};
use uuid::Uuid;

use super::no_such_resource;
use crate::http::{Attributes, Call, Reply};
use crate::model::{NewPort, Port, Refusal, Standard, mac_text};

pub(super) fn answer(call: &mut Call<'_>, id: &str, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let server = call.model.server(&call.caller, id)?;
            let ports = server.ports.iter().filter_map(|port| call.model.ports.get(port));
            Ok(Reply::ok(&json!({"interfaceAttachments": ports.map(view).collect::<Vec<Value>>()})))
        }
        ("GET", [port]) => {
            let port = attached(call, id, port)?;
            let view = call.model.ports.get(&port).map(view);
            Ok(Reply::ok(&json!({"interfaceAttachment": view})))
        }
        ("POST", []) => attach(call, id),
        ("DELETE", [port]) => {
            let port = attached(call, id, port)?;
            let server = call.model.server_mut(&call.caller, id)?;
            server.ports.retain(|it| *it != port);
            if server.own_ports.remove(&port) {
                call.model.remove_port(port);
            } else {
                call.model.unbind_port(port);
            }
            Ok(Reply::empty(202))
        }
        _ => Err(no_such_resource()),
    }
}

fn attached(call: &Call<'_>, id: &str, port: &str) -> Result<Uuid, Refusal> {
    let server = call.model.server(&call.caller, id)?;
    let found = server.ports.iter().find(|it| it.to_string() == port);
    found.copied().ok_or_else(|| {
        Refusal::not_found("PortNotFound", format!("Instance {id} does not have a port with id {port}"))
    })
}

fn attach(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let mut attributes = Attributes::new(call.object("interfaceAttachment")?);
    let (port, network) = (attributes.text("port_id")?, attributes.text("net_id")?);
    let server = call.model.server(&call.caller, id)?;
    let (server, zone) = (server.id, server.zone.clone());
    let (port, is_own) = match (port, network) {
        (Some(port), _) => (call.model.bind_port(&call.caller, server, &zone, &port)?, false),
        (None, Some(network)) => {
            let network = call.model.server_network(&call.caller, &network)?;
            let standard = Standard::new(&call.caller.project, "", "", &call.draw);
            let new = NewPort::plain(standard, network, &format!("compute:{zone}"), &server.to_string());
            (call.model.create_port(new, &mut call.draw)?, true)
        }
        (None, None) => return Err(Refusal::bad("port_id or net_id is required")),
    };
    let server = call.model.server_mut(&call.caller, id)?;
    server.ports.push(port);
    if is_own {
        server.own_ports.insert(port);
    }
    let view = call.model.ports.get(&port).map(view);
    Ok(Reply::ok(&json!({"interfaceAttachment": view})))
}

fn view(port: &Port) -> Value {
    let fixed: Vec<Value> = port
        .fixed_ips
        .iter()
        .map(|fixed| json!({"subnet_id": fixed.subnet, "ip_address": fixed.address}))
        .collect();
    json!({
        "port_id": port.id,
        "net_id": port.network,
        "mac_addr": mac_text(port.mac),
        "port_state": if port.is_active { "ACTIVE" } else { "DOWN" },
        "fixed_ips": fixed,
    })
}

//! Actions of servers.

use serde_json::Value;

use super::microversion::Version;
use crate::http::{Call, Reply};
use crate::model::{Refusal, Server, Status};

pub(super) fn answer(call: &mut Call<'_>, id: &str, _version: Version) -> Result<Reply, Refusal> {
    if call.request.method != http::Method::POST {
        return Err(Refusal::new(405, "BadMethod", "The method is not allowed for this resource."));
    }
    let body = call.request.json()?;
    let Some((action, argument)) = body.iter().next().filter(|_| body.len() == 1) else {
        return Err(Refusal::bad("There should be exactly one action in the request body."));
    };
    let now = call.draw.now;
    let group = || -> Result<String, Refusal> {
        let name = argument["name"].as_str().map(ToOwned::to_owned);
        name.ok_or_else(|| {
            Refusal::bad("Invalid input for field/attribute name. 'name' is a required property")
        })
    };
    match action.as_str() {
        "os-getConsoleOutput" => {
            let server = call.model.server(&call.caller, id)?;
            let mut reply = Reply::empty(200);
            reply.console = Some((server.id, lines(&argument["length"])));
            return Ok(reply);
        }
        "addSecurityGroup" => return change_group(call, id, &group()?, true),
        "removeSecurityGroup" => return change_group(call, id, &group()?, false),
        "forceDelete" => {
            call.model.delete_server(&call.caller, id, &call.draw)?;
            return Ok(Reply::empty(202));
        }
        _ => {}
    }
    let server = call.model.server_mut(&call.caller, id)?;
    match action.as_str() {
        "os-stop" => {
            allow(server, action, &[Status::Active, Status::Error])?;
            server.runs = false;
        }
        "os-start" => {
            allow(server, action, &[Status::Shutoff])?;
            server.runs = true;
        }
        "reboot" if server.status == Status::Shutoff => server.runs = true,
        "reboot" => {
            allow(server, action, &[Status::Active, Status::Error, Status::Reboot])?;
            server.runs = false;
            server.is_restarting = true;
            server.status = Status::Reboot;
        }
        "os-resetState" if call.caller.is_admin => {}
        _ => return Err(Refusal::bad(format!("There is no such action: {action}"))),
    }
    server.updated = now;
    Ok(Reply::empty(202))
}

/// How many lines of a console; all of them for none or -1.
fn lines(length: &Value) -> Option<usize> {
    let number = length.as_i64().or_else(|| length.as_str().and_then(|text| text.parse().ok()));
    number.and_then(|number| usize::try_from(number).ok())
}

fn allow(server: &Server, action: &str, states: &[Status]) -> Result<(), Refusal> {
    if states.contains(&server.status) && !server.is_deleting {
        return Ok(());
    }
    let verb = action.trim_start_matches("os-");
    let state = match server.status {
        _ if server.is_deleting => "task_state deleting",
        Status::Build => "vm_state building",
        Status::Active | Status::Reboot => "vm_state active",
        Status::Shutoff => "vm_state stopped",
        Status::Error => "vm_state error",
    };
    let words = format!("Cannot '{verb}' instance {} while it is in {state}", server.id);
    Err(Refusal::conflict("InstanceInvalidState", words))
}

fn change_group(call: &mut Call<'_>, id: &str, name: &str, add: bool) -> Result<Reply, Refusal> {
    let ports = call.model.server(&call.caller, id)?.ports.clone();
    let groups = call.model.groups_by_name(&call.caller, &[name.to_owned()]);
    let missing = || Refusal::not_found("SecurityGroupNotFound", format!("Security group {name} not found."));
    let groups = groups.map_err(|_| missing())?.ok_or_else(missing)?;
    for port in ports {
        let Some(port) = call.model.ports.get_mut(&port) else { continue };
        for group in &groups {
            if add {
                port.security_groups.insert(*group);
            } else {
                port.security_groups.remove(group);
            }
        }
    }
    Ok(Reply::empty(202))
}

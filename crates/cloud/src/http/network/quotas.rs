//! Neutron's quotas, and its zones.

use serde_json::{Map, Value, json};

use super::no_such_resource;
use crate::http::{Call, Reply};
use crate::model::Refusal;

const RESOURCES: [&str; 7] =
    ["network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule"];

pub(super) fn answer(call: &Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    let [project, rest @ ..] = parts else { return Err(no_such_resource()) };
    if *project != call.caller.project && !call.caller.is_admin {
        return Err(Refusal::forbidden("rule:get_quota is disallowed by policy"));
    }
    let with_usage = match (call.request.method.as_str(), rest) {
        ("GET", [] | ["default"]) => false,
        ("GET", ["details"]) => true,
        _ => return Err(no_such_resource()),
    };
    let quota: Map<String, Value> = RESOURCES
        .iter()
        .map(|resource| {
            let (used, limit) = call.model.network_usage(project, resource);
            let details = json!({"used": used, "limit": limit, "reserved": 0});
            ((*resource).to_owned(), if with_usage { details } else { json!(limit) })
        })
        .collect();
    Ok(Reply::ok(&json!({"quota": quota})))
}

pub(super) fn zones(call: &Call<'_>) -> Reply {
    let zones: Vec<Value> = call
        .model
        .availability_zones
        .iter()
        .flat_map(|zone| {
            ["network", "router"].map(|kind| json!({"name": zone, "resource": kind, "state": "available"}))
        })
        .collect();
    Reply::ok(&json!({"availability_zones": zones}))
}

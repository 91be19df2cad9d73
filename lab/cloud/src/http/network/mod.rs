//! Neutron v2.0.

mod extensions;
mod floating_ips;
mod networks;
mod ports;
mod quotas;
mod routers;
mod security_groups;
mod security_rules;
mod standard;
mod subnets;
mod tags;

use serde_json::{Map, Value, json};

use super::attributes::Attributes;
use super::call::Call;
use super::reply::Reply;
use crate::model::Refusal;

/// What is answered without a token.
pub(crate) fn versions(call: &Call<'_>, parts: &[&str]) -> Option<Reply> {
    if !parts.is_empty() {
        return None;
    }
    let link = json!({"href": call.url("/network/v2.0/"), "rel": "self"});
    Some(Reply::ok(&json!({"versions": [{"id": "v2.0", "status": "CURRENT", "links": [link]}]})))
}

/// What needs a token.
pub(crate) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    let ["v2.0", parts @ ..] = parts else { return Err(no_such_resource()) };
    // Old clients end their paths in .json.
    let trimmed: Vec<&str> = parts.iter().map(|part| part.trim_end_matches(".json")).collect();
    match &trimmed[..] {
        [] => Ok(extensions::resources(call)),
        ["extensions", rest @ ..] => extensions::answer(call, rest),
        ["quotas", rest @ ..] => quotas::answer(call, rest),
        ["availability_zones"] => Ok(quotas::zones(call)),
        [collection, id, "tags", rest @ ..] => tags::answer(call, collection, id, rest),
        ["networks", rest @ ..] => networks::answer(call, rest),
        ["subnets", rest @ ..] => subnets::answer(call, rest),
        ["ports", rest @ ..] => ports::answer(call, rest),
        ["routers", rest @ ..] => routers::answer(call, rest),
        ["floatingips", rest @ ..] => floating_ips::answer(call, rest),
        ["security-groups", rest @ ..] => security_groups::answer(call, rest),
        ["security-group-rules", rest @ ..] => security_rules::answer(call, rest),
        // Kinds that nobody has any of.
        [collection @ ("subnetpools" | "address-scopes" | "agents" | "address-groups" | "rbac-policies")] => {
            let key = collection.replace('-', "_");
            Ok(Reply::ok(&json!({key: []})))
        }
        _ => Err(no_such_resource()),
    }
}

fn no_such_resource() -> Refusal {
    Refusal::not_found("HTTPNotFound", "The resource could not be found.")
}

/// Makes one object, or several of a kind: all of them or none.
fn create(
    call: &mut Call<'_>,
    one: &str,
    many: &str,
    make: fn(&mut Call<'_>, Attributes) -> Result<Value, Refusal>,
) -> Result<Reply, Refusal> {
    let mut body = call.request.json()?;
    let mut answer = Map::new();
    match (body.remove(one), body.remove(many)) {
        (Some(Value::Object(attributes)), None) => {
            answer.insert(one.into(), make(call, Attributes::new(attributes))?);
        }
        (None, Some(Value::Array(items))) => {
            let mut views = vec![];
            for item in items {
                let Value::Object(attributes) = item else {
                    return Err(Refusal::bad(format!("Invalid body for {many}")));
                };
                views.push(make(call, Attributes::new(attributes))?);
            }
            answer.insert(many.into(), Value::Array(views));
        }
        _ => return Err(Refusal::bad(format!("Unable to find '{one}' in request body"))),
    }
    Ok(Reply::json(201, &Value::Object(answer)))
}

/// The attributes of an update.
fn changes(call: &Call<'_>, one: &str) -> Result<Attributes, Refusal> {
    Ok(Attributes::new(call.object(one)?))
}

/// One object, with the fields that were asked for.
fn show(call: &Call<'_>, one: &str, mut view: Value) -> Reply {
    let fields: Vec<&String> =
        call.request.query.iter().filter(|(key, _)| key == "fields").map(|(_, field)| field).collect();
    if let (false, Value::Object(map)) = (fields.is_empty(), &mut view) {
        map.retain(|key, _| fields.contains(&key));
    }
    Reply::ok(&json!({one: view}))
}

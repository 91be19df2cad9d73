//! Tags of Neutron's objects: all kinds have them.

use std::collections::BTreeSet;

use serde_json::json;

use super::no_such_resource;
use crate::http::{Call, Reply};
use crate::model::{Refusal, Standard};

const LONGEST: usize = 255;

pub(super) fn answer(
    call: &mut Call<'_>,
    collection: &str,
    id: &str,
    parts: &[&str],
) -> Result<Reply, Refusal> {
    let method = call.request.method.clone();
    let given = match (method.as_str(), parts) {
        ("PUT" | "POST", []) => Some(read(call)?),
        _ => None,
    };
    let standard = find(call, collection, id)?;
    let reply = match (method.as_str(), parts, given) {
        ("GET", [], _) => return Ok(Reply::ok(&json!({"tags": standard.tags}))),
        ("PUT", [], Some(tags)) => {
            standard.tags = tags;
            Reply::ok(&json!({"tags": standard.tags}))
        }
        ("POST", [], Some(tags)) => {
            standard.tags.extend(tags);
            Reply::ok(&json!({"tags": standard.tags}))
        }
        ("DELETE", [], _) => {
            standard.tags.clear();
            Reply::empty(204)
        }
        ("GET", [tag], _) if standard.tags.contains(*tag) => return Ok(Reply::empty(204)),
        ("PUT", [tag], _) => {
            check(tag)?;
            standard.tags.insert((*tag).into());
            Reply::empty(201)
        }
        ("DELETE", [tag], _) if standard.tags.remove(*tag) => Reply::empty(204),
        ("GET" | "DELETE", [tag], _) => {
            return Err(Refusal::not_found("TagNotFound", format!("Tag {tag} could not be found.")));
        }
        _ => return Err(no_such_resource()),
    };
    standard.revision += 1;
    Ok(reply)
}

fn read(call: &Call<'_>) -> Result<BTreeSet<String>, Refusal> {
    let mut body = super::super::attributes::Attributes::new(call.request.json()?);
    let tags = body.texts("tags")?.ok_or_else(|| Refusal::bad("Invalid tags body"))?;
    tags.iter().try_for_each(|tag| check(tag))?;
    Ok(tags.into_iter().collect())
}

fn check(tag: &str) -> Result<(), Refusal> {
    if tag.is_empty() || tag.chars().count() > LONGEST {
        let reason = format!("'{tag}' is not between 1 and {LONGEST} characters long");
        return Err(Refusal::attribute("tags", reason));
    }
    Ok(())
}

fn find<'a>(call: &'a mut Call<'_>, collection: &str, id: &str) -> Result<&'a mut Standard, Refusal> {
    let (model, caller) = (&mut *call.model, &call.caller);
    match collection {
        "networks" => model.network_mut(caller, id, "update").map(|it| &mut it.standard),
        "subnets" => model.subnet_mut(caller, id, "update").map(|it| &mut it.standard),
        "ports" => model.port_mut(caller, id).map(|it| &mut it.standard),
        "routers" => model.router_mut(caller, id).map(|it| &mut it.standard),
        "floatingips" => model.floating_ip_mut(caller, id).map(|it| &mut it.standard),
        "security-groups" | "security_groups" => {
            model.security_group_mut(caller, id).map(|it| &mut it.standard)
        }
        _ => Err(no_such_resource()),
    }
}

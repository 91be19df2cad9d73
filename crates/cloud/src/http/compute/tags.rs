//! Tags of servers.

use serde_json::json;

use super::no_such_resource;
use crate::http::{Attributes, Call, Reply};
use crate::model::Refusal;

/// Longest tag of Nova.
const LONGEST: usize = 60;
/// Most tags of a server.
const MOST: usize = 50;

pub(super) fn answer(call: &mut Call<'_>, id: &str, parts: &[&str]) -> Result<Reply, Refusal> {
    let method = call.request.method.clone();
    let missing = |tag: &str| Refusal::not_found("TagNotFound", format!("Server {id} has no tag '{tag}'"));
    if method == http::Method::GET {
        let server = call.model.server(&call.caller, id)?;
        return match parts {
            [] => Ok(Reply::ok(&json!({"tags": server.tags}))),
            [tag] if server.tags.contains(*tag) => Ok(Reply::empty(204)),
            [tag] => Err(missing(tag)),
            _ => Err(no_such_resource()),
        };
    }
    let given = match (method.as_str(), parts) {
        ("PUT", []) => Attributes::new(call.request.json()?).texts("tags")?.unwrap_or_default(),
        ("PUT", [tag]) => vec![(*tag).to_owned()],
        _ => vec![],
    };
    check(&given)?;
    let server = call.model.server_mut(&call.caller, id)?;
    let reply = match (method.as_str(), parts) {
        ("PUT", []) => {
            server.tags = given.into_iter().collect();
            Reply::ok(&json!({"tags": server.tags}))
        }
        ("PUT", [tag]) => {
            let is_new = server.tags.insert((*tag).into());
            Reply::empty(if is_new { 201 } else { 204 })
        }
        ("DELETE", []) => {
            server.tags.clear();
            Reply::empty(204)
        }
        ("DELETE", [tag]) if server.tags.remove(*tag) => Reply::empty(204),
        ("DELETE", [tag]) => return Err(missing(tag)),
        _ => return Err(no_such_resource()),
    };
    if server.tags.len() > MOST {
        return Err(too_many());
    }
    Ok(reply)
}

/// Refuses tags that Nova does not take, in a new server too.
pub(super) fn check(tags: &[String]) -> Result<(), Refusal> {
    let is_bad = |tag: &&String| tag.is_empty() || tag.chars().count() > LONGEST || tag.contains([',', '/']);
    if let Some(tag) = tags.iter().find(is_bad) {
        return Err(Refusal::bad(format!(
            "Tag '{tag}' is invalid. It must be a non empty string without characters '/' and ','. Validation failed."
        )));
    }
    if tags.len() > MOST { Err(too_many()) } else { Ok(()) }
}

fn too_many() -> Refusal {
    Refusal::bad(format!("The number of tags exceeded the per-server limit {MOST}"))
}

//! Metadata of servers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{create, no_such_resource};
use crate::http::{Call, Reply};
use crate::model::Refusal;

pub(super) fn answer(call: &mut Call<'_>, id: &str, parts: &[&str]) -> Result<Reply, Refusal> {
    let method = call.request.method.clone();
    let given = match (method.as_str(), parts) {
        ("PUT" | "POST", []) => create::metadata(Some(Value::Object(call.object("metadata")?)))?,
        ("PUT", [_]) => create::metadata(Some(Value::Object(call.object("meta")?)))?,
        _ => BTreeMap::new(),
    };
    let now = call.draw.now;
    if method == http::Method::GET {
        let server = call.model.server(&call.caller, id)?;
        return match parts {
            [] => Ok(Reply::ok(&json!({"metadata": server.metadata}))),
            [key] => {
                let value = server.metadata.get(*key).ok_or_else(missing)?;
                Ok(Reply::ok(&json!({"meta": {*key: value}})))
            }
            _ => Err(no_such_resource()),
        };
    }
    let server = call.model.server_mut(&call.caller, id)?;
    server.updated = now;
    match (method.as_str(), parts) {
        ("PUT", []) => server.metadata = given,
        ("POST", []) => server.metadata.extend(given),
        ("PUT", [key]) => {
            if given.len() != 1 || !given.contains_key(*key) {
                return Err(Refusal::bad("Request body and URI mismatch"));
            }
            server.metadata.extend(given.clone());
            return Ok(Reply::ok(&json!({"meta": given})));
        }
        ("DELETE", [key]) => {
            server.metadata.remove(*key).ok_or_else(missing)?;
            return Ok(Reply::empty(204));
        }
        _ => return Err(no_such_resource()),
    }
    Ok(Reply::ok(&json!({"metadata": server.metadata})))
}

fn missing() -> Refusal {
    Refusal::not_found("MetadataItemNotFound", "Metadata item was not found")
}

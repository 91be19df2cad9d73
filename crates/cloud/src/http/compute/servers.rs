//! Servers over HTTP.

use serde_json::{Map, Value, json};

use super::microversion::Version;
use super::{create, no_such_resource, view};
use crate::http::{Attributes, Call, Reply, assign, page};
use crate::model::{Refusal, Server};

/// Nova's largest page.
const LARGEST_LIMIT: usize = 1000;

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str], version: Version) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => list(call, |server| view::summary(call, server)),
        ("GET", ["detail"]) => list(call, |server| view::server(call, server, version, false)),
        ("POST", []) => make(call, version),
        ("GET", [id]) => {
            let server = call.model.server(&call.caller, id)?;
            Ok(Reply::ok(&json!({"server": view::server(call, server, version, true)})))
        }
        ("PUT", [id]) => update(call, id, version),
        ("DELETE", [id]) => {
            call.model.delete_server(&call.caller, id, &call.draw).map(|()| Reply::empty(204))
        }
        ("GET", [id, "ips"]) => {
            let server = call.model.server(&call.caller, id)?;
            Ok(Reply::ok(&json!({"addresses": view::addresses(call.model, server)})))
        }
        ("GET", [id, "os-security-groups"]) => {
            let server = call.model.server(&call.caller, id)?;
            Ok(Reply::ok(&json!({"security_groups": view::security_groups(call.model, server)})))
        }
        ("GET", [id, what @ ("os-volume_attachments" | "os-instance-actions" | "migrations")]) => {
            call.model.server(&call.caller, id)?;
            let key = match *what {
                "os-volume_attachments" => "volumeAttachments",
                "os-instance-actions" => "instanceActions",
                other => other,
            };
            Ok(Reply::ok(&json!({key: []})))
        }
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, version: Version) -> Result<Reply, Refusal> {
    let new = create::read(call, version)?;
    let groups =
        if new.security_groups.is_empty() { vec!["default".into()] } else { new.security_groups.clone() };
    let id = call.model.create_server(&call.caller, new, &mut call.draw)?;
    let groups: Vec<Value> = groups.iter().map(|name| json!({"name": name})).collect();
    let body = json!({"server": {
        "id": id,
        "links": view::links(call, "servers", &id.to_string()),
        "OS-DCF:diskConfig": "MANUAL",
        "security_groups": groups,
        "adminPass": call.draw.secret()[..12],
    }});
    Ok(Reply::json(202, &body).header("Location", call.url(&format!("/compute/v2.1/servers/{id}"))))
}

fn update(call: &mut Call<'_>, id: &str, version: Version) -> Result<Reply, Refusal> {
    let mut attributes = Attributes::new(call.object("server")?);
    let now = call.draw.now;
    let server = call.model.server_mut(&call.caller, id)?;
    assign(&mut server.name, attributes.text("name")?);
    if version >= Version(2, 19)
        && let Some(description) = attributes.take("description")
    {
        server.description = description.as_str().map(ToOwned::to_owned);
    }
    server.updated = now;
    for ignored in ["accessIPv4", "accessIPv6", "OS-DCF:diskConfig", "hostname"] {
        attributes.take(ignored);
    }
    attributes
        .finish()
        .map_err(|refusal| Refusal::bad(format!("Additional properties: {}", refusal.message)))?;
    let server = server.clone();
    Ok(Reply::ok(&json!({"server": view::server(call, &server, version, true)})))
}

fn list(call: &Call<'_>, view: impl Fn(&Server) -> Value) -> Result<Reply, Refusal> {
    let request = call.request;
    let all = request
        .parameter("all_tenants")
        .is_some_and(|value| value.is_empty() || value == "1" || value.eq_ignore_ascii_case("true"));
    if all && !call.caller.is_admin {
        let last = request.segments.last().map_or("", String::as_str);
        let rule = if last == "detail" { "detail" } else { "index" };
        let words =
            format!("Policy doesn't allow os_compute_api:servers:{rule}:get_all_tenants to be performed.");
        return Err(Refusal::forbidden(words));
    }
    let mut servers: Vec<&Server> = call
        .model
        .servers
        .values()
        .filter(|server| all || server.project == call.caller.project)
        .filter(|server| request.query.iter().all(|(key, wanted)| fits(call, server, key, wanted)))
        .collect();
    // Newest first, unless told otherwise.
    servers.sort_by_key(|server| std::cmp::Reverse(server.serial));
    if request.parameter("sort_dir") == Some("asc") {
        servers.reverse();
    }
    let (page, next) = page(request, servers.into_iter().map(view).collect(), "id", LARGEST_LIMIT)?;
    let mut body = Map::new();
    body.insert("servers".into(), Value::Array(page));
    if let Some(next) = next {
        body.insert("servers_links".into(), json!([{"rel": "next", "href": call.url(&next)}]));
    }
    Ok(Reply::ok(&Value::Object(body)))
}

/// Whether a server fits a filter. Filters that are not known are ignored, as Nova does up to 2.74.
fn fits(call: &Call<'_>, server: &Server, key: &str, wanted: &str) -> bool {
    match key {
        "name" => name_fits(&server.name, wanted),
        "status" => view::status(server).eq_ignore_ascii_case(wanted),
        "image" => server.image.to_string() == wanted,
        "flavor" => server.flavor.id == wanted,
        "key_name" => server.key.as_ref().is_some_and(|(name, _)| name == wanted),
        "availability_zone" => server.zone == wanted,
        "uuid" => server.id.to_string() == wanted,
        "project_id" | "tenant_id" => !call.caller.is_admin || server.project == wanted,
        "user_id" => !call.caller.is_admin || server.user == wanted,
        "tags" => wanted.split(',').all(|tag| server.tags.contains(tag)),
        "tags-any" => wanted.split(',').any(|tag| server.tags.contains(tag)),
        "not-tags" => !wanted.split(',').all(|tag| server.tags.contains(tag)),
        "not-tags-any" => !wanted.split(',').any(|tag| server.tags.contains(tag)),
        "changes-since" => wanted.parse::<jiff::Timestamp>().map_or(true, |since| server.updated >= since),
        "ip" => {
            let ports = server.ports.iter().filter_map(|port| call.model.ports.get(port));
            ports.flat_map(|port| &port.fixed_ips).any(|fixed| name_fits(&fixed.address.to_string(), wanted))
        }
        _ => true,
    }
}

/// Nova matches names by regular expression. What clients use of those is anchors and escapes around a plain text;
/// without anchors a part is enough.
fn name_fits(name: &str, pattern: &str) -> bool {
    let (from_start, rest) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (to_end, rest) = match rest.strip_suffix('$').filter(|rest| !rest.ends_with('\\')) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut plain = String::new();
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    match (from_start, to_end) {
        (true, true) => name == plain,
        (true, false) => name.starts_with(&plain),
        (false, true) => name.ends_with(&plain),
        (false, false) => name.contains(&plain),
    }
}

#[cfg(test)]
mod tests {
    use super::name_fits;

    #[test]
    fn names_are_matched_as_expressions() {
        assert!(name_fits("worker-1", "worker"));
        assert!(!name_fits("worker-1", "^worker$"));
        assert!(name_fits("worker-1", r"^worker\-1$"));
        assert!(!name_fits("a-worker-1", "^worker"));
    }
}

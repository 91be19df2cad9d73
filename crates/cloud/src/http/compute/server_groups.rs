//! Server groups over HTTP.

use serde_json::{Value, json};

use super::microversion::Version;
use super::no_such_resource;
use crate::http::{Attributes, Call, Reply};
use crate::model::{Refusal, ServerGroup};

const POLICIES: [&str; 4] = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"];

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str], version: Version) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let all = call.caller.is_admin && call.request.parameter("all_projects").is_some();
            let mut groups: Vec<&ServerGroup> = call
                .model
                .server_groups
                .values()
                .filter(|group| all || group.project == call.caller.project)
                .collect();
            groups.sort_by_key(|group| group.serial);
            let offset = call.request.parameter("offset").and_then(|text| text.parse().ok()).unwrap_or(0);
            let limit = call.request.parameter("limit").and_then(|text| text.parse().ok()).unwrap_or(1000);
            let page = groups.into_iter().skip(offset).take(limit).map(|group| view(call, group, version));
            Ok(Reply::ok(&json!({"server_groups": page.collect::<Vec<Value>>()})))
        }
        ("POST", []) => make(call, version),
        ("GET", [id]) => {
            let group = call.model.server_group(&call.caller, id)?;
            Ok(Reply::ok(&json!({"server_group": view(call, group, version)})))
        }
        ("DELETE", [id]) => call.model.delete_server_group(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, version: Version) -> Result<Reply, Refusal> {
    let mut attributes = Attributes::new(call.object("server_group")?);
    let name = attributes.text("name")?.unwrap_or_default();
    let policy = if version >= Version(2, 64) {
        attributes.text("policy")?
    } else {
        attributes.texts("policies")?.and_then(|policies| policies.into_iter().next())
    };
    attributes.take("rules");
    attributes.finish()?;
    let policy = policy.filter(|policy| POLICIES.contains(&policy.as_str())).ok_or_else(|| {
        Refusal::bad(format!("Invalid input for field/attribute policy. It is not one of {POLICIES:?}"))
    })?;
    let id = call.model.create_server_group(&call.caller, &name, &policy, &mut call.draw)?;
    let view = call.model.server_groups.get(&id).map(|group| view(call, group, version));
    Ok(Reply::ok(&json!({"server_group": view})))
}

fn view(call: &Call<'_>, group: &ServerGroup, version: Version) -> Value {
    let mut view = json!({
        "id": group.id,
        "name": group.name,
        "members": call.model.server_group_members(group.id),
    });
    if version >= Version(2, 13) {
        view["project_id"] = json!(group.project);
        view["user_id"] = json!(group.user);
    }
    if version >= Version(2, 64) {
        view["policy"] = json!(group.policy);
        view["rules"] = json!({});
    } else {
        view["policies"] = json!([group.policy]);
        view["metadata"] = json!({});
    }
    view
}

//! Security groups over HTTP.

use serde_json::{Value, json};

use super::{changes, create, no_such_resource, security_rules, show, standard};
use crate::http::{Attributes, Call, Reply, assign, network_list};
use crate::model::{Model, Refusal, SecurityGroup};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let visible = call.model.security_groups.values().filter(|it| it.standard.is_of(&call.caller));
            network_list(call, "security_groups", visible.map(|it| view(call.model, it)).collect())
        }
        ("POST", []) => create(call, "security_group", "security_groups", make),
        ("GET", [id]) => {
            Ok(show(call, "security_group", view(call.model, call.model.security_group(&call.caller, id)?)))
        }
        ("PUT", [id]) => update(call, id),
        ("DELETE", [id]) => call.model.delete_security_group(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, mut attributes: Attributes) -> Result<Value, Refusal> {
    let standard = standard::take(call, &mut attributes)?;
    let stateful = attributes.boolean("stateful")?.unwrap_or(true);
    attributes.finish()?;
    let id = call.model.create_security_group(standard, stateful, &mut call.draw)?;
    Ok(call.model.security_groups.get(&id).map(|it| view(call.model, it)).unwrap_or_default())
}

fn update(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let mut attributes = changes(call, "security_group")?;
    let group = call.model.security_group_mut(&call.caller, id)?;
    standard::update(&mut group.standard, &mut attributes, &call.draw)?;
    assign(&mut group.stateful, attributes.boolean("stateful")?);
    attributes.finish()?;
    let id = group.id;
    let view = call.model.security_groups.get(&id).map(|it| view(call.model, it)).unwrap_or_default();
    Ok(show(call, "security_group", view))
}

fn view(model: &Model, group: &SecurityGroup) -> Value {
    let rules = model.security_rules.values().filter(|rule| rule.group == group.id);
    let rules: Vec<Value> = rules.map(|rule| security_rules::view(model, rule)).collect();
    let mut view = json!({
        "id": group.id,
        "stateful": group.stateful,
        "shared": false,
        "security_group_rules": rules,
    });
    standard::add(&mut view, &group.standard, true);
    view
}

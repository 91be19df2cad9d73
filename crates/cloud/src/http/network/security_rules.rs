//! Security group rules over HTTP.

use serde_json::{Value, json};

use super::{create, no_such_resource, show, standard};
use crate::http::{Attributes, Call, Reply, attributes, network_list};
use crate::model::{Model, Refusal, SecurityRule};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let visible = call.model.security_rules.values().filter(|it| it.standard.is_of(&call.caller));
            let views = visible.map(|it| view(call.model, it)).collect();
            network_list(call, "security_group_rules", views)
        }
        ("POST", []) => create(call, "security_group_rule", "security_group_rules", make),
        ("GET", [id]) => {
            let rule = call.model.security_rule(&call.caller, id)?;
            Ok(show(call, "security_group_rule", view(call.model, rule)))
        }
        ("DELETE", [id]) => call.model.delete_security_rule(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, mut attributes: Attributes) -> Result<Value, Refusal> {
    let standard = standard::take(call, &mut attributes)?;
    let required = |name: &str| {
        Refusal::bad(format!("Failed to parse request. Required attribute '{name}' not specified"))
    };
    let group = attributes.text("security_group_id")?.ok_or_else(|| required("security_group_id"))?;
    let group = call.model.security_group(&call.caller, &group)?.id;
    let direction = attributes.text("direction")?.ok_or_else(|| required("direction"))?;
    let ingress = match direction.as_str() {
        "ingress" => true,
        "egress" => false,
        other => {
            let reason = format!("'{other}' is not in ['ingress', 'egress']");
            return Err(Refusal::attribute("direction", reason));
        }
    };
    let ipv6 = match attributes.text("ethertype")?.as_deref() {
        None | Some("IPv4") => false,
        Some("IPv6") => true,
        Some(other) => {
            let words = format!(
                "Security group rule for ethertype '{other}' not supported. Allowed values are ['IPv4', 'IPv6']."
            );
            return Err(Refusal::invalid("SecurityGroupRuleInvalidEtherType", words));
        }
    };
    // Numbers may be given as such.
    let protocol = match attributes.take("protocol") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.is_empty() || text == "any" => None,
        Some(Value::String(text)) => Some(text.to_ascii_lowercase()),
        Some(other) => Some(other.to_string()),
    };
    let remote_group = match attributes.text("remote_group_id")? {
        None => None,
        Some(id) => Some(call.model.security_group(&call.caller, &id)?.id),
    };
    let remote = attributes.text("remote_ip_prefix")?;
    let remote = remote.map(|text| attributes::range("remote_ip_prefix", &text, true)).transpose()?;
    let id = call.draw.id();
    let new = SecurityRule {
        id,
        standard,
        group,
        ingress,
        ipv6,
        protocol,
        port_min: port(&mut attributes, "port_range_min")?,
        port_max: port(&mut attributes, "port_range_max")?,
        remote,
        remote_group,
    };
    attributes.take("remote_address_group_id");
    attributes.finish()?;
    call.model.create_security_rule(new)?;
    Ok(call.model.security_rules.get(&id).map(|it| view(call.model, it)).unwrap_or_default())
}

fn port(attributes: &mut Attributes, name: &str) -> Result<Option<u16>, Refusal> {
    let value = attributes.take(name);
    let words = value.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut alone = Attributes::new(value.map(|value| (name.to_owned(), value)).into_iter().collect());
    alone.number(name).map_err(|_| {
        Refusal::invalid("SecurityGroupInvalidPortValue", format!("Invalid value for port {words}"))
    })
}

pub(super) fn view(model: &Model, rule: &SecurityRule) -> Value {
    let is_default = model.default_security_group(&rule.standard.project) == Some(rule.group);
    let mut view = json!({
        "id": rule.id,
        "security_group_id": rule.group,
        "direction": if rule.ingress { "ingress" } else { "egress" },
        "ethertype": if rule.ipv6 { "IPv6" } else { "IPv4" },
        "protocol": rule.protocol,
        "port_range_min": rule.port_min,
        "port_range_max": rule.port_max,
        "remote_ip_prefix": rule.remote,
        "normalized_cidr": rule.remote.map(|range| range.trunc()),
        "remote_group_id": rule.remote_group,
        "remote_address_group_id": null,
        "belongs_to_default_sg": is_default,
    });
    standard::add(&mut view, &rule.standard, false);
    // The one kind without tags.
    if let Value::Object(map) = &mut view {
        map.remove("tags");
    }
    view
}

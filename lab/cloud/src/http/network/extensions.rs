//! The extensions of this Neutron.

use serde_json::{Value, json};

use super::super::refuse::NO_SUCH_PATH;
use super::no_such_resource;
use crate::http::{Call, Reply};
use crate::model::Refusal;

/// Alias and name. Clients look for these before they use what they mean.
const EXTENSIONS: [(&str, &str); 22] = [
    ("address-scope", "Address scope"),
    ("allowed-address-pairs", "Allowed Address Pairs"),
    ("availability_zone", "Availability Zone"),
    ("binding", "Port Binding"),
    ("default-subnetpools", "Default Subnetpools"),
    ("ext-gw-mode", "Neutron L3 Configurable external gateway mode"),
    ("external-net", "Neutron external network"),
    ("filter-validation", "Filter parameters validation"),
    ("net-mtu", "Network MTU"),
    ("net-mtu-writable", "Network MTU (writable)"),
    ("network_availability_zone", "Network Availability Zone"),
    ("pagination", "Pagination support"),
    ("port-security", "Port Security"),
    ("project-id", "project_id field enabled"),
    ("quotas", "Quota management support"),
    ("quota_details", "Quota details management support"),
    ("router", "Neutron L3 Router"),
    ("security-group", "security-group"),
    ("sorting", "Sorting support"),
    ("standard-attr-description", "standard-attr-description"),
    ("standard-attr-revisions", "Resource revision numbers"),
    ("standard-attr-tag", "Tag support for resources with standard attribute: network, port, router, subnet"),
];

pub(super) fn answer(call: &Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let all: Vec<Value> = EXTENSIONS.iter().map(view).collect();
            Ok(Reply::ok(&json!({"extensions": all})))
        }
        ("GET", [alias]) => {
            let found = EXTENSIONS.iter().find(|(known, _)| known == alias);
            let missing =
                || Refusal::not_found(NO_SUCH_PATH, format!("Extension with alias {alias} does not exist"));
            Ok(Reply::ok(&json!({"extension": view(found.ok_or_else(missing)?)})))
        }
        _ => Err(no_such_resource()),
    }
}

fn view((alias, name): &(&str, &str)) -> Value {
    json!({
        "alias": alias,
        "name": name,
        "description": name,
        "updated": "2017-01-01T00:00:00-00:00",
        "links": [],
    })
}

/// What the version's root lists.
pub(super) fn resources(call: &Call<'_>) -> Reply {
    let names = [("network", "networks"), ("subnet", "subnets"), ("port", "ports")];
    let all: Vec<Value> = names
        .iter()
        .map(|(name, collection)| {
            let href = call.url(&format!("/network/v2.0/{collection}"));
            json!({"name": name, "collection": collection, "links": [{"rel": "self", "href": href}]})
        })
        .collect();
    Reply::ok(&json!({"resources": all}))
}

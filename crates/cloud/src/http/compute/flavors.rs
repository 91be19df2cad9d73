//! Flavors over HTTP.

use serde_json::{Map, Value, json};

use super::microversion::Version;
use super::{no_such_resource, view};
use crate::http::{Call, Reply, page};
use crate::model::{Flavor, Refusal};

pub(super) fn answer(call: &Call<'_>, parts: &[&str], version: Version) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => list(
            call,
            |flavor| json!({"id": flavor.id, "name": flavor.name, "links": view::links(call, "flavors", &flavor.id)}),
        ),
        ("GET", ["detail"]) => list(call, |flavor| full(call, flavor, version)),
        ("GET", [id]) => Ok(Reply::ok(&json!({"flavor": full(call, find(call, id)?, version)}))),
        ("GET", [id, "os-extra_specs"]) => {
            Ok(Reply::ok(&json!({"extra_specs": find(call, id)?.extra_specs})))
        }
        ("POST" | "PUT" | "DELETE", _) => {
            let words = "Policy doesn't allow os_compute_api:os-flavor-manage to be performed.";
            Err(Refusal::forbidden(words))
        }
        _ => Err(no_such_resource()),
    }
}

fn find<'a>(call: &'a Call<'_>, id: &str) -> Result<&'a Flavor, Refusal> {
    let missing = || Refusal::not_found("FlavorNotFound", format!("Flavor {id} could not be found."));
    call.model.flavors.get(id).ok_or_else(missing)
}

fn list(call: &Call<'_>, view: impl Fn(&Flavor) -> Value) -> Result<Reply, Refusal> {
    let least =
        |name: &str| call.request.parameter(name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    let (ram, disk) = (least("minRam"), least("minDisk"));
    let flavors = call.model.flavors.values().filter(|flavor| flavor.ram >= ram && flavor.disk >= disk);
    let (page, next) = page(call.request, flavors.map(view).collect(), "id", 1000)?;
    let mut body = Map::new();
    body.insert("flavors".into(), Value::Array(page));
    if let Some(next) = next {
        body.insert("flavors_links".into(), json!([{"rel": "next", "href": call.url(&next)}]));
    }
    Ok(Reply::ok(&Value::Object(body)))
}

fn full(call: &Call<'_>, flavor: &Flavor, version: Version) -> Value {
    let mut view = json!({
        "id": flavor.id,
        "name": flavor.name,
        "vcpus": flavor.vcpus,
        "ram": flavor.ram,
        "disk": flavor.disk,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "OS-FLV-DISABLED:disabled": false,
        "os-flavor-access:is_public": true,
        "rxtx_factor": 1.0,
        "swap": if version >= Version(2, 75) { json!(0) } else { json!("") },
        "links": view::links(call, "flavors", &flavor.id),
    });
    if version >= Version(2, 55) {
        view["description"] = Value::Null;
    }
    if version >= Version(2, 61) {
        view["extra_specs"] = json!(flavor.extra_specs);
    }
    view
}

/// A flavor inside a server, from 2.47 on.
pub(super) fn embedded(flavor: &Flavor) -> Value {
    json!({
        "original_name": flavor.name,
        "vcpus": flavor.vcpus,
        "ram": flavor.ram,
        "disk": flavor.disk,
        "ephemeral": 0,
        "swap": 0,
        "extra_specs": flavor.extra_specs,
    })
}

//! The catalogue: Nova with its version in the path, Neutron and Glance without, as gophercloud expects them.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::Call;

/// Type, name and path of each service. What is not implemented is absent, so that clients know.
const SERVICES: [(&str, &str, &str); 4] = [
    ("identity", "keystone", "/identity"),
    ("compute", "nova", "/compute/v2.1"),
    ("network", "neutron", "/network"),
    ("image", "glance", "/image"),
];

pub(super) fn of(call: &Call<'_>) -> Value {
    let services = SERVICES.iter().map(|(kind, name, path)| {
        let endpoints: Vec<Value> = ["public", "internal", "admin"]
            .iter()
            .map(|interface| {
                json!({
                    "id": stable_id(&format!("endpoint/{kind}/{interface}")),
                    "interface": interface,
                    "region": call.config.region,
                    "region_id": call.config.region,
                    "url": call.url(path),
                })
            })
            .collect();
        json!({"id": stable_id(&format!("service/{kind}")), "type": kind, "name": name, "endpoints": endpoints})
    });
    services.collect()
}

pub(super) fn stable_id(name: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).simple().to_string()
}

//! A server's metadata, on its config drive and from the metadata service, in OpenStack's format.

mod answer;
mod service;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use uuid::Uuid;

use super::names;
use crate::topology::Server;

pub(super) use service::{ADDRESS, Services};

/// `meta_data.json`.
pub(super) fn document(id: Uuid, server: &Server) -> Value {
    let mut document = json!({
        "uuid": id.to_string(),
        "name": server.name,
        "hostname": names::host_name(&server.name, id),
        "availability_zone": server.availability_zone,
        "project_id": server.project,
        "launch_index": 0,
        "meta": server.metadata,
        "devices": [],
    });
    if let Some((name, key)) = &server.key {
        document["public_keys"] = json!({ name: key });
        document["keys"] = json!([{"name": name, "type": "ssh", "data": key}]);
    }
    document
}

/// The identity as the EC2 part of the service has it.
fn ec2_id(id: Uuid) -> String {
    let digits: String = id.simple().to_string().chars().take(8).collect();
    format!("i-{digits}")
}

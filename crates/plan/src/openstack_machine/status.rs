//! Fields of an OpenStackMachine's status, and its provider id.

use std::collections::BTreeMap;

use hangar_api::infrastructure::v1beta1::{OpenStackMachineSpec, SchedulerHintType};
use k8s_openapi::api::core::v1::NodeAddress;
use serde_json::{Value, json};

use crate::openstack::{Server, ServerId};

/// What the peer would write: with the region of the machine's own reference, and nothing where it has none.
pub(super) fn provider_id(spec: &OpenStackMachineSpec, server_id: &ServerId) -> String {
    let region = spec.identity_ref.as_ref().map(|reference| reference.region.as_str()).unwrap_or_default();
    format!("openstack://{region}/{server_id}")
}

/// Addresses by network in order of names, IPv4 before IPv6; then the name, which certificates are checked against.
pub(super) fn addresses(server: &Server) -> Vec<NodeAddress> {
    let mut all = Vec::new();
    for addresses in server.addresses.values() {
        let (four, six): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| address.address.is_ipv4());
        for address in four.into_iter().chain(six) {
            let type_ = if address.is_floating { "ExternalIP" } else { "InternalIP" };
            all.push(NodeAddress { address: address.address.to_string(), type_: type_.to_owned() });
        }
    }
    all.push(NodeAddress { address: server.name.clone(), type_: "InternalDNS".to_owned() });
    all
}

/// Hints as Nova takes them.
pub(super) fn scheduler_hints(spec: &OpenStackMachineSpec) -> BTreeMap<String, Value> {
    let hints = spec.scheduler_hint_additional_properties.iter();
    hints
        .map(|hint| {
            let value = &hint.value;
            let value = match value.type_ {
                SchedulerHintType::Bool => json!(value.bool),
                SchedulerHintType::Number => json!(value.number),
                SchedulerHintType::String => json!(value.string),
            };
            (hint.name.clone(), value)
        })
        .collect()
}

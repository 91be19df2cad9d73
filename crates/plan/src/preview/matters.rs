//! Summarises an object in one line.

use hangar_api::cluster::v1beta2::{Machine, MachineDeployment, MachineSet};
use hangar_api::infrastructure::v1beta1::OpenStackMachine;
use hangar_api::reference::is_kind;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Resource;
use serde_json::Value;

/// Empty where nothing is worth a line.
pub(super) fn of(object: &Value) -> String {
    let at = |pointer: &str| object.pointer(pointer);
    let replicas = || at("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    if is::<Deployment>(object) || is::<StatefulSet>(object) {
        format!("{} {}, {}", replicas(), counted(replicas(), "pod"), images(object))
    } else if is::<DaemonSet>(object) {
        images(object)
    } else if is::<Service>(object) {
        let ports = at("/spec/ports").and_then(Value::as_array).into_iter().flatten();
        let ports: Vec<String> = ports.map(|port| port["port"].to_string()).collect();
        let headless = at("/spec/clusterIP").is_some_and(|address| address == "None");
        let kind = at("/spec/type").and_then(Value::as_str).unwrap_or("ClusterIP");
        format!("{}, port {}", if headless { "headless" } else { kind }, ports.join(", "))
    } else if is::<Secret>(object) {
        secret(object)
    } else if is::<ConfigMap>(object) {
        keys(object, "/data")
    } else if is::<PodDisruptionBudget>(object) {
        match (at("/spec/minAvailable"), at("/spec/maxUnavailable")) {
            (Some(least), _) => format!("at least {least} available"),
            (_, Some(most)) => format!("at most {most} unavailable"),
            _ => String::new(),
        }
    } else if is::<MachineDeployment>(object) || is::<MachineSet>(object) {
        let version = text(object, "/spec/template/spec/version");
        format!("{} {} {version}", replicas(), counted(replicas(), "machine")).trim_end().to_owned()
    } else if is::<Machine>(object) {
        text(object, "/spec/version").to_owned()
    } else if is::<OpenStackMachine>(object) {
        let (flavor, image) = (text(object, "/spec/flavor"), text(object, "/spec/image/filter/name"));
        let parts = [("flavor", flavor), ("image", image)].into_iter().filter(|(_, name)| !name.is_empty());
        parts.map(|(what, name)| format!("{what} {name}")).collect::<Vec<_>>().join(", ")
    } else {
        String::new()
    }
}

fn is<K: Resource<DynamicType = ()>>(object: &Value) -> bool {
    is_kind::<K>(text(object, "/apiVersion"), text(object, "/kind"))
}

fn text<'object>(object: &'object Value, pointer: &str) -> &'object str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn counted(number: i64, what: &str) -> String {
    if number == 1 { what.to_owned() } else { format!("{what}s") }
}

fn images(object: &Value) -> String {
    let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
    images.collect::<Vec<_>>().join(", ")
}

fn keys(object: &Value, pointer: &str) -> String {
    let fields = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    fields.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// What is to be minted, or which keys there are.
fn secret(object: &Value) -> String {
    let values = object["data"].as_object().into_iter().flatten();
    let mut intents = values.filter_map(|(_, value)| value.as_str()?.strip_prefix("<to be minted: "));
    match intents.next() {
        Some(intent) => intent.trim_end_matches('>').to_owned(),
        None => keys(object, "/data"),
    }
}

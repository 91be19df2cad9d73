//! Summarises an object in one line.

use serde_json::Value;

/// Empty where nothing is worth a line.
pub(super) fn of(object: &Value) -> String {
    let at = |pointer: &str| object.pointer(pointer);
    let number = |pointer: &str| at(pointer).and_then(Value::as_i64).unwrap_or(1);
    match object["kind"].as_str().unwrap_or_default() {
        "Deployment" | "StatefulSet" => {
            let replicas = number("/spec/replicas");
            format!("{replicas} {}, {}", counted(replicas, "pod"), images(object))
        }
        "DaemonSet" => images(object),
        "Service" => {
            let ports = at("/spec/ports").and_then(Value::as_array).into_iter().flatten();
            let ports: Vec<String> = ports.map(|port| port["port"].to_string()).collect();
            let headless = at("/spec/clusterIP").is_some_and(|address| address == "None");
            let kind = at("/spec/type").and_then(Value::as_str).unwrap_or("ClusterIP");
            format!("{}, port {}", if headless { "headless" } else { kind }, ports.join(", "))
        }
        "Secret" => secret(object),
        "ConfigMap" => keys(object, "/data"),
        "PodDisruptionBudget" => match (at("/spec/minAvailable"), at("/spec/maxUnavailable")) {
            (Some(least), _) => format!("at least {least} available"),
            (_, Some(most)) => format!("at most {most} unavailable"),
            _ => String::new(),
        },
        "MachineDeployment" | "MachineSet" => {
            let replicas = number("/spec/replicas");
            let version = text(object, "/spec/template/spec/version");
            format!("{replicas} {} {version}", counted(replicas, "machine")).trim_end().to_owned()
        }
        "Machine" => text(object, "/spec/version").to_owned(),
        "OpenStackMachine" => {
            let (flavor, image) = (text(object, "/spec/flavor"), text(object, "/spec/image/filter/name"));
            let parts =
                [("flavor", flavor), ("image", image)].into_iter().filter(|(_, name)| !name.is_empty());
            parts.map(|(what, name)| format!("{what} {name}")).collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    }
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

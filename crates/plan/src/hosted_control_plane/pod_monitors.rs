//! Plans PodMonitors, where the specification asks for them and the management cluster has the kind: what there is to
//! collect of a control plane, and as whom.
//!
//! The API server, the controller manager and the scheduler tell their metrics to the user of [`Material::Metrics`]
//! alone. The API server's certificate is verified; the other two make their own when they start, which nobody can
//! verify. etcd and the tunnel's server ask nobody.

use hangar_api::controlplane::v1alpha1::PodMonitors;
use hangar_api::names::CLUSTER_NAME_LABEL;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::material::{Material, keys};
use super::names::{COMPONENT_LABEL, Component, INSTANCE_LABEL};
use super::observed::ObjectIdentity;
use super::trust::BUNDLE;
use super::validate::Validated;
use super::{Draft, step};
use crate::flow::{Read, dynamic};
use crate::neighbours::Neighbour;

/// The most samples of one scrape. What a program counts by is partly its tenant's choice, such as the names of kinds, and
/// they all end in the operator's memory. Beyond the limit Prometheus takes nothing of that pod, and `up` is 0. So it is far
/// above what a program has whose tenant grows, and only ends a flood.
fn most_samples(component: Component) -> u32 {
    match component {
        Component::ApiServer => 400_000,
        _ => 50_000,
    }
}

pub(super) fn asked<'validated>(validated: &'validated Validated<'_>) -> Option<&'validated PodMonitors> {
    validated.settings.monitoring.as_ref()?.pod_monitors.as_ref()
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    // Where there is no such kind, `SettingsEffective` says so.
    let Read::One(found) = &draft.observed.pod_monitors else { return };
    let wanted = asked(validated).map(|asked| monitors(validated, asked)).unwrap_or_default();
    for monitor in &wanted {
        draft.apply(monitor);
    }
    let is_wanted = |name: &str| wanted.iter().any(|monitor| monitor.metadata.name.as_deref() == Some(name));
    for (name, left) in found.iter().filter(|(name, left)| !left.is_deleting && !is_wanted(name)) {
        draft.report.decide(format!("delete PodMonitor {name}"), "the specification asks for none");
        let object = ObjectIdentity {
            api_version: Neighbour::PodMonitors.api_version(),
            kind: Neighbour::PodMonitors.kind().to_owned(),
            namespace: validated.names.namespace().to_owned(),
            name: name.clone(),
        };
        draft.step(step::delete(&object, &left.uid));
    }
}

fn monitors(validated: &Validated<'_>, asked: &PodMonitors) -> Vec<DynamicObject> {
    let names = &validated.names;
    let plain = |port: &str| json!({ "port": port, "scheme": "http" });
    let own = |verified: Value| {
        let mut tls = json!({
            "cert": { "secret": { "name": names.secret(Material::Metrics), "key": keys::CERTIFICATE } },
            "keySecret": { "name": names.secret(Material::Metrics), "key": keys::PRIVATE_KEY },
        });
        if let (Value::Object(tls), Value::Object(verified)) = (&mut tls, verified) {
            tls.extend(verified);
        }
        json!({ "port": "https", "scheme": "https", "tlsConfig": tls })
    };
    let unverified = || own(json!({ "insecureSkipVerify": true }));
    let verified = own(json!({
        "ca": { "configMap": { "name": names.trust(Material::ClusterAuthority), "key": BUNDLE } },
        "serverName": names.api_server_host(),
    }));
    // They are in one pod, and a job is one kind of metrics.
    let mut tunnel = plain("admin");
    tunnel["relabelings"] = json!([{ "targetLabel": "job", "replacement": "konnectivity-server" }]);
    [
        (Component::Etcd, names.etcd(), vec![plain("metrics")]),
        (Component::ApiServer, names.api_server(), vec![verified, tunnel]),
        (Component::ControllerManager, names.controller_manager(), vec![unverified()]),
        (Component::Scheduler, names.scheduler(), vec![unverified()]),
    ]
    .into_iter()
    .map(|(component, name, endpoints)| monitor(validated, asked, component, (name, endpoints)))
    .collect()
}

fn monitor(
    validated: &Validated<'_>,
    asked: &PodMonitors,
    component: Component,
    (name, mut endpoints): (String, Vec<Value>),
) -> DynamicObject {
    if let Some(interval) = asked.interval {
        let seconds = std::time::Duration::from(interval.0).as_secs();
        for endpoint in &mut endpoints {
            endpoint["interval"] = json!(format!("{seconds}s"));
        }
    }
    let mut metadata = validated.metadata(name, component);
    let labels = metadata.labels.get_or_insert_default();
    for (name, value) in &asked.labels {
        labels.entry(name.clone()).or_insert_with(|| value.clone());
    }
    dynamic(&json!({
        "apiVersion": Neighbour::PodMonitors.api_version(),
        "kind": Neighbour::PodMonitors.kind(),
        "metadata": metadata,
        "spec": {
            "jobLabel": COMPONENT_LABEL,
            "podTargetLabels": [CLUSTER_NAME_LABEL, INSTANCE_LABEL],
            "selector": { "matchLabels": validated.selector(component) },
            "podMetricsEndpoints": endpoints,
            "sampleLimit": most_samples(component),
        },
    }))
}

//! Records what the floor of a control plane is made from: everything that Hangar made for it in the management cluster,
//! read once, without what belongs to that one control plane's life (owners, ids, states).
//!
//! The certificates are those of the first life, so the floor asks for the same address.

use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_pki::{Authority, Credentials, Intent, Kubeconfig, PrivateKeyPem, Usage, issue};
use serde_json::{Value, json};

use crate::as_applied;
use crate::kubectl::Kubectl;

/// What a hosted control plane consists of.
const KINDS: &str =
    "secrets,configmaps,services,networkpolicies,poddisruptionbudgets,statefulsets,deployments";
const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
const ADDRESS_ANNOTATION: &str = "kube-vip.io/loadbalancerIPs";

/// Manifests, each as one text for kubectl.
pub(crate) struct Recorded {
    pub(crate) ground: String,
    pub(crate) api_server: String,
    pub(crate) controllers: String,
    pub(crate) address: String,
    /// Of a user who needs no role: nobody has written the roles yet.
    pub(crate) kubeconfig: String,
    pub(crate) count: usize,
}

impl Recorded {
    /// Of a running control plane.
    pub(crate) fn of(cluster: &str, objects: &[Value]) -> anyhow::Result<Self> {
        let address = objects
            .iter()
            .find_map(|it| it["status"]["loadBalancer"]["ingress"][0]["ip"].as_str())
            .context("no Service has an address")?
            .to_owned();
        let named = |name: &str| {
            let name = format!("{cluster}-{name}");
            let found = objects.iter().find(|it| it["kind"] == "Secret" && it["metadata"]["name"] == name);
            found.with_context(|| format!("there is no Secret {name}"))
        };
        let access = full(&named("operator-access")?["data"], &named("ca")?["data"])?;
        let bare: Vec<Value> = objects.iter().map(|it| managed(it, &address)).collect();
        let component = |name: &str| {
            let name = format!("{cluster}-{name}");
            move |it: &&Value| it["kind"] == "Deployment" && it["metadata"]["name"] == name
        };
        let (api_server, manager) = (component("apiserver"), component("controller-manager"));
        let scheduler = component("scheduler");
        Ok(Self {
            ground: manifest(bare.iter().filter(|it| it["kind"] != "Deployment"), 10)?,
            api_server: manifest(bare.iter().filter(api_server), 1)?,
            controllers: manifest(bare.iter().filter(|it| manager(it) || scheduler(it)), 2)?,
            kubeconfig: moved(&access, &address)?,
            address,
            count: bare.len(),
        })
    }
}

/// The objects of control planes that a selector selects.
pub(crate) fn objects_of(
    management: &Kubectl,
    namespace: &str,
    selector: &str,
) -> anyhow::Result<Vec<Value>> {
    management.list(&["get", KINDS, "--namespace", namespace, "--selector", selector])
}

/// Removes everything that the floor made: `selector` selects the objects, and `claims` the volumes, which carry no label
/// of a cluster.
pub(crate) fn remove(
    management: &Kubectl,
    namespace: &str,
    selector: &str,
    claims: &str,
) -> anyhow::Result<()> {
    let delete = |what: &[&str], selector: &str| {
        let rest = ["--namespace", namespace, "--selector", selector, "--timeout=5m"];
        management.output(&[&["delete"], what, &rest].concat()).map(drop)
    };
    delete(&["statefulsets,deployments"], selector)?;
    // Nobody is served any more, so nothing is worth the grace.
    delete(&["pods", "--grace-period=1"], selector)?;
    delete(&[KINDS], selector)?;
    delete(&["persistentvolumeclaims"], claims)
}

/// An object of the management cluster.
fn managed(object: &Value, address: &str) -> Value {
    let mut bare = bare(object);
    if bare["kind"] == "ConfigMap" && bare["metadata"]["labels"][COMPONENT_LABEL] == "etcd" {
        found_anew(&mut bare["data"]);
    }
    if bare["kind"] == "Service" {
        let is_headless = bare["spec"]["clusterIP"] == "None";
        if let Some(spec) = bare.get_mut("spec").and_then(Value::as_object_mut) {
            for given in ["clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"] {
                spec.remove(given);
            }
            if !is_headless {
                spec.remove("clusterIP");
            }
        }
        for port in bare["spec"]["ports"].as_array_mut().into_iter().flatten() {
            if let Some(port) = port.as_object_mut() {
                port.remove("nodePort");
            }
        }
        if bare["spec"]["type"] == "LoadBalancer" {
            bare["metadata"]["annotations"][ADDRESS_ANNOTATION] = json!(address);
        }
    }
    bare
}

/// The configurations of an etcd's members as they were when none had data: they were recorded from members that have, and
/// one that loses its data must not find itself in its list.
fn found_anew(data: &mut Value) {
    let mut members: Vec<(&mut Value, Value)> = data
        .as_object_mut()
        .into_iter()
        .flat_map(|data| data.values_mut())
        .filter_map(|text| {
            let settings: Value = serde_saphyr::from_str(text.as_str()?).ok()?;
            settings.is_object().then_some((text, settings))
        })
        .collect();
    let all: Vec<String> = members
        .iter()
        .filter_map(|(_, settings)| {
            let url = settings["initial-advertise-peer-urls"].as_str()?;
            Some(format!("{}={url}", settings["name"].as_str()?))
        })
        .collect();
    for (text, settings) in &mut members {
        settings["initial-cluster"] = json!(all.join(","));
        settings["initial-cluster-state"] = json!("new");
        // JSON is YAML too.
        **text = json!(settings.to_string());
    }
}

/// Without what belongs to one life of it.
pub(crate) fn bare(object: &Value) -> Value {
    let mut bare = as_applied(object, &["namespace", "labels", "annotations"]);
    if let Some(annotations) = bare["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| {
            !name.starts_with("kube-vip.io/") && !name.contains("deployment.kubernetes.io/")
        });
    }
    bare
}

/// What a Secret's value says.
pub(crate) fn decoded(value: &Value) -> anyhow::Result<String> {
    let bytes = STANDARD.decode(value.as_str().context("a Secret's value is missing")?)?;
    String::from_utf8(bytes).context("a Secret's value is no text")
}

/// A kubeconfig with another address in place of the name that only pods know.
fn moved(kubeconfig: &str, address: &str) -> anyhow::Result<String> {
    let host = server_host(kubeconfig)?;
    Ok(kubeconfig.replace(&format!("https://{host}"), &format!("https://{address}")))
}

/// A kubeconfig that needs no rights in the tenant: nobody writes them into the floor.
fn full(access: &Value, authority: &Value) -> anyhow::Result<String> {
    let access = Kubeconfig::read(&decoded(&access["value"])?)?;
    let key = PrivateKeyPem::new(decoded(&authority["tls.key"])?);
    let authority = Authority::from_pem(&decoded(&authority["tls.crt"])?, &key)?;
    let intent =
        Intent::new("bench", Usage::Client, Duration::from_hours(24)).organizations(["system:masters"]);
    let credentials = Credentials::Certificate(issue(&authority, &intent, jiff::Timestamp::now())?);
    Ok(Kubeconfig { credentials, ..access }.to_yaml()?)
}

/// The host in a kubeconfig's `server: https://host:port`.
pub(crate) fn server_host(kubeconfig: &str) -> anyhow::Result<&str> {
    let value = kubeconfig.split_once("https://").map(|(_, rest)| rest);
    let host = value.and_then(|rest| rest.split([':', '/', '"', '\n']).next());
    host.filter(|host| !host.is_empty()).context("the kubeconfig names no server")
}

/// One text for kubectl. A floor with less than `least` objects would be no floor.
pub(crate) fn manifest<'a>(objects: impl Iterator<Item = &'a Value>, least: usize) -> anyhow::Result<String> {
    let objects: Vec<&Value> = objects.collect();
    anyhow::ensure!(objects.len() >= least, "only {} objects were recorded", objects.len());
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_keeps_what_was_asked_for_and_its_address() {
        let service = json!({
            "kind": "Service",
            "metadata": {"name": "api", "uid": "1", "ownerReferences": [{}], "annotations": {"kube-vip.io/vipHost": "m"}},
            "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": [{"port": 6443, "nodePort": 30000}]},
            "status": {"loadBalancer": {}},
        });
        assert_eq!(
            managed(&service, "192.0.2.1"),
            json!({
                "kind": "Service",
                "metadata": {"name": "api", "annotations": {ADDRESS_ANNOTATION: "192.0.2.1"}},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 6443}]},
            })
        );
    }

    #[test]
    fn the_floors_etcd_begins_without_data() {
        let member = |number: u8, cluster: &str, state: &str| {
            json!({
                "name": format!("etcd-{number}"),
                "initial-advertise-peer-urls": format!("https://etcd{number}:2380"),
                "initial-cluster": cluster,
                "initial-cluster-state": state,
            })
        };
        let settings = json!({
            "kind": "ConfigMap",
            "metadata": {"name": "etcd", "labels": {COMPONENT_LABEL: "etcd"}},
            "data": {
                "0.yaml": member(0, "etcd-1=https://etcd1:2380", "existing").to_string(),
                "1.yaml": member(1, "etcd-0=https://etcd0:2380", "existing").to_string(),
            },
        });
        let both = "etcd-0=https://etcd0:2380,etcd-1=https://etcd1:2380";
        assert_eq!(managed(&settings, "")["data"]["1.yaml"], member(1, both, "new").to_string());
    }

    #[test]
    fn a_kubeconfig_is_moved_to_an_address() {
        let text = "clusters:\n- cluster:\n    server: https://api.default.svc:6443\n";
        assert_eq!(moved(text, "192.0.2.1").unwrap(), text.replace("api.default.svc", "192.0.2.1"));
        assert!(moved("server: none", "192.0.2.1").is_err());
    }
}

//! Records what the floor is made from: everything that Hangar made for a cluster, read once, without what belongs to
//! that one cluster's life (owners, ids, states).
//!
//! In the management cluster these are the objects with the cluster's label. In the tenant they are the objects with a
//! field manager of Hangar's name, which includes the network add-on that `hangar up` applied. The certificates are
//! those of the first cluster, so the floor asks for the same address. The worker's data are those of the first worker,
//! and its token is written without an expiry.

use std::fmt;
use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_pki::{Authority, Credentials, Intent, Kubeconfig, PrivateKeyPem, Usage, issue};
use serde_json::{Value, json};

use super::cloud::Cloud;
use super::place::Place;
use super::timeline::is_worker_data;
use super::{CLUSTER, NAMESPACE, SELECTOR};
use crate::as_applied;
use crate::kubectl::Kubectl;

/// What a hosted control plane consists of.
pub(super) const KINDS: &str =
    "secrets,configmaps,services,networkpolicies,poddisruptionbudgets,statefulsets,deployments";
/// What is written into a tenant; what others are in comes first.
const TENANT_KINDS: &str = "namespaces,serviceaccounts,configmaps,secrets,services,endpoints,endpointslices,roles,\
                            rolebindings,clusterroles,clusterrolebindings,deployments,daemonsets";
const ADDRESS_ANNOTATION: &str = "kube-vip.io/loadbalancerIPs";
const TOKEN_TYPE: &str = "bootstrap.kubernetes.io/token";

/// Manifests, each as one text for kubectl.
pub(super) struct Recording {
    pub(super) ground: String,
    pub(super) api_server: String,
    pub(super) controllers: String,
    pub(super) tenant: String,
    /// The network add-on alone, with the address it was given.
    network: String,
    address: String,
    /// Of a user who needs no role: the roles are among the applied objects.
    pub(super) kubeconfig: String,
    pub(super) worker: Worker,
    counts: (usize, usize),
}

/// What is asked of the cloud.
pub(super) struct Worker {
    /// As the cloud takes it.
    pub(super) user_data: String,
    pub(super) server: Value,
    pub(super) subnet: Value,
    pub(super) external_network: Value,
    pub(super) groups: Vec<Value>,
    /// Those of the server's port.
    pub(super) port_groups: Vec<Value>,
}

impl Recording {
    /// Of the running cluster.
    pub(super) fn of(place: &Place, cloud: &Cloud) -> anyhow::Result<Self> {
        let management = place.management();
        let objects = management.list(&["get", KINDS, "--namespace", NAMESPACE, "--selector", SELECTOR])?;
        let data = objects.iter().find(|it| is_worker_data(it)).context("no Secret has a worker's data")?;
        let user_data = data["data"]["value"].as_str().context("a worker's data")?.to_owned();
        let address = objects
            .iter()
            .find_map(|it| it["status"]["loadBalancer"]["ingress"][0]["ip"].as_str())
            .context("no Service has an address")?
            .to_owned();
        let named = |name: &str| {
            let name = format!("{CLUSTER}-{name}");
            let found = objects.iter().find(|it| it["kind"] == "Secret" && it["metadata"]["name"] == name);
            found.with_context(|| format!("there is no Secret {name}"))
        };
        let access = full(&named("operator-access")?["data"], &named("ca")?["data"])?;

        let kept = objects.iter().filter(|it| !is_worker_data(it));
        let bare: Vec<Value> = kept.map(|it| managed(it, &address)).collect();
        let component = |name: &str| {
            let name = format!("{CLUSTER}-{name}");
            move |it: &&Value| it["kind"] == "Deployment" && it["metadata"]["name"] == name
        };
        let (api_server, manager) = (component("apiserver"), component("controller-manager"));
        let scheduler = component("scheduler");
        let first = management.with(&place.first_kubeconfig());
        let tenant = tenant_objects(&first, &user_data)?;
        Ok(Self {
            ground: manifest(bare.iter().filter(|it| it["kind"] != "Deployment"), 10)?,
            api_server: manifest(bare.iter().filter(api_server), 1)?,
            controllers: manifest(bare.iter().filter(|it| manager(it) || scheduler(it)), 2)?,
            network: manifest(tenant.iter().filter(|it| is_network(it)), 5)?,
            tenant: manifest(tenant.iter(), 20)?,
            counts: (bare.len(), tenant.len()),
            worker: Worker::of(cloud, user_data)?,
            kubeconfig: moved(&access, &address)?,
            address,
        })
    }

    /// The network add-on for a tenant at another address.
    pub(super) fn network(&self, address: &str) -> String {
        self.network.replace(&self.address, address)
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: usize = self.worker.groups.iter().map(|group| rules_of(group).len()).sum();
        write!(
            formatter,
            "{} objects in the management cluster, {} in the tenant, {} security groups with {rules} rules",
            self.counts.0,
            self.counts.1,
            self.worker.groups.len(),
        )
    }
}

impl Worker {
    fn of(cloud: &Cloud, user_data: String) -> anyhow::Result<Self> {
        let found = cloud.get("/compute/v2.1/servers/detail")?;
        let server = found["servers"][0].clone();
        let id = server["id"].as_str().context("the cloud has no server")?;
        let ports = cloud.get(&format!("/network/v2.0/ports?device_id={id}"))?;
        let port = &ports["ports"][0];
        let subnets = cloud.get("/network/v2.0/subnets")?;
        let subnet = items(&subnets["subnets"]).find(|it| it["network_id"] == port["network_id"]);
        let networks = cloud.get("/network/v2.0/networks")?;
        let external = items(&networks["networks"]).find(|it| it["router:external"] == true);
        let groups = cloud.get("/network/v2.0/security-groups")?;
        let is_ours = |it: &&Value| it["name"].as_str().is_some_and(|name| name.starts_with("k8s-cluster-"));
        Ok(Self {
            user_data,
            subnet: subnet.context("the server's port is on no subnet")?.clone(),
            external_network: external.context("there is no external network")?["id"].clone(),
            groups: items(&groups["security_groups"]).filter(is_ours).cloned().collect(),
            port_groups: items(&port["security_groups"]).cloned().collect(),
            server,
        })
    }
}

/// The rules of a security group.
pub(super) fn rules_of(group: &Value) -> Vec<&Value> {
    items(&group["security_group_rules"]).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// What `hangar up` applied.
fn is_network(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let is_name = |name: &Value| name.as_str().is_some_and(|name| name.contains("flannel"));
    is_name(&metadata["name"]) || is_name(&metadata["namespace"])
}

/// An object of the management cluster.
fn managed(object: &Value, address: &str) -> Value {
    let mut bare = bare(object);
    for text in
        bare.get_mut("data").and_then(Value::as_object_mut).into_iter().flat_map(|data| data.values_mut())
    {
        // It was recorded from an etcd that has its data; the floor's begins without any.
        if let Some(document) = text.as_str() {
            *text = json!(document.replace("initial-cluster-state: existing", "initial-cluster-state: new"));
        }
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

/// Without what belongs to one life of it.
fn bare(object: &Value) -> Value {
    let mut bare = as_applied(object, &["namespace", "labels", "annotations"]);
    if let Some(annotations) = bare["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| {
            !name.starts_with("kube-vip.io/") && !name.contains("deployment.kubernetes.io/")
        });
    }
    bare
}

/// What is in the tenant because of us, and a token.
fn tenant_objects(tenant: &Kubectl, user_data: &str) -> anyhow::Result<Vec<Value>> {
    let found = tenant.list(&["get", TENANT_KINDS, "--all-namespaces", "--show-managed-fields"])?;
    let ours = found.iter().filter(|it| {
        let manager =
            |field: &Value| field["manager"].as_str().is_some_and(|name| name.starts_with("hangar"));
        items(&it["metadata"]["managedFields"]).any(manager) && it["type"] != TOKEN_TYPE
    });
    let mut objects: Vec<Value> = ours.map(bare).collect();
    for object in &mut objects {
        // Signatures of tokens are the controller-manager's.
        if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
            data.retain(|key, _| !key.starts_with("jws-kubeconfig-"));
        }
    }
    objects.push(token(&decoded(&json!(user_data))?)?);
    Ok(objects)
}

/// The Secret of the token in a worker's data.
fn token(user_data: &str) -> anyhow::Result<Value> {
    let line = user_data.lines().find_map(|line| line.trim().strip_prefix("token: "));
    let token = line.context("a worker's data has no token")?.trim_matches('"');
    let (id, secret) = token.split_once('.').context("a worker's token has two parts")?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": TOKEN_TYPE,
        "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
        "stringData": {
            "token-id": id, "token-secret": secret,
            "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    }))
}

/// What a Secret's value says.
pub(super) fn decoded(value: &Value) -> anyhow::Result<String> {
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
pub(super) fn server_host(kubeconfig: &str) -> anyhow::Result<&str> {
    let value = kubeconfig.split_once("https://").map(|(_, rest)| rest);
    let host = value.and_then(|rest| rest.split([':', '/', '"', '\n']).next());
    host.filter(|host| !host.is_empty()).context("the kubeconfig names no server")
}

/// One text for kubectl. A floor with less than `least` objects would be no floor.
fn manifest<'a>(objects: impl Iterator<Item = &'a Value>, least: usize) -> anyhow::Result<String> {
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
        let settings = json!({"kind": "ConfigMap", "metadata": {"name": "etcd"}, "data": {
            "0.yaml": "name: 0\ninitial-cluster-state: existing\n",
        }});
        assert_eq!(managed(&settings, "")["data"]["0.yaml"], "name: 0\ninitial-cluster-state: new\n");
    }

    #[test]
    fn the_token_is_read_from_a_workers_data() {
        let secret = token("discovery:\n  bootstrapToken:\n    token: abcdef.0123456789abcdef\n").unwrap();
        assert_eq!(secret["metadata"]["name"], "bootstrap-token-abcdef");
        assert_eq!(secret["stringData"]["token-secret"], "0123456789abcdef");
        assert!(token("none").is_err());
    }

    #[test]
    fn a_kubeconfig_is_moved_to_an_address() {
        let text = "clusters:\n- cluster:\n    server: https://api.default.svc:6443\n";
        assert_eq!(moved(text, "192.0.2.1").unwrap(), text.replace("api.default.svc", "192.0.2.1"));
        assert!(moved("server: none", "192.0.2.1").is_err());
    }
}

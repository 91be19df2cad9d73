//! Records what the floor is made from: the control plane ([`Recorded`]), the tenant's objects, and a worker.
//!
//! In the tenant these are the objects with a field manager of Hangar's name, which includes the network add-on that
//! `hangar up` applied. The worker's data are those of the first worker, and its token is written without an expiry.

use std::fmt;

use anyhow::Context;
use serde_json::{Value, json};

use super::cloud::Cloud;
use super::timeline::is_worker_data;
use super::{CLUSTER, NAMESPACE, SELECTOR};
use crate::kubectl::Kubectl;
use crate::place::Place;
use crate::recorded::{Recorded, bare, decoded, manifest, objects_of};

/// What is written into a tenant; what others are in comes first.
const TENANT_KINDS: &str = "namespaces,serviceaccounts,configmaps,secrets,services,endpoints,endpointslices,roles,\
                            rolebindings,clusterroles,clusterrolebindings,deployments,daemonsets";
const TOKEN_TYPE: &str = "bootstrap.kubernetes.io/token";

/// Manifests, each as one text for kubectl.
pub(super) struct Recording {
    pub(super) control_plane: Recorded,
    pub(super) tenant: String,
    /// The network add-on alone, with the address it was given.
    network: String,
    pub(super) worker: Worker,
    tenant_count: usize,
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
        let mut objects = objects_of(management, NAMESPACE, SELECTOR)?;
        let data = objects.iter().find(|it| is_worker_data(it)).context("no Secret has a worker's data")?;
        let user_data = data["data"]["value"].as_str().context("a worker's data")?.to_owned();
        objects.retain(|it| !is_worker_data(it));
        let first = management.with(&place.first_kubeconfig(CLUSTER));
        let tenant = tenant_objects(&first, &user_data)?;
        Ok(Self {
            control_plane: Recorded::of(CLUSTER, &objects)?,
            network: manifest(tenant.iter().filter(|it| is_network(it)), 5)?,
            tenant: manifest(tenant.iter(), 20)?,
            tenant_count: tenant.len(),
            worker: Worker::of(cloud, user_data)?,
        })
    }

    /// The network add-on for a tenant at another address.
    pub(super) fn network(&self, address: &str) -> String {
        self.network.replace(&self.control_plane.address, address)
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: usize = self.worker.groups.iter().map(|group| rules_of(group).len()).sum();
        write!(
            formatter,
            "{} objects in the management cluster, {} in the tenant, {} security groups with {rules} rules",
            self.control_plane.count,
            self.tenant_count,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_read_from_a_workers_data() {
        let secret = token("discovery:\n  bootstrapToken:\n    token: abcdef.0123456789abcdef\n").unwrap();
        assert_eq!(secret["metadata"]["name"], "bootstrap-token-abcdef");
        assert_eq!(secret["stringData"]["token-secret"], "0123456789abcdef");
        assert!(token("none").is_err());
    }
}

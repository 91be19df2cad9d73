//! The phases inside the cluster: the control plane answers, add-ons are applied, the node is Ready, pods run.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hangar_parts::Set;
use kube::Client;
use serde_json::{Value, json};

use super::machine::Kubelets;
use crate::addons::{self, AddonOptions, ApiServer, GatewayOptions, Images, LoadBalancerOptions, gateway};
use crate::addresses::{Addresses, DNS_SERVICE, POD_RANGE};
use crate::cluster::{self, ExpectedPods, Starts, Wanted};
use crate::error::{Error, Result};
use crate::images::Listing;
use crate::management::control_plane::{self, Component};
use crate::management::{API_SERVER_PORT, Node};
use crate::one_host::{OneHost, UpOptions};
use crate::phases::Done;
use crate::progress::{Phase, Progress};
use crate::stale::{self, Evicted};

/// etcd and an API server start in five seconds, on a host that is busy with other things in thirty.
const CONTROL_PLANE_PATIENCE: Duration = Duration::from_mins(4);
const NODE_PATIENCE: Duration = Duration::from_mins(2);
const PODS_PATIENCE: Duration = Duration::from_mins(5);

impl OneHost {
    pub(super) async fn control_plane(&self, progress: &Arc<dyn Progress>) -> Result<Done<Client>> {
        let client = cluster::connect(&self.kubeconfig()).await?;
        let look = || cluster::unserving_api_server(&client);
        let tell = |state: &str| progress.detail(Phase::ControlPlane, state);
        cluster::wait("an answer of the API server", CONTROL_PLANE_PATIENCE, tell, look).await?;
        Ok(Done::new(client, "answers", false))
    }

    pub(super) async fn controllers(
        &self,
        manifests: &control_plane::Options,
        client: &Client,
        progress: &Arc<dyn Progress>,
    ) -> Result<Done<()>> {
        let look = || cluster::unready_api_server(client);
        let tell = |state: &str| progress.detail(Phase::Controllers, state);
        cluster::wait("the API server's readiness", CONTROL_PLANE_PATIENCE, tell, look).await?;
        let written = self.write_manifests(&Component::SECOND, manifests)?;
        let text = if written == 0 { "there" } else { "started" };
        Ok(Done::new((), text, written > 0))
    }

    /// Applies the add-ons and returns what pods they have.
    pub(super) async fn addons(
        &self,
        options: &UpOptions,
        client: &Client,
        addresses: Addresses,
    ) -> Result<Done<BTreeSet<Wanted>>> {
        let mut changed = 0;
        if options.gateway {
            let definitions = addons::gateway_api(&self.parts.files(Set::GatewayApi)?)?;
            changed += cluster::apply(client, &definitions).await?;
        }
        let mut objects = vec![kubelet_access()];
        objects.extend(addons::objects(&addon_options(options, addresses)));
        changed += cluster::apply(client, &objects).await?;
        let text = if changed == 0 { "complete".to_owned() } else { format!("{changed} objects applied") };
        Ok(Done::new(expected_pods(&objects, options.node_count()), text, changed > 0))
    }

    /// `kubelets`: when they were started again after their machines.
    pub(super) async fn nodes(
        &self,
        options: &UpOptions,
        client: &Client,
        kubelets: &Kubelets,
        progress: &Arc<dyn Progress>,
    ) -> Result<Done<()>> {
        let Starts(starts) = self.starts()?;
        let tell = |state: &str| progress.detail(Phase::Node, state);
        for name in Node::some(options.node_count()).map(Node::name) {
            let since = starts.get(&name).max(kubelets.get(&name)).copied().unwrap_or_default();
            cluster::wait(&format!("the readiness of the node {name}"), NODE_PATIENCE, tell, || {
                cluster::unready_node(client, &name, since)
            })
            .await?;
        }
        let text = match options.node_count() {
            1 => "Ready".to_owned(),
            several => format!("{several} Ready"),
        };
        Ok(Done::new((), text, false))
    }

    pub(super) async fn pods(
        &self,
        client: &Client,
        expected: &ExpectedPods,
        images: &Listing,
        progress: &Arc<dyn Progress>,
    ) -> Result<Done<()>> {
        let starts = &self.starts()?;
        let tell = |state: &str| progress.detail(Phase::Pods, state);
        let evicted = OnceLock::new();
        let evict = || async {
            let _ = evicted.set(stale::evict(client, images, starts).await?);
            Ok::<_, Error>(None)
        };
        cluster::wait("the eviction of pods with older images", PODS_PATIENCE, tell, evict).await?;
        let evicted = evicted.into_inner().unwrap_or_default();
        cluster::wait("the pods' readiness", PODS_PATIENCE, tell, || {
            cluster::unready_pods(client, expected, starts)
        })
        .await?;
        Ok(Done::new((), running(evicted), evicted.gone > 0))
    }
}

fn running(evicted: Evicted) -> String {
    let mut text = "all running".to_owned();
    for (count, fate) in [
        (evicted.gone, "started again with newer images"),
        (evicted.refused, "cannot be evicted and keep older images"),
    ] {
        if count > 0 {
            text = format!("{text}, {count} {fate}");
        }
    }
    text
}

/// Lets the API server fetch logs and run commands: its certificate carries a name and no group.
fn kubelet_access() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kubeadm:apiserver-kubelet-client"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:kubelet-api-admin",
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "User",
            "name": "kube-apiserver-kubelet-client",
        }],
    })
}

fn addon_options(options: &UpOptions, addresses: Addresses) -> AddonOptions {
    AddonOptions {
        api_server: ApiServer { host: addresses.management, port: API_SERVER_PORT },
        pod_range: POD_RANGE,
        dns_address: DNS_SERVICE,
        resolver: addresses.management,
        load_balancer: LoadBalancerOptions {
            link: "eth0".to_owned(),
            first: addresses.first_load_balancer,
            last: addresses.last_load_balancer,
        },
        images: Images::default(),
        nodes: options.node_count(),
        gateway: options
            .gateway
            .then(|| GatewayOptions { address: addresses.gateway, domain: gateway::DOMAIN.to_owned() }),
    }
}

/// One pod of each workload; of those that run everywhere, one on each node.
fn expected_pods(objects: &[Value], nodes: u8) -> BTreeSet<Wanted> {
    let mut wanted = BTreeSet::new();
    for object in objects {
        let beginning = format!("{}-", object["metadata"]["name"].as_str().unwrap_or_default());
        match object["kind"].as_str() {
            Some("DaemonSet") => wanted.extend(
                Node::some(nodes)
                    .map(|node| Wanted { beginning: beginning.clone(), node: Some(node.name()) }),
            ),
            Some("Deployment" | "StatefulSet") => {
                wanted.insert(Wanted { beginning, node: None });
            }
            _ => {}
        }
    }
    wanted
}

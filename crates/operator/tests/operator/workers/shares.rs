//! Clusters beside each other: the faults of one do not affect the others.
//!
//! Nothing here is timed. The same Cluster is created and deleted alone and beside faulty ones, and its writes are
//! counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineSet};
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachineTemplate};
use hangar_cloud::Handle;
use hangar_cloud::fault::{Effect, FaultRule};
use hangar_testbed::strangers::Tarpit;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use serde_json::json;

use super::cloud::{credentials, inventory, managed, start};
use super::servers::{ready_cluster, worker};
use super::tenants::{BlackHole, Kubelets};
use super::world::{BED, Running, Seen, World, eventually, owner};

pub(super) const CONTROLLERS: &str = "machine,machine-set,openstack-cluster,openstack-machine";
/// Machines of each bad cluster.
const MANY: usize = 4;
/// Machines of the cluster whose tenant holds every change of a Node: each of them would hold a worker.
const HUNG: usize = 10;
/// Clusters whose clouds accept and never answer.
const TARPITS: usize = 20;

/// A cluster with a cloud of its own.
pub(super) struct Site {
    pub(super) world: World,
    cloud: Arc<Handle>,
    _kubelets: Kubelets,
}

impl Site {
    pub(super) async fn new(prefix: &str) -> Self {
        let world = World::beside(prefix).await;
        let cloud = Arc::new(start().await);
        let kubelets = Kubelets::start(&world, &cloud);
        Self { world, cloud, _kubelets: kubelets }
    }

    /// Everything but Machines.
    pub(super) async fn prepare(&self, kubeconfig: &str) {
        ready_cluster(&self.world, &self.cloud).await;
        self.world
            .create::<Secret>(json!({
                "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
                "metadata": {"name": "demo-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
                "stringData": {"value": kubeconfig},
            }))
            .await;
        self.world
            .create::<OpenStackMachineTemplate>(json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackMachineTemplate",
                "metadata": {"name": "small"}, "spec": {"template": {"spec": worker()}},
            }))
            .await;
    }

    pub(super) async fn workers(&self, replicas: usize) {
        let template = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": "small"});
        self.world
            .create::<MachineSet>(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "metadata": {"name": "workers"},
                "spec": {
                    "clusterName": "demo", "replicas": replicas,
                    "selector": {"matchLabels": {"pool": "workers"}},
                    "template": {
                        "metadata": {"labels": {"pool": "workers", "cluster.x-k8s.io/cluster-name": "demo"}},
                        "spec": {
                            "clusterName": "demo", "version": "v1.34.10",
                            "bootstrap": {"dataSecretName": "worker-data"}, "infrastructureRef": template,
                        },
                    },
                },
            }))
            .await;
    }

    async fn scale(&self, replicas: usize) {
        self.world.merge::<MachineSet>("workers", json!({"spec": {"replicas": replicas}})).await;
    }

    /// Whether there are so many Machines, all of them with a Node that has been given its labels, and no other server.
    pub(super) async fn runs(&self, count: usize) -> bool {
        let machines = self.world.api::<Machine>().list(&ListParams::default()).await.unwrap().items;
        let is_running = |machine: &Machine| {
            let status = machine.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
            conditions.iter().any(|found| found.type_ == "Available" && found.status == "True")
        };
        machines.len() == count
            && machines.iter().all(is_running)
            && self.cloud.model().servers.len() == count
    }

    /// From the first Machine to the last.
    async fn lives(&self, seen: &Seen) {
        self.workers(1).await;
        eventually("one runs", async || self.runs(1).await).await;
        self.rests(seen).await;
        self.scale(2).await;
        eventually("two run", async || self.runs(2).await).await;
        self.rests(seen).await;
        self.scale(1).await;
        eventually("one is left", async || self.runs(1).await).await;
        self.rests(seen).await;
        self.world.delete::<MachineSet>("workers").await;
        self.world.delete::<OpenStackCluster>("demo").await;
        assert_eq!(inventory(&self.cloud), BTreeMap::new());
    }

    /// Returns when nothing was written for it for a while.
    pub(super) async fn rests(&self, seen: &Seen) {
        let (mut quiet, mut before) = (0, BTreeMap::new());
        eventually("it rests", async || {
            let now = self.writes(seen);
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
            quiet >= 40
        })
        .await;
    }

    /// Writes for it that were carried out, by kind: here, in its tenant and in its cloud.
    pub(super) fn writes(&self, seen: &Seen) -> BTreeMap<String, usize> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut count = |kind: String| *counts.entry(kind).or_default() += 1;
        for (place, log) in [("here", &seen.management), ("tenant", &seen.tenants)] {
            for (call, answer) in log.calls() {
                let is_ours = match place {
                    "here" => call.namespace.as_ref() == Some(&self.world.namespace),
                    _ => call
                        .name
                        .as_ref()
                        .is_some_and(|name| name.starts_with(&format!("{}-", self.world.namespace))),
                };
                if is_ours && call.verb.is_write() && answer.is_success() {
                    count(format!("{place}: {} {}", call.verb.as_str(), call.resource));
                }
            }
        }
        for call in self.cloud.calls() {
            let is_write = call.method != "GET" && !call.path.starts_with("/identity");
            if is_write && (200..300).contains(&call.status) {
                // Ids are 36 characters.
                let path: Vec<&str> =
                    call.path.split('/').map(|part| if part.len() == 36 { "ID" } else { part }).collect();
                count(format!("cloud: {} {}", call.method, path.join("/")));
            }
        }
        counts
    }
}

/// Writes of a life that nothing disturbs.
async fn alone() -> BTreeMap<String, usize> {
    let (site, seen) = (Site::new("alone").await, Seen::new());
    let _running = Running::seen(CONTROLLERS, Vec::new(), &seen);
    site.prepare(&good_tenant()).await;
    site.lives(&seen).await;
    site.writes(&seen)
}

pub(super) fn good_tenant() -> String {
    std::fs::read_to_string(BED.kubeconfig()).unwrap()
}

fn all_calls(name: &str, method: Option<&str>, effect: Effect) -> FaultRule {
    let (name, method) = (name.to_owned(), method.map(str::to_owned));
    FaultRule { name, method, path: None, body: None, skip: 0, times: None, effect }
}

/// Clusters whose tenant holds every change of a Node, whose cloud takes 20 s for every answer, and whose cloud refuses everything; and
/// many whose cloud never answers.
struct Bad {
    hung: Site,
    slow: Site,
    refused: Site,
    webhook: BlackHole,
    silent: World,
    tarpit: Tarpit,
}

impl Bad {
    async fn new() -> Self {
        let (hung, slow, refused) =
            (Site::new("hung").await, Site::new("slow").await, Site::new("refused").await);
        let (silent, tarpit) = (World::beside("silent").await, Tarpit::start().await.unwrap());
        let webhook = BlackHole::start(&hung.world).await;
        Self { hung, slow, refused, webhook, silent, tarpit }
    }

    async fn go_wrong(&self) {
        let good = good_tenant();
        futures::join!(self.hung.prepare(&good), self.slow.prepare(&good), self.refused.prepare(&good));
        self.slow.cloud.arm(all_calls("slow", None, Effect::Delay { milliseconds: 20_000 }));
        for method in ["POST", "PUT", "DELETE"] {
            let (status, message) = (403, "Quota exceeded".to_owned());
            let refuse = Effect::Fail { status, message, retry_after_seconds: None };
            self.refused.cloud.arm(all_calls(method, Some(method), refuse));
        }
        tarpits(&self.silent, &self.tarpit).await;
        futures::join!(self.hung.workers(HUNG), self.slow.workers(MANY), self.refused.workers(MANY));
        self.has_gone_on_since([0; 4]).await;
    }

    /// Held, delayed and refused calls so far, and those that nobody answered.
    fn counts(&self) -> [usize; 4] {
        let fired = |site: &Site| site.cloud.faults().iter().map(|armed| armed.fired as usize).sum();
        [self.webhook.reviews(), fired(&self.slow), fired(&self.refused), self.tarpit.connections()]
    }

    async fn has_gone_on_since(&self, before: [usize; 4]) {
        eventually("all are bad", async || {
            self.counts().iter().zip(before).all(|(now, before)| *now > before)
        })
        .await;
    }
}

/// Clusters in clouds that never answer.
async fn tarpits(world: &World, tarpit: &Tarpit) {
    for number in 0..TARPITS {
        let name = format!("silent-{number}");
        // Credentials of its own: a project of its own.
        let clouds = credentials(&format!("http://{}/v3", tarpit.address()), &name);
        world.secret(&name, json!({ "clouds.yaml": clouds })).await;
        let cluster: Cluster = world
            .create(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name},
                "spec": {"infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": name,
                }},
            }))
            .await;
        let metadata = json!({"name": name, "labels": {"cluster.x-k8s.io/cluster-name": name},
            "ownerReferences": owner(&cluster)});
        let mut spec = managed();
        spec["identityRef"]["name"] = json!(name);
        world
            .create::<OpenStackCluster>(json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackCluster",
                "metadata": metadata, "spec": spec,
            }))
            .await;
    }
}

/// Statuses are batched, and events are about them: what is seen together is said together, and how much that is depends
/// on who else is at work. So they may differ by half. Of the notes of an OpenStackCluster's requests one may be missing or
/// too many: a write whose answer came too late is not counted here, and carried out all the same.
fn is_near(kind: &str, one: usize, other: usize) -> bool {
    let is_batched = kind.contains("/status") || kind.contains("events");
    let is_note = kind == "here: patch openstackclusters.infrastructure.cluster.x-k8s.io";
    let most = match (is_batched, is_note) {
        (true, _) => one.max(other).div_ceil(2).max(2),
        (false, true) => 1,
        (false, false) => 0,
    };
    one.abs_diff(other) <= most
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_is_looked_after_as_if_the_others_were_well() {
    let turn = World::new("shares").await;
    let alone = alone().await;
    let (bad, good, seen) = (Bad::new().await, Site::new("good").await, Seen::new());
    let running = Running::seen(CONTROLLERS, Vec::new(), &seen);
    Box::pin(bad.go_wrong()).await;
    let before = bad.counts();
    good.prepare(&good_tenant()).await;
    good.lives(&seen).await;
    bad.has_gone_on_since(before).await;
    drop(running);
    bad.webhook.end().await;
    let beside = good.writes(&seen);
    println!("held, delayed, refused, unanswered: {before:?}, at the end {:?}", bad.counts());
    for kind in alone.keys().chain(beside.keys().filter(|kind| !alone.contains_key(*kind))) {
        let (one, other) =
            (alone.get(kind).copied().unwrap_or_default(), beside.get(kind).copied().unwrap_or_default());
        println!("{kind}: alone {one}, beside bad ones {other}");
        assert!(is_near(kind, one, other), "{kind}: {one} {other}");
    }
    drop(turn);
}

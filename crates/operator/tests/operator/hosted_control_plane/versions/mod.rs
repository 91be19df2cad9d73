//! Control planes that serve, and another size or version of theirs: with a real API server, whose controllers make and
//! replace pods and compute disruption budgets, and a real tenant.

mod crash;
mod upgrade;

use std::sync::{Arc, LazyLock};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_plan::hosted_control_plane::names::{COMPONENT_LABEL, VERSION_LABEL};
use hangar_testbed::Testbed;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec, Secret};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::actor::Actor;
use super::healing::Members;
use super::tenant::MATERIAL;
use super::world::{World, eventually, spec};

/// The last minor with one series of etcd, and the first with the next.
const OLD: &str = "v1.36.4";
const NEW: &str = "v1.37.1";
const OLD_ETCD: &str = "3.6.16-0";
const NEW_ETCD: &str = "3.7.3-0";

const ETCD: &str = "etcd";
const API_SERVER: &str = "api-server";
const CONTROLLERS: [&str; 2] = ["controller-manager", "scheduler"];

/// A control plane with three members of etcd, the first of which leads.
struct Stage {
    world: World,
    actor: Actor,
    members: Members,
}

impl Stage {
    /// What people apply. Only etcd runs.
    async fn new(bed: &LazyLock<Arc<Testbed>>, name: &str, port: u16, more: Value) -> Self {
        let world = World::new_in(bed, name).await;
        let actor = Actor::start(&world);
        let members = Members::start(&world);
        let mut wanted = spec();
        wanted["version"] = json!(OLD);
        wanted["etcd"] = json!({"replicas": 3});
        // A name, since a load balancer would have another address; it leads to the tenant of this test.
        wanted["controlPlaneEndpoint"] = json!({"host": "localhost", "port": port});
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.apply(wanted).await;
        Self { world, actor, members }
    }

    /// Returns when the tenant can start.
    async fn is_minted(&self) {
        eventually("everything is minted", async || {
            let names = self.world.names::<Secret>().await;
            let has = |suffix: &str| names.contains(&format!("demo-{suffix}"));
            MATERIAL.into_iter().all(has) && has("operator-access")
        })
        .await;
    }

    /// All parts run from now on; returns when everything is ready. The tenant has to run.
    async fn is_ready(&self) {
        for part in [API_SERVER].into_iter().chain(CONTROLLERS) {
            self.actor.run(part);
        }
        eventually("everything is ready", async || self.world.condition("Ready").await.0 == "True").await;
        self.members.etcdctl.lead("demo-etcd-0").await;
    }

    async fn want(&self, spec: Value) {
        let api = self.world.api::<HostedControlPlane>();
        api.patch("demo", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    }

    /// Status, reason and message.
    async fn rolls(&self, status: &str, reason: &str, words: &[&str]) -> bool {
        let found = self.world.condition("RollingOut").await;
        (found.0.as_str(), found.1.as_str()) == (status, reason)
            && words.iter().all(|words| found.2.contains(words))
    }

    /// A record on the control plane.
    async fn recorded(&self, name: &str) -> Option<String> {
        self.world.control_plane().await.annotations().get(name).cloned()
    }

    /// Name, version and readiness of the pods of some parts that stay.
    async fn pods(&self, components: &[&str]) -> Vec<(String, String, bool)> {
        let among = format!("{COMPONENT_LABEL} in ({})", components.join(","));
        let list = self.world.api::<Pod>().list(&ListParams::default().labels(&among)).await.unwrap();
        let staying = list.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let mut all: Vec<_> = staying
            .map(|pod| {
                let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
                let is_ready = conditions
                    .into_iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True");
                (pod.name_any(), pod.labels()[VERSION_LABEL].clone(), is_ready)
            })
            .collect();
        all.sort();
        all
    }

    /// Whether so many pods of these parts are there, all of them ready with this version.
    async fn all_are(&self, components: &[&str], number: usize, wanted: &str) -> bool {
        let pods = self.pods(components).await;
        pods.len() == number
            && pods.iter().all(|(_, version, is_ready)| version.as_str() == wanted && *is_ready)
    }

    /// The version in the template of a Deployment.
    async fn deployed(&self, name: &str) -> String {
        let found = self.world.api::<Deployment>().get(name).await.unwrap();
        version(&found.spec.unwrap().template)
    }

    /// The version in the template of etcd's pods.
    async fn etcd(&self) -> String {
        let found = self.world.api::<StatefulSet>().get("demo-etcd").await.unwrap();
        version(&found.spec.unwrap().template)
    }
}

fn version(template: &PodTemplateSpec) -> String {
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref()).unwrap();
    labels[VERSION_LABEL].clone()
}

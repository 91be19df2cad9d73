//! Acts for kubelets and load balancers: pods that may run become ready, Services get an address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hangar_plan::hosted_control_plane::names::VERSION_LABEL;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::world::{BALANCER, World};

/// What a pod that does not become ready says.
pub(super) const TROUBLE: &str = "ImagePullBackOff: no such tag";

/// The actor of one namespace. Dropping it ends it.
pub(crate) struct Actor {
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

/// What happens to pods.
#[derive(Clone, Default)]
struct Script {
    /// The parts whose pods run.
    running: BTreeSet<String>,
    /// But those of these parts with these versions do not become ready.
    broken: BTreeSet<(String, String)>,
    addresses: BTreeMap<String, IpAddr>,
}

impl Actor {
    /// Gives addresses; no pod runs yet.
    pub(crate) fn start(world: &World) -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let (world, played) = (world.clone(), Arc::clone(&script));
        let task = tokio::spawn(async move {
            loop {
                let script = played.lock().unwrap().clone();
                // Objects come and go between a list and a patch.
                let _ = play(&world, &script).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { script, task }
    }

    /// The address that a pod has when it runs; others have none.
    pub(crate) fn place(&self, pod: &str, address: IpAddr) {
        self.script.lock().unwrap().addresses.insert(pod.to_owned(), address);
    }

    /// From now on pods of this part run and are ready.
    pub(crate) fn run(&self, component: &str) {
        self.script.lock().unwrap().running.insert(component.to_owned());
    }

    /// From now on new pods of this part do not become ready with this version.
    pub(super) fn break_version(&self, component: &str, version: &str) {
        self.script.lock().unwrap().broken.insert((component.to_owned(), version.to_owned()));
    }

    /// Nothing is broken any more.
    pub(super) fn mend(&self) {
        self.script.lock().unwrap().broken.clear();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn play(world: &World, script: &Script) -> kube::Result<()> {
    let labelled = ListParams::default().labels("cluster.x-k8s.io/cluster-name");
    for pod in world.api::<Pod>().list(&labelled).await? {
        let label = |name: &str| pod.labels().get(name).cloned().unwrap_or_default();
        let (component, version) = (label("app.kubernetes.io/component"), label(VERSION_LABEL));
        let status = pod.status.clone().unwrap_or_default();
        let is_running = status.phase.as_deref() == Some("Running");
        let next = if is_running || !script.running.contains(&component) {
            None
        } else if !script.broken.contains(&(component, version)) {
            Some(running_status(&pod, script.addresses.get(&pod.name_any())))
        } else {
            status.container_statuses.is_none().then(|| broken_status(&pod))
        };
        if let Some(next) = next {
            let patch = Patch::Merge(next);
            world.api::<Pod>().patch_status(&pod.name_any(), &PatchParams::default(), &patch).await?;
        }
    }
    for service in world.api::<Service>().list(&labelled).await? {
        let spec = service.spec.clone().unwrap_or_default();
        let balancer = service.status.clone().unwrap_or_default().load_balancer.unwrap_or_default();
        if spec.type_.as_deref() == Some("LoadBalancer") && balancer.ingress.is_none() {
            let status =
                json!({"status": {"loadBalancer": {"ingress": [{"ip": BALANCER, "ipMode": "VIP"}]}}});
            let patch = Patch::Merge(status);
            world.api::<Service>().patch_status(&service.name_any(), &PatchParams::default(), &patch).await?;
        }
    }
    Ok(())
}

fn running_status(pod: &Pod, address: Option<&IpAddr>) -> Value {
    let now = jiff::Timestamp::now();
    // A pod that has been ready for long is available at once: no test waits for `minReadySeconds`.
    let since = now - jiff::SignedDuration::from_mins(1);
    let types = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled"];
    let conditions: Vec<Value> = types
        .iter()
        .map(|type_| json!({"type": type_, "status": "True", "lastTransitionTime": since.to_string()}))
        .collect();
    let state = json!({"running": {"startedAt": now.to_string()}});
    json!({"status": {
        "phase": "Running", "startTime": now.to_string(), "conditions": conditions,
        "containerStatuses": containers(pod, true, &state),
        "podIP": address, "podIPs": address.map(|address| [json!({"ip": address})]),
    }})
}

pub(super) fn broken_status(pod: &Pod) -> Value {
    let (reason, message) = TROUBLE.split_once(": ").unwrap();
    let state = json!({"waiting": {"reason": reason, "message": message}});
    json!({"status": {"phase": "Pending", "containerStatuses": containers(pod, false, &state)}})
}

pub(super) fn containers(pod: &Pod, is_ready: bool, state: &Value) -> Vec<Value> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .map(|container| {
            json!({
                "name": container.name, "ready": is_ready, "started": is_ready, "restartCount": 0,
                "image": container.image, "imageID": "", "state": state,
            })
        })
        .collect()
}

//! Acts for kubelets and load balancers: pods that may run become ready, Services get an address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::world::{BALANCER, World};

/// The actor of one namespace. Dropping it ends it.
pub(crate) struct Actor {
    running: Arc<Mutex<BTreeSet<String>>>,
    addresses: Arc<Mutex<BTreeMap<String, IpAddr>>>,
    task: JoinHandle<()>,
}

impl Actor {
    /// Gives addresses; no pod runs yet.
    pub(crate) fn start(world: &World) -> Self {
        let running = Arc::new(Mutex::new(BTreeSet::new()));
        let addresses = Arc::new(Mutex::new(BTreeMap::new()));
        let (world, allowed, given) = (world.clone(), Arc::clone(&running), Arc::clone(&addresses));
        let task = tokio::spawn(async move {
            loop {
                let (allowed, given) = (allowed.lock().unwrap().clone(), given.lock().unwrap().clone());
                // Objects come and go between a list and a patch.
                let _ = play(&world, &allowed, &given).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { running, addresses, task }
    }

    /// The address that a pod has when it runs; others have none.
    pub(crate) fn place(&self, pod: &str, address: IpAddr) {
        self.addresses.lock().unwrap().insert(pod.to_owned(), address);
    }

    /// From now on pods of this part run and are ready.
    pub(crate) fn run(&self, component: &str) {
        self.running.lock().unwrap().insert(component.to_owned());
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn play(
    world: &World,
    running: &BTreeSet<String>,
    addresses: &BTreeMap<String, IpAddr>,
) -> kube::Result<()> {
    let labelled = ListParams::default().labels("cluster.x-k8s.io/cluster-name");
    for pod in world.api::<Pod>().list(&labelled).await? {
        let component = pod.labels().get("app.kubernetes.io/component").cloned().unwrap_or_default();
        let is_running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        if running.contains(&component) && !is_running {
            let patch = Patch::Merge(running_status(&pod, addresses.get(&pod.name_any())));
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
    let now = jiff::Timestamp::now().to_string();
    let types = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled"];
    let conditions: Vec<Value> = types
        .iter()
        .map(|type_| json!({"type": type_, "status": "True", "lastTransitionTime": now}))
        .collect();
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<Value> = containers
        .map(|container| {
            json!({
                "name": container.name, "ready": true, "started": true, "restartCount": 0,
                "image": container.image, "imageID": "", "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    json!({"status": {
        "phase": "Running", "startTime": now, "conditions": conditions, "containerStatuses": statuses,
        "podIP": address, "podIPs": address.map(|address| [json!({"ip": address})]),
    }})
}

//! Plays the controllers of StatefulSets and Deployments, kubelets, and load balancers: every workload gets its pods and
//! claims, every pod runs, every Service of type LoadBalancer has an address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hangar_kit::watch::WatchBuilder;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// On pods: the template that they are made from.
const REVISION_LABEL: &str = "controller-revision-hash";
/// Objects that are played for at a time.
const AT_ONCE: usize = 16;
/// Load balancers get addresses from here on, and pods from there on.
const BALANCERS: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 1);
const PODS: Ipv4Addr = Ipv4Addr::new(10, 208, 0, 1);

/// Which load balancer leads to which Cluster, by namespace and name.
#[derive(Default)]
pub(crate) struct Addresses {
    given: Mutex<BTreeMap<IpAddr, (String, String)>>,
    pods: AtomicU32,
}

impl Addresses {
    pub(crate) fn cluster(&self, address: IpAddr) -> Option<(String, String)> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    fn give(&self, cluster: (String, String)) -> IpAddr {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let address = nth(BALANCERS, u32::try_from(given.len()).unwrap_or(u32::MAX));
        given.insert(address, cluster);
        address
    }

    fn of_pod(&self) -> IpAddr {
        nth(PODS, self.pods.fetch_add(1, Ordering::Relaxed))
    }
}

fn nth(first: Ipv4Addr, number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() + number))
}

struct Players {
    client: Client,
    addresses: Arc<Addresses>,
}

/// Plays until the token is cancelled.
pub(crate) fn play(client: &Client, addresses: &Arc<Addresses>, stop: &CancellationToken) {
    let players = Arc::new(Players { client: client.clone(), addresses: Arc::clone(addresses) });
    let (sender, mut changed) = mpsc::unbounded_channel();
    let kinds = [
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<Service>(&()),
    ];
    for resource in kinds {
        let (sender, kind) = (sender.clone(), resource.kind.clone());
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let watch = WatchBuilder::new(kind.clone(), api);
        watch.labels(CLUSTER_LABEL).start(stop).each(move |change| {
            if let Some(kept) = change.after.as_ref().filter(|kept| !kept.is_terminating) {
                let _ = sender.send((kind.clone(), kept.value.clone()));
            }
        });
    }
    let places = Arc::new(Semaphore::new(AT_ONCE));
    tokio::spawn(async move {
        while let Some((kind, object)) = changed.recv().await {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let players = Arc::clone(&players);
            tokio::spawn(async move {
                let played = match kind.as_str() {
                    "Service" => players.balance(&object).await,
                    kind => players.run(kind, &object).await,
                };
                // An object that went meanwhile needs nobody.
                if let Err(error) = played {
                    eprintln!("{kind} {}: {error}", object.name_any());
                }
                drop(place);
            });
        }
    });
}

impl Players {
    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn balance(&self, service: &DynamicObject) -> kube::Result<()> {
        let (spec, balancer) = (&service.data["spec"], &service.data["status"]["loadBalancer"]);
        if spec["type"] != "LoadBalancer" || !balancer["ingress"].is_null() {
            return Ok(());
        }
        let namespace = service.namespace().unwrap_or_default();
        let cluster = service.labels().get(CLUSTER_LABEL).cloned().unwrap_or_default();
        let address = self.addresses.give((namespace.clone(), cluster));
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}});
        let api = self.api::<Service>(&namespace);
        api.patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// Makes the pods of a workload and says that they run.
    async fn run(&self, kind: &str, workload: &DynamicObject) -> kube::Result<()> {
        let (spec, status) = (&workload.data["spec"], &workload.data["status"]);
        let (generation, replicas) = (workload.metadata.generation, spec["replicas"].as_u64().unwrap_or(1));
        if status["observedGeneration"].as_i64() == generation
            && status["readyReplicas"].as_u64().unwrap_or(0) == replicas
        {
            return Ok(());
        }
        let (namespace, name) = (workload.namespace().unwrap_or_default(), workload.name_any());
        let [first, second, third, fourth, ..]: [u8; 32] =
            Sha256::digest(spec["template"].to_string().as_bytes()).into();
        let revision = format!("{:08x}", u32::from_be_bytes([first, second, third, fourth]));
        let is_set = kind == "StatefulSet";
        let names: BTreeSet<String> = (0..replicas)
            .map(
                |number| {
                    if is_set { format!("{name}-{number}") } else { format!("{name}-{revision}-{number}") }
                },
            )
            .collect();
        let present = self.clear(&namespace, spec, &names, &revision).await?;
        for pod in names.difference(&present) {
            if is_set {
                self.claim(&namespace, pod, spec).await?;
            }
            self.start(workload, kind, pod, &revision).await?;
        }
        let counts = ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"];
        let mut counted: BTreeMap<&str, Value> = counts.map(|count| (count, json!(replicas))).into();
        counted.insert("observedGeneration", json!(generation));
        if is_set {
            counted.insert("currentReplicas", json!(replicas));
            counted.insert("currentRevision", json!(revision));
            counted.insert("updateRevision", json!(revision));
        }
        let (patch, parameters) = (Patch::Merge(json!({"status": counted})), PatchParams::default());
        if is_set {
            self.api::<StatefulSet>(&namespace).patch_status(&name, &parameters, &patch).await?;
        } else {
            self.api::<Deployment>(&namespace).patch_status(&name, &parameters, &patch).await?;
        }
        Ok(())
    }

    /// Removes pods that are not wanted any more. The others.
    async fn clear(
        &self,
        namespace: &str,
        spec: &Value,
        wanted: &BTreeSet<String>,
        revision: &str,
    ) -> kube::Result<BTreeSet<String>> {
        let labels = spec["selector"]["matchLabels"].as_object().into_iter().flatten();
        let selector: Vec<String> =
            labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        let (api, mut present) = (self.api::<Pod>(namespace), BTreeSet::new());
        for pod in api.list(&ListParams::default().labels(&selector.join(","))).await? {
            let is_latest = pod.labels().get(REVISION_LABEL).is_some_and(|label| label == revision);
            if is_latest && wanted.contains(&pod.name_any()) {
                present.insert(pod.name_any());
            } else {
                unless(404, api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await)?;
            }
        }
        Ok(present)
    }

    async fn claim(&self, namespace: &str, pod: &str, spec: &Value) -> kube::Result<()> {
        for template in spec["volumeClaimTemplates"].as_array().into_iter().flatten() {
            let mut claim = template.clone();
            let name = format!("{}-{pod}", template["metadata"]["name"].as_str().unwrap_or_default());
            claim["metadata"]["name"] = json!(name);
            let claim: PersistentVolumeClaim =
                serde_json::from_value(claim).map_err(kube::Error::SerdeError)?;
            let api = self.api::<PersistentVolumeClaim>(namespace);
            unless(409, api.create(&PostParams::default(), &claim).await)?;
            let capacity = &template["spec"]["resources"]["requests"];
            let status = Patch::Merge(json!({"status": {"phase": "Bound", "capacity": capacity}}));
            api.patch_status(&name, &PatchParams::default(), &status).await?;
        }
        Ok(())
    }

    async fn start(
        &self,
        workload: &DynamicObject,
        kind: &str,
        name: &str,
        revision: &str,
    ) -> kube::Result<()> {
        let namespace = workload.namespace().unwrap_or_default();
        let spec = &workload.data["spec"];
        let mut pod = spec["template"].clone();
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["labels"][REVISION_LABEL] = json!(revision);
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": kind, "name": workload.name_any(), "uid": workload.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }]);
        pod["spec"]["nodeName"] = json!("node");
        let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
        for template in claims.map(|template| &template["metadata"]["name"]) {
            let claim = format!("{}-{name}", template.as_str().unwrap_or_default());
            let volume = json!({"name": template, "persistentVolumeClaim": {"claimName": claim}});
            match pod["spec"]["volumes"].as_array_mut() {
                Some(volumes) => volumes.push(volume),
                None => pod["spec"]["volumes"] = json!([volume]),
            }
        }
        let pod: Pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
        let api = self.api::<Pod>(&namespace);
        unless(409, api.create(&PostParams::default(), &pod).await)?;
        let status = Patch::Merge(running(&pod, self.addresses.of_pod()));
        api.patch_status(name, &PatchParams::default(), &status).await?;
        Ok(())
    }
}

/// Two events of one object may be played for side by side.
fn unless<T>(expected: u16, result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == expected => Ok(()),
        other => other.map(drop),
    }
}

/// The status of a pod that runs, as kubelets write it.
fn running(pod: &Pod, address: IpAddr) -> Value {
    let now = jiff::Timestamp::now().to_string();
    let types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let conditions = types.map(|type_| json!({"type": type_, "status": "True", "lastTransitionTime": now}));
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<Value> = containers
        .map(|container| {
            json!({
                "name": container.name, "ready": true, "started": true, "restartCount": 0,
                "image": container.image, "imageID": container.image,
                "containerID": format!("containerd://{:064x}", 0),
                "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    json!({"status": {
        "phase": "Running", "startTime": now, "conditions": conditions, "containerStatuses": statuses,
        "qosClass": "Burstable", "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": address, "podIPs": [{"ip": address}],
    }})
}

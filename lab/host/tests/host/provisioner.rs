//! The provisioner with its real rights, on a real API server whose volume controller binds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_host::addons::storage::{IMMEDIATE_CLASS, PROVISIONER_USER, WAITING_CLASS};
use hangar_host::provisioner::{Options, PROVISIONER, run_with_client};
use hangar_kit::call::fault::{CallPoint, Faults, STRIKES, Strike};
use hangar_kit::client::{ClientOptions, client};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cluster::{apply, eventually, options as addon_options, testbed};

/// One test's world: a node of its own (so that provisioners of parallel tests do not see each other's volumes), a
/// namespace, storage classes, a directory.
struct World {
    client: Client,
    namespace: String,
    node: String,
    place: tempfile::TempDir,
}

/// A provisioner in this process.
struct Running {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Running {
    /// Ends it as a crash would.
    async fn drop_dead(self) {
        self.task.abort();
        self.stop.cancel();
        let _ = self.task.await;
    }
}

impl World {
    async fn new(prefix: &str) -> Self {
        let bed = testbed();
        let client = bed.client();
        for object in hangar_host::addons::objects(&addon_options()) {
            let kind = object["kind"].as_str().unwrap();
            let name = object["metadata"]["name"].as_str().unwrap();
            if kind == "StorageClass" || name == PROVISIONER_USER {
                apply(&client, &object).await;
            }
        }
        let namespace = bed.namespace(prefix);
        let node = format!("{namespace}-node");
        apply(&client, &node_object(&node)).await;
        let ready = json!({"status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "4", "memory": "4Gi", "pods": "100"},
            "capacity": {"cpu": "4", "memory": "4Gi", "pods": "100"},
        }});
        let nodes: Api<Node> = Api::all(client.clone());
        let patch = kube::api::Patch::Merge(&ready);
        nodes.patch_status(&node, &kube::api::PatchParams::default(), &patch).await.unwrap();
        Self { client, namespace, node, place: tempfile::tempdir().unwrap() }
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("volumes")
    }

    fn start(&self) -> Running {
        self.start_with(Faults::recording([]))
    }

    fn start_with(&self, faults: Faults) -> Running {
        self.start_as(PROVISIONER_USER, faults)
    }

    fn start_as(&self, user: &str, faults: Faults) -> Running {
        let config = testbed().config_for(user, &[]);
        let client = client(config, &ClientOptions::default().gate(faults)).unwrap();
        let options = Options { node: self.node.clone(), directory: self.directory(), unassigned: true };
        let stop = CancellationToken::new();
        let token = stop.clone();
        let task = tokio::spawn(async move { run_with_client(client, options, token).await.unwrap() });
        Running { task, stop }
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.client.clone())
    }

    /// A claim that only this world's provisioner answers: the scheduler is played here by naming the node.
    async fn claim(&self, name: &str, class: &str, more: &Value) -> PersistentVolumeClaim {
        let mut claim = json!({
            "metadata": {
                "name": name,
                "annotations": {"volume.kubernetes.io/selected-node": self.node},
            },
            "spec": {
                "storageClassName": class,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            claim["spec"][field] = value.clone();
        }
        let claim = serde_json::from_value(claim).unwrap();
        self.claims().create(&PostParams::default(), &claim).await.unwrap()
    }

    async fn phase(&self, name: &str) -> String {
        let claim = self.claims().get(name).await.unwrap();
        claim.status.and_then(|status| status.phase).unwrap_or_default()
    }

    async fn bound(&self, name: &str) -> PersistentVolume {
        eventually(&format!("{name} is bound"), async || self.phase(name).await == "Bound").await;
        let claim = self.claims().get(name).await.unwrap();
        self.volumes().get(&claim.spec.unwrap().volume_name.unwrap()).await.unwrap()
    }

    async fn delete_claim(&self, name: &str) {
        self.claims().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// This node's volumes and directories.
    async fn state(&self) -> (Vec<String>, Vec<String>) {
        let selector = format!("hangar.cluster.x-k8s.io/directory-node={}", self.node);
        let volumes = self.volumes().list(&ListParams::default().labels(&selector)).await.unwrap();
        let mut volumes: Vec<String> =
            volumes.items.into_iter().filter_map(|volume| volume.metadata.name).collect();
        volumes.sort();
        (volumes, entries(&self.directory()))
    }

    async fn nothing_is_left(&self) {
        let empty = (Vec::new(), Vec::new());
        let what = "no volume and no directory is left";
        eventually(what, async || self.state().await == empty).await;
    }
}

fn node_object(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
    })
}

fn entries(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn name_of(volume: &PersistentVolume) -> String {
    volume.metadata.name.clone().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_gets_a_directory_and_gives_it_back() {
    let world = World::new("directory").await;
    let provisioner = world.start();
    let claim = world.claim("data", IMMEDIATE_CLASS, &json!({})).await;
    let volume = world.bound("data").await;
    assert_eq!(name_of(&volume), format!("pvc-{}", claim.metadata.uid.unwrap()));
    let path = world.directory().join(name_of(&volume));
    assert!(path.is_dir());
    std::fs::write(path.join("content"), "kept until the claim goes").unwrap();
    world.delete_claim("data").await;
    world.nothing_is_left().await;
    provisioner.drop_dead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_that_waits_makes_nothing_before_a_pod_has_a_node() {
    let world = World::new("waiting").await;
    let provisioner = world.start();
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": WAITING_CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let claim = serde_json::from_value(claim).unwrap();
    world.claims().create(&PostParams::default(), &claim).await.unwrap();
    // A claim that came later and does not wait shows that the first one was looked at.
    world.claim("other", IMMEDIATE_CLASS, &json!({})).await;
    let other = world.bound("other").await;
    assert_eq!(world.phase("data").await, "Pending");
    assert_eq!(entries(&world.directory()), [name_of(&other)]);

    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.namespace);
    let pod = json!({
        "metadata": {"name": "user"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": world.node},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "none", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let volume = world.bound("data").await;
    assert!(world.directory().join(name_of(&volume)).is_dir());
    eventually("the pod has a node", async || {
        let pod = pods.get("user").await.unwrap();
        pod.spec.unwrap().node_name.as_deref() == Some(&world.node)
    })
    .await;
    provisioner.drop_dead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retained_data_stays() {
    let world = World::new("retained").await;
    let class = format!("{}-retain", world.namespace);
    let object = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": class},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Retain",
    });
    apply(&world.client, &object).await;
    let provisioner = world.start();
    world.claim("data", &class, &json!({})).await;
    let volume = name_of(&world.bound("data").await);
    std::fs::write(world.directory().join(&volume).join("content"), "precious").unwrap();
    world.delete_claim("data").await;
    eventually("the volume is released", async || {
        let volume = world.volumes().get(&volume).await.unwrap();
        volume.status.and_then(|status| status.phase).as_deref() == Some("Released")
    })
    .await;
    world.volumes().delete(&volume, &DeleteParams::default()).await.unwrap();
    eventually("the record goes", async || world.volumes().get_opt(&volume).await.unwrap().is_none()).await;
    provisioner.drop_dead().await;
    // Nor does the next one take it for a leftover.
    let provisioner = world.start();
    world.claim("other", IMMEDIATE_CLASS, &json!({})).await;
    world.bound("other").await;
    assert!(world.directory().join(&volume).join("content").exists());
    provisioner.drop_dead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_that_is_deleted_by_hand_keeps_its_data_while_it_is_claimed() {
    let world = World::new("by-hand").await;
    let provisioner = world.start();
    world.claim("data", IMMEDIATE_CLASS, &json!({})).await;
    let volume = name_of(&world.bound("data").await);
    world.volumes().delete(&volume, &DeleteParams::default()).await.unwrap();
    world.claim("other", IMMEDIATE_CLASS, &json!({})).await;
    world.bound("other").await;
    assert!(world.directory().join(&volume).is_dir());
    world.delete_claim("other").await;
    world.delete_claim("data").await;
    world.nothing_is_left().await;
    provisioner.drop_dead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_given_is_refused_with_an_event() {
    let world = World::new("refused").await;
    let provisioner = world.start();
    world.claim("raw", IMMEDIATE_CLASS, &json!({"volumeMode": "Block"})).await;
    let events: Api<Event> = Api::namespaced(world.client.clone(), &world.namespace);
    eventually("an event says why", async || {
        let all = events.list(&ListParams::default()).await.unwrap();
        all.items.iter().any(|event| {
            event.reason.as_deref() == Some("ProvisioningFailed")
                && event.note.as_deref() == Some("directories cannot be block devices")
        })
    })
    .await;
    assert_eq!(entries(&world.directory()), Vec::<String>::new());
    provisioner.drop_dead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leftovers_of_a_crash_go_at_the_next_start_and_content_stays() {
    let world = World::new("leftover").await;
    std::fs::create_dir_all(world.directory().join("pvc-empty")).unwrap();
    std::fs::create_dir_all(world.directory().join("pvc-full")).unwrap();
    std::fs::write(world.directory().join("pvc-full").join("content"), "somebody's").unwrap();
    let provisioner = world.start();
    eventually("only what has content is left", async || entries(&world.directory()) == ["pvc-full"]).await;
    provisioner.drop_dead().await;
}

/// Every write of a volume's life, with a crash after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_after_any_call_doubles_and_leaks_nothing() {
    let points = {
        let world = World::new("crash").await;
        let faults = Faults::recording([]);
        let provisioner = world.start_with(faults.clone());
        world.claim("data", IMMEDIATE_CLASS, &json!({})).await;
        world.bound("data").await;
        world.delete_claim("data").await;
        world.nothing_is_left().await;
        provisioner.drop_dead().await;
        faults.points()
    };
    let verbs: Vec<&str> = points.iter().map(|point| point.call.verb.as_str()).collect();
    assert_eq!(verbs, ["create", "delete", "patch"], "{points:?}");
    for point in &points {
        for strike in STRIKES {
            crash(point, strike).await;
        }
    }
}

async fn crash(recorded: &CallPoint, strike: Strike) {
    let world = World::new("crash").await;
    let what = format!("{strike:?} at {recorded}");
    // The claim is made first: its uid names the volume in the calls to come.
    let claim = world.claim("data", IMMEDIATE_CLASS, &json!({})).await;
    let volume = format!("pvc-{}", claim.metadata.uid.unwrap());
    let mut point = recorded.clone();
    if point.call.name.is_some() {
        point.call.name = Some(volume.clone());
    }
    let faults = Faults::armed([], point, strike);
    let first = world.start_with(faults.clone());
    let created = recorded.call.verb.as_str() == "create";
    if !created {
        world.bound("data").await;
        std::fs::write(world.directory().join(&volume).join("content"), "x").unwrap();
        world.delete_claim("data").await;
    }
    let _ = tokio::time::timeout(Duration::from_mins(5), faults.died()).await;
    first.drop_dead().await;
    faults.verdict().unwrap();
    let second = world.start();
    if created {
        assert_eq!(name_of(&world.bound("data").await), volume, "{what}");
        assert_eq!(world.state().await, (vec![volume.clone()], vec![volume]), "{what}");
        world.delete_claim("data").await;
    }
    world.nothing_is_left().await;
    second.drop_dead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_goes_while_the_provisioner_is_dead_leaves_nothing() {
    let world = World::new("gone").await;
    let first = world.start();
    world.claim("data", IMMEDIATE_CLASS, &json!({})).await;
    let volume = name_of(&world.bound("data").await);
    first.drop_dead().await;
    world.delete_claim("data").await;
    eventually("the claim is gone", async || world.claims().get_opt("data").await.unwrap().is_none()).await;
    assert_eq!(entries(&world.directory()), [volume]);
    let second = world.start();
    world.nothing_is_left().await;
    second.drop_dead().await;
}

/// A user who may look and not write: the directory is made, its volume is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_goes_before_its_volume_was_recorded_leaves_no_directory() {
    const READER: &str = "hangar:reader";
    let world = World::new("refusal").await;
    let kinds = json!(["persistentvolumeclaims", "persistentvolumes", "storageclasses"]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READER},
        "rules": [{"apiGroups": ["", "storage.k8s.io"], "resources": kinds, "verbs": ["list", "watch"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": READER}],
    });
    apply(&world.client, &role).await;
    apply(&world.client, &binding).await;
    let provisioner = world.start_as(READER, Faults::recording([]));
    let claim = world.claim("data", IMMEDIATE_CLASS, &json!({})).await;
    let name = format!("pvc-{}", claim.metadata.uid.unwrap());
    eventually("the directory is made", async || entries(&world.directory()) == [name.clone()]).await;
    world.delete_claim("data").await;
    world.nothing_is_left().await;
    provisioner.drop_dead().await;
}

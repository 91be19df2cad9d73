//! etcd gets room: real members are defragmented one after the other, fill up to their quota, and go on writing when their
//! volumes have grown. A driver of storage is played: it makes volumes, and says how large they are. Their file systems
//! are small at first, and so is the quota that members begin with; etcd does the rest.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_etcd::{Answer, Call, CallGate, Delivery, Verb};
use hangar_operator::Handles;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::healing::{Etcdctl, Members, settles};
use super::world::{BED, Manager, World, eventually, turn};

const FIRST: &str = "2Gi";
const GROWN: &str = "3Gi";
/// What the first file systems have room for.
const SMALL: &str = "16Mi";
/// Three quarters of that.
const SMALL_QUOTA: u64 = 12 << 20;

/// Calls that care for members, in order.
#[derive(Clone, Default)]
struct Care(Arc<Mutex<Vec<(Verb, String)>>>);

impl CallGate for Care {
    fn after(&self, call: &Call, answer: Answer, _: Duration) -> Delivery {
        let is_care = [Verb::Defragment, Verb::MoveLeader, Verb::DisarmAlarm].contains(&call.verb);
        if is_care && answer == Answer::Done {
            self.0.lock().unwrap().push((call.verb, call.about.clone()));
        }
        Delivery::Deliver
    }
}

impl Care {
    fn take(&self) -> Vec<(Verb, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn managed(care: &Care) -> Manager {
    let gate: Arc<dyn CallGate> = Arc::new(care.clone());
    Manager::start_with(&BED, |handles| Handles { etcd_gates: vec![gate], ..handles })
}

/// The driver of a storage class.
struct Driver(World);

impl Driver {
    async fn start(world: &World, class: &str, expands: bool) -> JoinHandle<()> {
        let class: StorageClass = serde_json::from_value(json!({
            "metadata": {"name": class}, "provisioner": "space.example.org", "allowVolumeExpansion": expands,
        }))
        .unwrap();
        let classes: Api<StorageClass> = Api::all(world.client.clone());
        classes.create(&PostParams::default(), &class).await.unwrap();
        let driver = Self(world.clone());
        tokio::spawn(async move {
            loop {
                // Objects come and go between a list and a patch.
                let _ = driver.play().await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        })
    }

    async fn play(&self) -> kube::Result<()> {
        let labelled = ListParams::default().labels("app.kubernetes.io/component=etcd");
        let claims = self.0.api::<PersistentVolumeClaim>();
        for claim in claims.list(&labelled).await? {
            let spec = claim.spec.clone().unwrap_or_default();
            let requests = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
            let Some(asked) = requests.get("storage").map(|size| size.0.clone()) else { continue };
            if spec.volume_name.is_none() {
                self.provision(&claim, &asked).await?;
                continue;
            }
            let status = claim.status.clone().unwrap_or_default();
            let size = if asked == FIRST { SMALL } else { &asked };
            let present = status.capacity.and_then(|capacity| Some(capacity.get("storage")?.0.clone()));
            if status.phase.as_deref() == Some("Bound") && present.as_deref() != Some(size) {
                let status = Patch::Merge(json!({"status": {"capacity": {"storage": size}}}));
                claims.patch_status(&claim.name_any(), &PatchParams::default(), &status).await?;
            }
        }
        Ok(())
    }

    async fn provision(&self, claim: &PersistentVolumeClaim, size: &str) -> kube::Result<()> {
        let name = format!("volume-{}", claim.uid().unwrap_or_default());
        let volumes: Api<PersistentVolume> = Api::all(self.0.client.clone());
        if volumes.get_opt(&name).await?.is_some() {
            return Ok(());
        }
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone()),
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": "space.example.org", "volumeHandle": name},
                "claimRef": {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": self.0.namespace,
                    "name": claim.name_any(), "uid": claim.uid(),
                },
            },
        }))
        .unwrap();
        volumes.create(&PostParams::default(), &volume).await.map(drop)
    }
}

/// The members of this quota wait in their files.
async fn has_quota(world: &World, quota: u64) {
    let maps = world.api::<ConfigMap>();
    eventually("members are to have this quota", async || {
        let map = maps.get_opt("demo-etcd").await.unwrap();
        let file = map.and_then(|map| map.data?.remove("demo-etcd-0.yaml")).unwrap_or_default();
        file.lines().any(|line| line == format!("quota-backend-bytes: {quota}"))
    })
    .await;
}

/// The member that leads, and the size of each member's database.
fn members(etcdctl: &Etcdctl) -> (String, Vec<u64>) {
    let of = |ordinal: u8| {
        let text = etcdctl.one(ordinal, "endpoint status --write-out=json").unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        told[0]["Status"].clone()
    };
    let all: Vec<Value> = (0..3).map(of).collect();
    let leader = all.iter().position(|one| one["leader"] == one["header"]["member_id"]).unwrap();
    (format!("demo-etcd-{leader}"), all.iter().map(|one| one["dbSize"].as_u64().unwrap()).collect())
}

/// Writes as much of history as this many MiB.
fn write(etcdctl: &Etcdctl, mebibytes: usize) -> Option<String> {
    (0..mebibytes * 4).find_map(|_| etcdctl.put("/history", &vec![b'x'; 1 << 18]).err())
}

fn compact(etcdctl: &Etcdctl) {
    let text = etcdctl.one(0, "endpoint status --write-out=json").unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    etcdctl.one(0, &format!("compact {} --physical", told[0]["Status"]["header"]["revision"])).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_is_defragmented_and_grows_before_writes_go_on() {
    let _turn = turn().await;
    let world = World::new("space").await;
    let driver = Driver::start(&world, &world.namespace, true).await;
    let etcd = json!({"replicas": 3, "volumeSize": FIRST, "storageClassName": world.namespace});
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": etcd})).await;
    let care = Care::default();
    let manager = managed(&care);
    has_quota(&world, SMALL_QUOTA).await;
    let running = Members::start(&world);
    let etcdctl = running.etcdctl.clone();
    settles(&world, &etcdctl, 3).await;

    // Most of it is history, which is compacted: the files stay as they are. A manager that starts asks at once.
    manager.stop().await;
    assert_eq!(write(&etcdctl, 8), None);
    compact(&etcdctl);
    let (leader, large) = members(&etcdctl);
    assert!(large.iter().all(|size| *size > SMALL_QUOTA / 2), "{large:?}");
    let manager = managed(&care);
    eventually("all members are smaller", async || {
        members(&etcdctl).1.iter().all(|size| *size < SMALL_QUOTA / 3)
    })
    .await;
    let calls = care.take();
    let of = |wanted: Verb| {
        let found = calls.iter().filter(move |(verb, _)| *verb == wanted);
        found.map(|(_, member)| member.clone()).collect::<Vec<_>>()
    };
    println!("{leader} led; {calls:?}; {large:?} bytes became {:?}", members(&etcdctl).1);
    let defragmented = of(Verb::Defragment);
    assert_eq!((defragmented.len(), defragmented.last()), (3, Some(&leader)), "{calls:?}");
    assert_eq!(calls.get(2), Some(&(Verb::MoveLeader, leader)), "before its turn it lets another one lead");
    eventually("it is on record", async || {
        world.control_plane().await.status.unwrap_or_default().etcd_last_defrag_time.is_some()
    })
    .await;

    // Now all of it is in use, and nothing can be given back.
    manager.stop().await;
    let refused = write(&etcdctl, 20).expect("it takes more than its quota");
    assert!(refused.contains("database space exceeded"), "{refused}");
    let manager = managed(&care);
    eventually("it is said", async || {
        let (_, reason, message) = world.condition("EtcdClusterHealthy").await;
        reason == "NoSpace" && message.contains("a larger spec.etcd.volumeSize")
    })
    .await;
    assert_eq!(care.take(), [], "nothing would help");

    let began = std::time::Instant::now();
    let patch = json!({"spec": {"etcd": {"volumeSize": GROWN}}});
    let api = world.api::<HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    has_quota(&world, (3 << 30) / 4 * 3).await;
    eventually("the alarm has ended", async || {
        world.condition("EtcdClusterHealthy").await.1 == "AllReady" && !care.0.lock().unwrap().is_empty()
    })
    .await;
    println!("writes go on {:?} after more was asked for", began.elapsed());
    assert!(care.take().iter().all(|(verb, _)| *verb == Verb::DisarmAlarm));
    assert_eq!(write(&etcdctl, 4), None);
    eventually("nothing is left to do", async || {
        let status = world.control_plane().await.status.unwrap_or_default();
        world.condition("EtcdVolumesSized").await.0.is_empty()
            && world.condition("RollingOut").await.1 == "NotRollingOut"
            && status.etcd_volume_size.is_some_and(|size| size.0 == GROWN)
    })
    .await;
    // The template cannot be changed, and nobody tried to.
    let sets = world.api::<k8s_openapi::api::apps::v1::StatefulSet>();
    let template = sets.get("demo-etcd").await.unwrap().spec.unwrap().volume_claim_templates.unwrap();
    assert_eq!(
        serde_json::to_value(&template[0]).unwrap()["spec"]["resources"]["requests"]["storage"],
        FIRST
    );
    manager.rest().await;
    drop(running);
    driver.abort();
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_that_cannot_expand_is_said_in_the_words_of_the_api_server() {
    let _turn = turn().await;
    let world = World::new("rigid").await;
    let driver = Driver::start(&world, &world.namespace, false).await;
    let etcd = json!({"replicas": 1, "volumeSize": FIRST, "storageClassName": world.namespace});
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": etcd})).await;
    let manager = Manager::start();
    has_quota(&world, SMALL_QUOTA).await;
    let running = Members::start(&world);
    let etcdctl = running.etcdctl.clone();
    settles(&world, &etcdctl, 1).await;
    let api = world.api::<HostedControlPlane>();
    let want = async |size: &str| {
        let patch = json!({"spec": {"etcd": {"volumeSize": size}}});
        api.patch("demo", &PatchParams::default(), &Patch::Merge(patch)).await
    };
    want(GROWN).await.unwrap();
    eventually("it is said", async || world.condition("EtcdVolumesSized").await.1 == "NotExpandable").await;
    let (_, _, message) = world.condition("EtcdVolumesSized").await;
    assert!(message.contains("must support resize"), "{message}");
    assert_eq!(world.condition("EtcdClusterHealthy").await.1, "AllReady");
    let refused = want("1Gi").await.unwrap_err().to_string();
    assert!(refused.contains("spec.etcd"), "{refused}");
    // The wish can be taken back as long as the volumes are not larger.
    want(FIRST).await.unwrap();
    eventually("nobody is asked any more", async || {
        world.condition("EtcdVolumesSized").await.1 != "NotExpandable"
    })
    .await;
    drop(running);
    driver.abort();
    manager.stop().await;
}

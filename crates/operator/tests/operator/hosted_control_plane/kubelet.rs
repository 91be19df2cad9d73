//! Real members of etcd in the places of pods, as kubelets run them, and somebody who writes to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_etcd::{BackupStore, Owner, StoreKeys, fetch, inspect, place};
use hangar_parts::{Parts, Process, Set};
use hangar_testbed::Port;
use k8s_openapi::api::core::v1::{ConfigMap, Container, PersistentVolumeClaim, Pod, Secret};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::tenant::{process, write};
use super::world::{BED, World, eventually};

const MOST: u8 = 5;

/// Runs etcd in pods, as kubelets do: a pod's member has the volume of its claim, and starts again when it ends. Pods of a
/// restore do what their containers say.
pub(super) struct Kubelet {
    world: World,
    directory: PathBuf,
    /// The ports of all members are the same, so each has an address of its own.
    network: [u8; 2],
    _port: Port,
    running: BTreeMap<String, Running>,
    /// Pods of restores that are done, by uid.
    restored: BTreeSet<String>,
    away: Away,
}

struct Running {
    pod: String,
    process: Process,
    started: Instant,
}

/// Members whose nodes are away, by number: they do not run, and their volumes are kept.
pub(super) type Away = Arc<Mutex<BTreeSet<u8>>>;

/// Where pods have the volume of their member.
const VOLUME: &str = "/var/lib/etcd/";

impl Kubelet {
    pub(super) async fn start(world: &World) -> (JoinHandle<()>, Etcdctl) {
        Self::start_with(world, Away::default()).await
    }

    pub(super) async fn start_with(world: &World, away: Away) -> (JoinHandle<()>, Etcdctl) {
        let directory = BED.logs().parent().unwrap().join(&world.namespace);
        fs::create_dir_all(&directory).unwrap();
        for suffix in ["etcd", "etcd-server", "etcd-peer"] {
            eventually("etcd's keys are minted", async || {
                world.api::<Secret>().get_opt(&format!("demo-{suffix}")).await.unwrap().is_some()
            })
            .await;
            write(world, &directory, suffix).await;
        }
        let port = Port::reserve().unwrap();
        let kubelet = Self {
            world: world.clone(),
            directory: directory.clone(),
            network: port.number().to_be_bytes(),
            _port: port,
            running: BTreeMap::new(),
            restored: BTreeSet::new(),
            away,
        };
        let hosts: Vec<String> = (0..MOST)
            .map(|ordinal| format!("{} etcd{ordinal}-demo.{}.svc", kubelet.address(ordinal), world.namespace))
            .collect();
        fs::write(directory.join("hosts"), format!("127.0.0.1 localhost\n{}\n", hosts.join("\n"))).unwrap();
        let etcdctl = Etcdctl { directory, namespace: world.namespace.clone(), patience: 5 };
        (tokio::spawn(kubelet.run()), etcdctl)
    }

    fn address(&self, ordinal: u8) -> IpAddr {
        let [high, low] = self.network;
        IpAddr::V4(Ipv4Addr::new(127, high, low, 10 + ordinal))
    }

    async fn run(mut self) {
        loop {
            // Objects come and go between a list and a patch.
            let _ = self.play().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn play(&mut self) -> kube::Result<()> {
        let labelled = ListParams::default().labels("app.kubernetes.io/component=etcd");
        let pods = self.world.api::<Pod>().list(&labelled).await?.items;
        let uids: BTreeSet<String> = pods.iter().filter_map(Pod::uid).collect();
        self.running.retain(|_, running| uids.contains(&running.pod));
        for pod in pods {
            let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
            let ordinal: u8 = name.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or_default();
            let address = self.address(ordinal);
            if self.away.lock().unwrap().contains(&ordinal) {
                self.running.remove(&name);
            } else if pod.spec.as_ref().is_some_and(|spec| spec.init_containers.is_some()) {
                if !self.restored.contains(&uid) && self.restore(&pod, ordinal).await? {
                    self.restored.insert(uid.clone());
                }
            } else if let Some(running) = self.running.get_mut(&name) {
                let has_ended = running.process.try_wait().is_ok_and(|ended| ended.is_some());
                // A back-off: members end at once while they do not find themselves in the list.
                if has_ended && running.started.elapsed() > Duration::from_secs(2) {
                    self.running.remove(&name);
                }
            } else if let Some(process) = self.member(&pod, ordinal).await? {
                self.running.insert(name.clone(), Running { pod: uid, process, started: Instant::now() });
            }
            let is_ready = self.restored.contains(&uid) || is_ready(address).await;
            let conditions: Vec<Value> = ["PodReadyToStartContainers", "Ready"]
                .iter()
                .map(|type_| {
                    let status = if *type_ != "Ready" || is_ready { "True" } else { "False" };
                    json!({"type": type_, "status": status})
                })
                .collect();
            let before = pod.status.unwrap_or_default().conditions.unwrap_or_default();
            let was_ready = before.iter().any(|found| found.type_ == "Ready" && found.status == "True");
            if before.is_empty() || was_ready != is_ready {
                let status = json!({"status": {
                    "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions,
                }});
                let pods = self.world.api::<Pod>();
                pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
            }
        }
        Ok(())
    }

    /// Starts a member with what its files say now.
    async fn member(&self, pod: &Pod, ordinal: u8) -> kube::Result<Option<Process>> {
        let name = &pod.name_any();
        let Some(volume) = self.volume(name).await? else { return Ok(None) };
        let maps = self.world.api::<ConfigMap>().get("demo-etcd").await?;
        let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let file = containers.iter().find_map(|container| argument(container, "--config-file"));
        let file = file.unwrap_or_default().replace("$(POD_NAME)", name);
        let file = file.trim_start_matches("/etc/etcd/configuration/");
        let Some(text) = maps.data.unwrap_or_default().remove(file) else { return Ok(None) };
        let place = self.directory.display();
        let text = text
            .replace("0.0.0.0", &self.address(ordinal).to_string())
            .replace("/etc/etcd/pki/ca.crt", &format!("{place}/etcd.crt"))
            .replace("/etc/etcd/pki/", &format!("{place}/etcd-"))
            .replace(VOLUME, &volume);
        let mut configuration: Value = serde_saphyr::from_str(&text).unwrap();
        configuration["unsafe-no-fsync"] = json!(true);
        let file = self.directory.join(format!("{name}.json"));
        fs::write(&file, configuration.to_string()).unwrap();
        let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcd").unwrap();
        let command = format!("exec {} --config-file={}", program.display(), file.display());
        let arguments = self.with_hosts(&command);
        Ok(Some(process(&self.world, &self.directory, name, "/usr/bin/unshare".into(), arguments)))
    }

    /// The directory of the volume that a pod has.
    async fn volume(&self, pod: &str) -> kube::Result<Option<String>> {
        let claim = self.world.api::<PersistentVolumeClaim>().get_opt(&format!("data-{pod}")).await?;
        let Some(uid) = claim.and_then(|claim| claim.uid()) else { return Ok(None) };
        let directory = self.directory.join(uid);
        fs::create_dir_all(&directory).unwrap();
        Ok(Some(format!("{}/", directory.display())))
    }

    /// Runs the containers of a pod of a restore, one after the other. If one fails, all are run again.
    async fn restore(&self, pod: &Pod, ordinal: u8) -> kube::Result<bool> {
        let name = pod.name_any();
        let Some(volume) = self.volume(&name).await? else { return Ok(false) };
        let containers = pod.spec.as_ref().and_then(|spec| spec.init_containers.clone()).unwrap_or_default();
        for mut container in containers {
            for text in container.args.iter_mut().flatten() {
                *text = text
                    .replace(VOLUME, &volume)
                    .replace("$(POD_NAME)", &name)
                    .replace("$(POD_INDEX)", &ordinal.to_string());
            }
            let path = |name: &str| PathBuf::from(argument(&container, name).unwrap_or_default());
            let done = match container.name.as_str() {
                "inspect" => inspect(&path("--data"), &path("--into")).map(drop),
                "place" => place(&path("--from"), &path("--to")).map(drop),
                "fetch" => self.fetch(&container, &path("--into")).await,
                "etcdutl" => {
                    let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcdutl").unwrap();
                    let ended = Command::new(program).args(container.args.iter().flatten()).output().unwrap();
                    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
                    Ok(())
                }
                other => panic!("a container {other}"),
            };
            if let Err(error) = done {
                println!("{name}: {}: {error}", container.name);
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn fetch(&self, container: &Container, into: &Path) -> Result<(), hangar_etcd::Error> {
        let secret = self.world.api::<Secret>().get("bucket").await.unwrap().data.unwrap_or_default();
        let config = StoreKeys::default().read(|key| secret.get(key).map(|value| value.0.as_slice()))?;
        let owner = argument(container, "--owner").unwrap();
        let (namespace, name) = owner.split_once('/').unwrap();
        let store = BackupStore::new(&config, &Owner::new(namespace, name)?)?;
        let id = argument(container, "--backup").unwrap().parse().unwrap();
        fetch(&store, &id, None, into).await.map(drop)
    }

    fn with_hosts(&self, command: &str) -> Vec<String> {
        with_hosts(&self.directory, command)
    }
}

/// The value of an argument.
fn argument(container: &Container, name: &str) -> Option<String> {
    let mut found = container.args.iter().flatten().filter_map(|text| text.strip_prefix(name));
    found.find_map(|rest| rest.strip_prefix('=')).map(str::to_owned)
}

/// Members find each other by the names of Services, which nothing serves here.
fn with_hosts(directory: &Path, command: &str) -> Vec<String> {
    let hosts = directory.join("hosts");
    let script = format!("mount --bind {} /etc/hosts && {command}", hosts.display());
    vec!["--mount".to_owned(), "sh".to_owned(), "-c".to_owned(), script]
}

/// As the readiness probe asks.
async fn is_ready(address: IpAddr) -> bool {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect((address, 2381)).await.ok()?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer.contains(" 200 OK"))
    };
    tokio::time::timeout(Duration::from_secs(1), ask).await.ok().flatten().unwrap_or_default()
}

/// Calls the members by their names, with a certificate of theirs.
#[derive(Clone)]
pub(super) struct Etcdctl {
    directory: PathBuf,
    namespace: String,
    /// How many seconds an answer may take.
    patience: u8,
}

impl Etcdctl {
    pub(super) fn impatient(&self) -> Self {
        Self { patience: 1, ..self.clone() }
    }

    pub(super) fn run(&self, command: &str) -> Result<String, String> {
        self.run_at(0..MOST, command)
    }

    /// Calls these members alone.
    pub(super) fn run_at(&self, members: std::ops::Range<u8>, command: &str) -> Result<String, String> {
        let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcdctl").unwrap();
        let endpoints: Vec<String> = members
            .map(|ordinal| format!("https://etcd{ordinal}-demo.{}.svc:2379", self.namespace))
            .collect();
        let place = self.directory.display();
        let command = format!(
            "exec {} --endpoints={} --cacert={place}/etcd.crt --cert={place}/etcd-server.crt \
             --key={place}/etcd-server.key --dial-timeout=3s --command-timeout={}s {command}",
            program.display(),
            endpoints.join(","),
            self.patience
        );
        let ended = Command::new("unshare")
            .args(with_hosts(&self.directory, &command))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if ended.status.success() { Ok(text(ended.stdout)) } else { Err(text(ended.stderr)) }
    }
}

/// Writes keys, one after the other, and remembers which were acknowledged, and when.
pub(super) struct Writer {
    stop: Arc<AtomicBool>,
    prefix: &'static str,
    acknowledged: Arc<Mutex<BTreeMap<String, Instant>>>,
    failed: Arc<Mutex<usize>>,
    thread: std::thread::JoinHandle<()>,
}

impl Writer {
    pub(super) fn start(etcdctl: &Etcdctl, prefix: &'static str) -> Self {
        let (stop, acknowledged, failed) = (
            Arc::<AtomicBool>::default(),
            Arc::<Mutex<BTreeMap<String, Instant>>>::default(),
            Arc::<Mutex<usize>>::default(),
        );
        let (etcdctl, ended) = (etcdctl.clone(), Arc::clone(&stop));
        let (told, lost) = (Arc::clone(&acknowledged), Arc::clone(&failed));
        let thread = std::thread::spawn(move || {
            for number in 0.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let key = format!("{prefix}{number:06}");
                match etcdctl.run(&format!("put {key} value")) {
                    Ok(_) => drop(told.lock().unwrap().insert(key, Instant::now())),
                    Err(_) => *lost.lock().unwrap() += 1,
                }
            }
        });
        Self { stop, prefix, acknowledged, failed, thread }
    }

    /// What was acknowledged before this moment.
    pub(super) fn acknowledged_before(&self, moment: Instant) -> BTreeSet<String> {
        let all = self.acknowledged.lock().unwrap();
        all.iter().filter(|(_, at)| **at < moment).map(|(key, _)| key.clone()).collect()
    }

    /// Waits for the next write that is acknowledged, and says how long after this moment that was.
    pub(super) async fn goes_on_after(&self, moment: Instant) -> Duration {
        let mut next = None;
        eventually("a write is acknowledged", async || {
            next = self.acknowledged.lock().unwrap().values().find(|at| **at > moment).copied();
            next.is_some()
        })
        .await;
        next.unwrap() - moment
    }

    /// How many were acknowledged, how many failed, and what was acknowledged and is missing now.
    pub(super) fn end(self, etcdctl: &Etcdctl) -> (usize, usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let there = keys(&etcdctl.run(&format!("get --prefix --keys-only {}", self.prefix)).unwrap());
        let acknowledged = self.acknowledged.lock().unwrap();
        let missing = acknowledged.keys().filter(|key| !there.contains(*key)).cloned().collect();
        (acknowledged.len(), *self.failed.lock().unwrap(), missing)
    }
}

/// The keys that etcdctl printed.
pub(super) fn keys(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// How many members vote, where that many are wanted and all is well.
pub(super) async fn settles(world: &World, etcdctl: &Etcdctl, members: usize) {
    eventually("etcd has settled", async || {
        let list = etcdctl.run("member list").unwrap_or_default();
        let voters = list.lines().filter(|line| line.contains("started") && line.ends_with("false")).count();
        let record = world.control_plane().await.annotations().get("hangar.cluster.x-k8s.io/etcd").cloned();
        let record: Value = serde_json::from_str(&record.unwrap_or_default()).unwrap_or_default();
        voters == members
            && list.lines().count() == members
            && record["members"] == json!(members)
            && record.get("joining").is_none()
            && record.get("leaving").is_none()
            && record["claims"].as_array().is_some_and(|claims| claims.iter().all(|uid| uid != ""))
            && world.condition("EtcdClusterHealthy").await.1 == "AllReady"
    })
    .await;
}

pub(super) async fn want(world: &World, members: i32) {
    let patch = json!({"spec": {"etcd": {"replicas": members}}});
    let api = world.api::<HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

//! etcd heals and changes its number of members: real members, each in the place of a pod, with the configuration and
//! the keys that were made for them, while somebody writes. Nothing that was acknowledged is missing in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_parts::{Parts, Process, Set};
use hangar_testbed::Port;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::lifecycle::claims;
use super::tenant::{process, write};
use super::world::{BED, Manager, World, eventually, turn};

const MOST: u8 = 5;

/// Runs etcd in pods, as kubelets do: a pod's member has the volume of its claim, and starts again when it ends.
pub(super) struct Kubelet {
    world: World,
    directory: PathBuf,
    /// The ports of all members are the same, so each has an address of its own.
    network: [u8; 2],
    _port: Port,
    running: BTreeMap<String, Running>,
}

struct Running {
    pod: String,
    process: Process,
    started: Instant,
}

impl Kubelet {
    pub(super) async fn start(world: &World) -> (JoinHandle<()>, Etcdctl) {
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
        };
        let hosts: Vec<String> = (0..MOST)
            .map(|ordinal| format!("{} etcd{ordinal}-demo.{}.svc", kubelet.address(ordinal), world.namespace))
            .collect();
        fs::write(directory.join("hosts"), format!("127.0.0.1 localhost\n{}\n", hosts.join("\n"))).unwrap();
        let etcdctl = Etcdctl { directory, namespace: world.namespace.clone() };
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
            if let Some(running) = self.running.get_mut(&name) {
                let has_ended = running.process.try_wait().is_ok_and(|ended| ended.is_some());
                // A back-off: members end at once while they do not find themselves in the list.
                if has_ended && running.started.elapsed() > Duration::from_secs(2) {
                    self.running.remove(&name);
                }
            } else if let Some(process) = self.member(&name, ordinal).await? {
                self.running.insert(name.clone(), Running { pod: uid, process, started: Instant::now() });
            }
            let is_ready = is_ready(address).await;
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
    async fn member(&self, name: &str, ordinal: u8) -> kube::Result<Option<Process>> {
        let claim = self.world.api::<PersistentVolumeClaim>().get_opt(&format!("data-{name}")).await?;
        let Some(volume) = claim.and_then(|claim| claim.uid()) else { return Ok(None) };
        let maps = self.world.api::<ConfigMap>().get("demo-etcd").await?;
        let Some(text) = maps.data.unwrap_or_default().remove(&format!("{name}.yaml")) else {
            return Ok(None);
        };
        let place = self.directory.display();
        let text = text
            .replace("0.0.0.0", &self.address(ordinal).to_string())
            .replace("/etc/etcd/pki/ca.crt", &format!("{place}/etcd.crt"))
            .replace("/etc/etcd/pki/", &format!("{place}/etcd-"))
            .replace("/var/lib/etcd/", &format!("{place}/{volume}/"));
        let mut configuration: Value = serde_saphyr::from_str(&text).unwrap();
        configuration["unsafe-no-fsync"] = json!(true);
        let file = self.directory.join(format!("{name}.json"));
        fs::write(&file, configuration.to_string()).unwrap();
        let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcd").unwrap();
        let command = format!("exec {} --config-file={}", program.display(), file.display());
        let arguments = self.with_hosts(&command);
        Ok(Some(process(&self.world, &self.directory, name, "/usr/bin/unshare".into(), arguments)))
    }

    fn with_hosts(&self, command: &str) -> Vec<String> {
        with_hosts(&self.directory, command)
    }
}

/// Members find each other by the names of Services, which nothing serves here.
fn with_hosts(directory: &std::path::Path, command: &str) -> Vec<String> {
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
}

impl Etcdctl {
    pub(super) fn run(&self, command: &str) -> Result<String, String> {
        self.called(&(0..MOST).collect::<Vec<_>>(), command, b"")
    }

    /// At one member alone.
    pub(super) fn one(&self, ordinal: u8, command: &str) -> Result<String, String> {
        self.called(&[ordinal], command, b"")
    }

    pub(super) fn put(&self, key: &str, value: &[u8]) -> Result<String, String> {
        self.called(&(0..MOST).collect::<Vec<_>>(), &format!("put {key}"), value)
    }

    fn called(&self, ordinals: &[u8], command: &str, input: &[u8]) -> Result<String, String> {
        let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcdctl").unwrap();
        let endpoints: Vec<String> = ordinals
            .iter()
            .map(|ordinal| format!("https://etcd{ordinal}-demo.{}.svc:2379", self.namespace))
            .collect();
        let place = self.directory.display();
        let command = format!(
            "exec {} --endpoints={} --cacert={place}/etcd.crt --cert={place}/etcd-server.crt \
             --key={place}/etcd-server.key --dial-timeout=3s --command-timeout=5s {command}",
            program.display(),
            endpoints.join(",")
        );
        let mut running = Command::new("unshare")
            .args(with_hosts(&self.directory, &command))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        running.stdin.take().unwrap().write_all(input).unwrap();
        let ended = running.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if ended.status.success() { Ok(text(ended.stdout)) } else { Err(text(ended.stderr)) }
    }
}

/// Writes keys, one after the other, and remembers which were acknowledged.
struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    failed: Arc<Mutex<usize>>,
    thread: std::thread::JoinHandle<()>,
}

impl Writer {
    fn start(etcdctl: &Etcdctl) -> Self {
        let (stop, acknowledged, failed) = (
            Arc::<AtomicBool>::default(),
            Arc::<Mutex<BTreeSet<String>>>::default(),
            Arc::<Mutex<usize>>::default(),
        );
        let (etcdctl, ended) = (etcdctl.clone(), Arc::clone(&stop));
        let (told, lost) = (Arc::clone(&acknowledged), Arc::clone(&failed));
        let thread = std::thread::spawn(move || {
            for number in 0.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let key = format!("/written/{number:06}");
                match etcdctl.run(&format!("put {key} value")) {
                    Ok(_) => drop(told.lock().unwrap().insert(key)),
                    Err(_) => *lost.lock().unwrap() += 1,
                }
            }
        });
        Self { stop, acknowledged, failed, thread }
    }

    /// What was acknowledged and is missing now.
    fn end(self, etcdctl: &Etcdctl) -> (usize, usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let there = etcdctl.run("get --prefix --keys-only /written/").unwrap();
        let there: BTreeSet<&str> = there.lines().collect();
        let acknowledged = self.acknowledged.lock().unwrap();
        let missing = acknowledged.iter().filter(|key| !there.contains(key.as_str())).cloned().collect();
        (acknowledged.len(), *self.failed.lock().unwrap(), missing)
    }
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
            && world.condition("EtcdClusterHealthy").await.1 == "AllReady"
    })
    .await;
}

async fn want(world: &World, members: i32) {
    let patch = json!({"spec": {"etcd": {"replicas": members}}});
    let api = world.api::<HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_heals_and_grows_while_somebody_writes() {
    let _turn = turn().await;
    let world = World::new("healing").await;
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 1}})).await;
    let manager = Manager::start();
    let (kubelet, etcdctl) = Kubelet::start(&world).await;
    settles(&world, &etcdctl, 1).await;
    let writer = Writer::start(&etcdctl);
    for members in [3, 5, 3] {
        let began = Instant::now();
        want(&world, members).await;
        settles(&world, &etcdctl, usize::try_from(members).unwrap()).await;
        println!("{members} members after {:?}", began.elapsed());
        assert_eq!(claims(&world).await.len(), usize::try_from(members).unwrap());
    }
    for lost in ["demo-etcd-0", "demo-etcd-2"] {
        let volumes = world.api::<PersistentVolumeClaim>();
        let claim = format!("data-{lost}");
        let before = volumes.get(&claim).await.unwrap().uid();
        let began = Instant::now();
        volumes.delete(&claim, &DeleteParams::default()).await.unwrap();
        eventually("it has another volume", async || {
            volumes.get_opt(&claim).await.unwrap().is_some_and(|found| found.uid() != before)
        })
        .await;
        settles(&world, &etcdctl, 3).await;
        println!("{lost} was replaced after {:?}", began.elapsed());
    }
    let (acknowledged, failed, missing) = writer.end(&etcdctl);
    println!("{acknowledged} writes were acknowledged, {failed} failed, {} are missing", missing.len());
    assert_eq!(missing, Vec::<String>::new());
    assert!(acknowledged > 20, "{acknowledged}");
    manager.rest().await;
    kubelet.abort();
    manager.stop().await;
}

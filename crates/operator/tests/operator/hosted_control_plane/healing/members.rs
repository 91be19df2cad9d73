//! Runs members of etcd in pods, as kubelets do: a pod's member has the volume of its claim, and starts again when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hangar_parts::{Parts, Process, Set};
use hangar_testbed::Port;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::super::actor::{broken_status, containers};
use super::super::tenant::{process, write};
use super::super::world::World;
use super::clients::{Etcdctl, with_hosts};

/// There may ever be so many.
pub(super) const MOST: u8 = 5;

/// The members of one control plane. Dropping them ends them.
pub(crate) struct Members {
    pub(crate) etcdctl: Etcdctl,
    directory: PathBuf,
    orders: Arc<Mutex<Orders>>,
    task: JoinHandle<()>,
}

/// What happens to members from outside.
#[derive(Default)]
struct Orders {
    /// They are killed, once.
    killed: BTreeSet<String>,
    /// New pods do not start with images that have this in their names.
    broken: Option<String>,
}

impl Members {
    /// None of them starts before its keys are there.
    pub(crate) fn start(world: &World) -> Self {
        let directory = world.bed.logs().parent().unwrap().join(&world.namespace);
        fs::create_dir_all(&directory).unwrap();
        let port = Port::reserve().unwrap();
        let orders = Arc::<Mutex<Orders>>::default();
        let kubelet = Kubelet {
            world: world.clone(),
            directory: directory.clone(),
            network: port.number().to_be_bytes(),
            _port: port,
            orders: Arc::clone(&orders),
            running: BTreeMap::new(),
        };
        let hosts: Vec<String> = (0..MOST)
            .map(|ordinal| format!("{} etcd{ordinal}-demo.{}.svc", kubelet.address(ordinal), world.namespace))
            .collect();
        fs::write(directory.join("hosts"), format!("127.0.0.1 localhost\n{}\n", hosts.join("\n"))).unwrap();
        let etcdctl = Etcdctl::new(directory.clone(), &world.namespace);
        Self { etcdctl, directory, orders, task: tokio::spawn(kubelet.run()) }
    }

    /// What the member of a pod was started with.
    pub(super) fn configuration(&self, pod: &str) -> Value {
        let text = fs::read_to_string(self.directory.join(format!("{pod}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Kills the member of a pod, which stays.
    pub(super) fn kill(&self, pod: &str) {
        self.orders.lock().unwrap().killed.insert(pod.to_owned());
    }

    /// From now on images with this in their names cannot be pulled.
    pub(crate) fn break_image(&self, part: &str) {
        self.orders.lock().unwrap().broken = Some(part.to_owned());
    }

    /// Nothing is broken any more.
    pub(crate) fn mend(&self) {
        self.orders.lock().unwrap().broken = None;
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Kubelet {
    world: World,
    directory: PathBuf,
    /// The ports of all members are the same, so each has an address of its own.
    network: [u8; 2],
    _port: Port,
    orders: Arc<Mutex<Orders>>,
    running: BTreeMap<String, Running>,
}

struct Running {
    pod: String,
    process: Process,
    started: Instant,
}

impl Kubelet {
    fn address(&self, ordinal: u8) -> IpAddr {
        let [high, low] = self.network;
        IpAddr::V4(Ipv4Addr::new(127, high, low, 10 + ordinal))
    }

    async fn run(mut self) {
        for suffix in ["etcd", "etcd-server", "etcd-peer"] {
            let name = format!("demo-{suffix}");
            while !matches!(self.world.api::<Secret>().get_opt(&name).await, Ok(Some(_))) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            write(&self.world, &self.directory, suffix).await;
        }
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
        let (killed, broken) = {
            let mut orders = self.orders.lock().unwrap();
            (std::mem::take(&mut orders.killed), orders.broken.clone())
        };
        for name in killed {
            if let Some(mut running) = self.running.remove(&name) {
                running.process.kill().unwrap();
            }
        }
        for pod in pods {
            let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
            let ordinal: u8 = name.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or_default();
            let address = self.address(ordinal);
            let status = pod.status.clone().unwrap_or_default();
            if let Some(running) = self.running.get_mut(&name) {
                let has_ended = running.process.try_wait().is_ok_and(|ended| ended.is_some());
                // A back-off: members end at once while they do not find themselves in the list.
                if has_ended && running.started.elapsed() > Duration::from_secs(2) {
                    self.running.remove(&name);
                }
            } else if broken.as_ref().is_some_and(|part| image(&pod).contains(part)) {
                if status.container_statuses.is_none() {
                    self.patch(&name, broken_status(&pod)).await?;
                }
                continue;
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
            let before = status.conditions.unwrap_or_default();
            let was_ready = before.iter().any(|found| found.type_ == "Ready" && found.status == "True");
            if before.is_empty() || was_ready != is_ready {
                let state = json!({"running": {"startedAt": jiff::Timestamp::now().to_string()}});
                let status = json!({"status": {
                    "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions,
                    "containerStatuses": containers(&pod, is_ready, &state),
                }});
                self.patch(&name, status).await?;
            }
        }
        Ok(())
    }

    async fn patch(&self, pod: &str, status: Value) -> kube::Result<()> {
        let pods = self.world.api::<Pod>();
        pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await.map(drop)
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
        let arguments = with_hosts(&self.directory, &command);
        Ok(Some(process(&self.world, &self.directory, name, "/usr/bin/unshare".into(), arguments)))
    }
}

fn image(pod: &Pod) -> String {
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.next().and_then(|container| container.image.clone()).unwrap_or_default()
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

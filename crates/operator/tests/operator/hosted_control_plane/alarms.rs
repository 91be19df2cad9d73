//! A real etcd, with the configuration and keys that were made for it, at the address of the pod that stands for it. It
//! becomes full, and is defragmented, and its alarm ended, when somebody has compacted it.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hangar_parts::{Parts, Process, Set};
use hangar_testbed::Port;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::actor::Actor;
use super::tenant::{process, write};
use super::world::{BED, Manager, World, eventually, spec, turn};

const QUOTA: u32 = 3 << 20;
/// Small, so that little of a full database is free.
const VALUE: usize = 1 << 16;

/// Dropping it ends it.
pub(super) struct Member {
    _process: Process,
    /// Where clients connect to.
    port: Port,
    directory: PathBuf,
    pub(super) address: IpAddr,
}

impl Member {
    async fn start(world: &World) -> Self {
        Self::start_with(world, QUOTA).await
    }

    pub(super) async fn start_with(world: &World, quota: u32) -> Self {
        // The guardian of the testbed ends what names its directory.
        let directory = BED.logs().parent().unwrap().join(&world.namespace);
        fs::create_dir_all(&directory).unwrap();
        for suffix in ["etcd", "etcd-server", "etcd-peer"] {
            eventually("its keys are minted", async || {
                world.api::<Secret>().get_opt(&format!("demo-{suffix}")).await.unwrap().is_some()
            })
            .await;
            write(world, &directory, suffix).await;
        }
        let maps = world.api::<ConfigMap>();
        eventually("its configuration is there", async || maps.get_opt("demo-etcd").await.unwrap().is_some())
            .await;
        let port = Port::reserve().unwrap();
        // Its ports are those of every member, so its address is one of its own.
        let [high, low] = port.number().to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(127, high, low, 1));
        let place = directory.display();
        let text = maps.get("demo-etcd").await.unwrap().data.unwrap()["demo-etcd-0.yaml"]
            .replace(
                "https://0.0.0.0:2379",
                &format!("https://127.0.0.1:{},https://{address}:2379", port.number()),
            )
            .replace("0.0.0.0", &address.to_string())
            .replace("/etc/etcd/pki/ca.crt", &format!("{place}/etcd.crt"))
            .replace("/etc/etcd/pki/", &format!("{place}/etcd-"))
            .replace("/var/lib/etcd/", &format!("{place}/"));
        let mut configuration: Value = serde_saphyr::from_str(&text).unwrap();
        configuration["quota-backend-bytes"] = json!(quota);
        configuration["unsafe-no-fsync"] = json!(true);
        let file = directory.join("etcd.json");
        fs::write(&file, configuration.to_string()).unwrap();
        let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcd").unwrap();
        let arguments = vec![format!("--config-file={}", file.display())];
        let running = process(world, &directory, "etcd", program, arguments);
        let member = Self { _process: running, port, directory, address };
        eventually("it serves", async || member.etcdctl(&["endpoint", "health"], b"").is_ok()).await;
        member
    }

    /// Runs a command with the certificate that is in every pod: what it prints, or why it failed.
    pub(super) fn etcdctl(&self, arguments: &[&str], input: &[u8]) -> Result<String, String> {
        let file = |name: &str| self.directory.join(name).display().to_string();
        let mut command = Command::new(Parts::from_env().unwrap().program(Set::Etcd36, "etcdctl").unwrap());
        command
            .arg(format!("--endpoints=https://localhost:{}", self.port.number()))
            .arg(format!("--cacert={}", file("etcd.crt")))
            .arg(format!("--cert={}", file("etcd-server.crt")))
            .arg(format!("--key={}", file("etcd-server.key")))
            // A busy host is no failure.
            .args(["--command-timeout=60s", "--dial-timeout=30s"])
            .args(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        running.stdin.take().unwrap().write_all(input).unwrap();
        let ended = running.wait_with_output().unwrap();
        let [printed, failed] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
        if ended.status.success() { Ok(printed) } else { Err(failed) }
    }

    /// Writes one key over and over, until there is no room for its history.
    fn fill(&self) {
        let value = vec![b'x'; VALUE];
        let refused = (0..100).find_map(|_| self.etcdctl(&["put", "key"], &value).err());
        let refused = refused.expect("it takes more than its quota");
        assert!(refused.contains("database space exceeded"), "{refused}");
    }

    /// What only people do: they say that nobody needs the history any more.
    fn compact(&self) {
        let status = self.etcdctl(&["endpoint", "status", "--write-out=fields"], b"").unwrap();
        let revision = status.lines().find_map(|line| line.strip_prefix("\"Revision\" : ")).unwrap();
        self.etcdctl(&["compact", revision, "--physical"], b"").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_etcd_is_said_and_repaired_when_its_history_may_go() {
    let _turn = turn().await;
    let world = World::new("full").await;
    let actor = Actor::start(&world);
    world.apply(spec()).await;
    let manager = Manager::start();
    let member = Member::start(&world).await;
    actor.place("demo-etcd-0", member.address);
    for component in ["etcd", "api-server", "controller-manager", "scheduler"] {
        actor.run(component);
    }
    let condition = async |type_: &str| {
        let (status, reason, _) = world.condition(type_).await;
        format!("{status} {reason}")
    };
    // Nobody serves this tenant, so there is no kubeconfig; nothing else is missing.
    eventually("all is ready", async || condition("Available").await == "False NoKubeconfig").await;
    eventually("etcd is healthy", async || condition("EtcdClusterHealthy").await == "True AllReady").await;
    manager.stop().await;

    // A manager that starts asks at once.
    member.fill();
    let manager = Manager::start();
    eventually("it is said", async || {
        let (status, reason, message) = world.condition("EtcdClusterHealthy").await;
        let is_named = message.contains("demo-etcd-0") && message.contains("etcdctl compact");
        format!("{status} {reason}") == "False NoSpace" && is_named
    })
    .await;
    assert_eq!(condition("Available").await, "False EtcdAlarm");

    member.compact();
    eventually("it is healthy again", async || condition("EtcdClusterHealthy").await == "True AllReady")
        .await;
    member.etcdctl(&["put", "key", "value"], b"").unwrap();
    assert_eq!(condition("Available").await, "False NoKubeconfig");
    manager.stop().await;
}

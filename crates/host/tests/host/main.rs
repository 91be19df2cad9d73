//! A real management cluster on this host, as root: up, use, repair, down. The host is compared before and after.
//!
//! Traffic stays inside the environment's namespaces and on its one link. The environment has a name and a state
//! directory of its own, so others on the same host are not touched.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so by panicking")]

mod addons;
mod cluster;
mod provisioner;
mod resolver;
mod snapshot;
mod workloads;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hangar_host::{Error, OneHost, OwnProgram, Progress, Step, UpOptions};
use hangar_machine::Name;
use hangar_parts::Parts;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::api::{DeleteParams, LogParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use snapshot::Snapshot;

/// Says where the time goes when the test is run with `--nocapture`.
struct Lines;

impl Progress for Lines {
    fn started(&self, _: Step) {}
    fn detail(&self, step: Step, text: &str) {
        println!("{step}: {text}");
    }
    fn done(&self, step: Step, elapsed: Duration, outcome: &str) {
        println!("{:>7.2} s  {step}: {outcome}", elapsed.as_secs_f64());
    }
    fn failed(&self, _: Step, _: Duration, error: &Error) {
        println!("{error}");
    }
}

/// Removes the environment also when the test fails.
struct Bench {
    host: OneHost,
    state: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.host.environment().delete_all();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

fn bench() -> Bench {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test makes a real machine and needs root: run it as root, it does not pass without"
    );
    let directory = tempfile::Builder::new().prefix("hangar-host-").tempdir_in("/var/tmp").unwrap();
    let state = directory.keep();
    let own = OwnProgram {
        program: env!("CARGO_BIN_EXE_hangar-host").into(),
        supervisor: "supervise".into(),
        provisioner: vec!["provision".to_owned()],
    };
    let name = Name::new(format!("test-{}", std::process::id())).unwrap();
    let host = OneHost::new(name, &state, Parts::from_env().unwrap(), own).unwrap();
    Bench { host, state }
}

#[tokio::test(flavor = "multi_thread")]
async fn up_use_repair_down() {
    let bench = bench();
    let host = &bench.host;
    let options = UpOptions::default();
    let before = Snapshot::take(host.name().as_str());
    let up = host.up(&options, Arc::new(Lines)).await.unwrap();
    assert!(up.changed);
    let status = host.status().await.unwrap();
    assert!(status.is_healthy(), "{status:#?}");
    assert_eq!(status.node_version.as_deref(), Some(options.kubernetes.version()));
    assert_eq!(status.pods.len(), 8, "{:#?}", status.pods);

    let client = hangar_host::cluster::connect(&up.kubeconfig).await.unwrap();
    workload(&client).await;

    // Nothing to repair.
    let again = host.up(&options, Arc::new(Lines)).await.unwrap();
    assert!(!again.changed);

    // As after a crash of the machine, or a restart of the host: the data is still there.
    host.management().unwrap().stop(Duration::ZERO).unwrap();
    assert!(!host.status().await.unwrap().is_healthy());
    let repaired = host.up(&options, Arc::new(Lines)).await.unwrap();
    assert!(repaired.changed);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, "default");
    claims.get("data").await.unwrap();

    let logs = tempfile::tempdir().unwrap();
    host.collect_logs(logs.path()).await.unwrap();
    assert!(logs.path().join("machines/management/kubelet.log").exists());
    assert!(std::fs::read_dir(logs.path().join("pods/kube-system")).unwrap().count() >= 8);

    assert!(host.down(Arc::new(Lines)).await.unwrap());
    assert!(!bench.state.exists(), "files were left in the state directory");
    before.assert_same(host.name().as_str());
    assert!(!host.down(Arc::new(Lines)).await.unwrap(), "there was something left to remove");
}

/// A volume, a pod that writes to it, logs, a command in it, and a load balancer that this host reaches.
async fn workload(client: &Client) {
    let etcd = json!({
        "name": "etcd",
        "image": "registry.k8s.io/etcd:3.6.16-0",
        "command": [
            "etcd", "--data-dir=/data/etcd", "--listen-client-urls=http://0.0.0.0:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
        ],
        "readinessProbe": {"tcpSocket": {"port": 2379}, "periodSeconds": 1},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    });
    let claim = create::<PersistentVolumeClaim>(
        client,
        json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
    );
    claim.await;
    create::<Pod>(
        client,
        json!({
            "metadata": {"name": "store", "labels": {"app": "store"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [etcd],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            },
        }),
    )
    .await;
    create::<Service>(
        client,
        json!({
            "metadata": {"name": "store"},
            "spec": {"type": "LoadBalancer", "selector": {"app": "store"}, "ports": [{"port": 2379}]},
        }),
    )
    .await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let address = until("the load balancer's address", || async {
        let status = services.get("store").await.ok()?.status?;
        status.load_balancer?.ingress?.first()?.ip.clone()
    })
    .await;
    // Through the load balancer, from this host.
    until("an answer through the load balancer", || async {
        let target = format!("{address}:2379");
        let connecting = tokio::net::TcpStream::connect(&target);
        tokio::time::timeout(Duration::from_secs(1), connecting).await.ok()?.ok()
    })
    .await;
    until("the pod's log", || async {
        let log = pods.logs("store", &LogParams::default()).await.ok()?;
        log.contains("serving client traffic").then_some(())
    })
    .await;
    pods.delete("store", &DeleteParams::default()).await.unwrap();
    services.delete("store", &DeleteParams::default()).await.unwrap();
    // Pods that end would count as not ready.
    until("the pod's end", || async { pods.get_opt("store").await.ok()?.is_none().then_some(()) }).await;
}

async fn create<K>(client: &Client, body: Value)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + serde::Serialize,
    K: DeserializeOwned + Clone + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), "default");
    let object: K = serde_json::from_value(body).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come about");
}

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

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hangar_host::addons::gateway;
use hangar_host::management::kubelet;
use hangar_host::resolver::COREFILE_PATH;
use hangar_host::{Error, OneHost, OwnProgram, Phase, Progress, UpOptions};
use hangar_machine::Name;
use hangar_parts::Parts;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use snapshot::Snapshot;
use workloads::Workloads;

/// Says where the time goes when the test is run with `--nocapture`, and remembers what was done.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Progress for Lines {
    fn started(&self, _: Phase) {}
    fn detail(&self, phase: Phase, text: &str) {
        println!("{phase}: {text}");
    }
    fn done(&self, phase: Phase, elapsed: Duration, outcome: &str) {
        println!("{:>7.2} s  {phase}: {outcome}", elapsed.as_secs_f64());
        self.0.lock().unwrap().push(format!("{phase}: {outcome}"));
    }
    fn failed(&self, _: Phase, _: Duration, error: &Error) {
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
    let parts = Parts::from_env().unwrap();
    let images = vec![workloads::image(&parts)];
    let options = UpOptions { gateway: true, own_images: images, ..UpOptions::default() };
    let before = Snapshot::take(host.name().as_str());
    let up = host.up(&options, None, Arc::new(Lines::default())).await.unwrap();
    assert!(up.changed);
    let status = host.status().await.unwrap();
    assert!(status.is_healthy(), "{status:#?}");
    assert_eq!(status.nodes[0].version.as_deref(), Some(options.kubernetes.version()));
    assert_eq!(status.pods.len(), 9, "{:#?}", status.pods);

    let client = hangar_host::cluster::connect(&up.kubeconfig).await.unwrap();
    let checks = Workloads::new(&parts, &up.kubeconfig, up.addresses.gateway);
    tokio::task::spawn_blocking(move || checks.all()).await.unwrap();
    claim(&client).await;

    // Nothing to repair, also for somebody who does not know what was asked for.
    let plain = UpOptions { gateway: false, ..options.clone() };
    let again = host.up(&plain, None, Arc::new(Lines::default())).await.unwrap();
    assert!(!again.changed);
    let names = host.management().unwrap().read_file(Path::new(COREFILE_PATH)).unwrap();
    assert!(String::from_utf8(names).unwrap().contains(gateway::DOMAIN), "names lead to the Gateway no more");

    // As after a crash of the machine, or a restart of the host: the data is still there.
    with_older_settings(host);
    host.management().unwrap().stop(Duration::ZERO).unwrap();
    assert!(!host.status().await.unwrap().is_healthy());
    let lines = Arc::new(Lines::default());
    let repaired = host.up(&options, None, lines.clone()).await.unwrap();
    assert!(repaired.changed);
    let started = "machine: started, kubelet configured, started again: kubelet".to_owned();
    assert!(lines.0.lock().unwrap().contains(&started), "kubelet may go on with older settings");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, "default");
    claims.get("data").await.unwrap();

    let logs = tempfile::tempdir().unwrap();
    host.collect_logs(logs.path()).await.unwrap();
    assert!(logs.path().join("machines/management/kubelet.log").exists());
    assert!(std::fs::read_dir(logs.path().join("pods/kube-system")).unwrap().count() >= 8);

    assert!(host.down(Arc::new(Lines::default())).await.unwrap());
    assert!(!bench.state.exists(), "files were left in the state directory");
    before.assert_same(host.name().as_str());
    assert!(!host.down(Arc::new(Lines::default())).await.unwrap(), "there was something left to remove");
}

/// Kubelet's settings as another `hangar` may have left them: kubelet starts with its machine, before they are replaced.
fn with_older_settings(host: &OneHost) {
    let machine = host.management().unwrap();
    let path = Path::new(kubelet::CONFIGURATION_PATH);
    let settings = String::from_utf8(machine.read_file(path).unwrap()).unwrap();
    let older = settings.replace("maxPods: 250", "maxPods: 249");
    assert_ne!(older, settings);
    machine.write_file(path, older.as_bytes(), 0o644).unwrap();
}

/// A claim that is bound at once and must outlive the machine; and the checks' namespaces are gone.
async fn claim(client: &Client) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "default");
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
    until("the claim's volume", || async {
        (claims.get("data").await.ok()?.status?.phase? == "Bound").then_some(())
    })
    .await;
    // Pods that end would count as not ready.
    let namespaces: Api<Namespace> = Api::all(client.clone());
    until("the end of the checks' namespaces", || async {
        let all = namespaces.list(&ListParams::default()).await.ok()?;
        all.iter().all(|namespace| namespace.metadata.deletion_timestamp.is_none()).then_some(())
    })
    .await;
}

async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    for _ in 0..3000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come about");
}

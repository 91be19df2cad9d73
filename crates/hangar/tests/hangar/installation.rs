//! Tests `hangar install`, and a manager in that installation.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hangar_testbed::{Options, Port, Testbed};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::json;

pub(crate) const HANGAR: &str = env!("CARGO_BIN_EXE_hangar");

/// Waits for something that must come true; the limit only ends a test that would hang.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < Duration::from_mins(5), "never: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs `hangar install` and returns what it printed.
pub(crate) fn install(bed: &Testbed, arguments: &[&str]) -> String {
    let output = try_install(bed, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn try_install(bed: &Testbed, arguments: &[&str]) -> std::process::Output {
    let kubeconfig = format!("--kubeconfig={}", bed.kubeconfig().display());
    Command::new(HANGAR).args(["install", &kubeconfig]).args(arguments).output().unwrap()
}

/// A running `hangar manager` with the rights of its own ServiceAccount.
pub(crate) struct Manager {
    child: Child,
    health: String,
    metrics: String,
    log: Arc<Mutex<String>>,
    webhooks: Port,
}

impl Manager {
    pub(crate) fn start(bed: &Testbed, name: &str, arguments: &[&str]) -> Self {
        let kubeconfig: PathBuf = bed.service_account_kubeconfig("hangar-system", "hangar-manager");
        // Not any port: the API server is told before the manager listens.
        let port = Port::reserve().unwrap();
        let mut child = Command::new(HANGAR)
            .args(["manager", "--log-format=text", "--namespace=hangar-system"])
            .args(["--health-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"])
            .arg(format!("--webhook-address=127.0.0.1:{}", port.number()))
            .arg(format!("--webhook-url=https://127.0.0.1:{}", port.number()))
            .arg(format!("--identity={name}"))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        bed.guard(child.id());
        let log = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let serving = lines
            .by_ref()
            .map(|line| {
                let line = line.unwrap();
                note(&log, &line);
                line
            })
            .find(|line| line.contains(" serving "))
            .unwrap_or_else(|| panic!("the manager ended: {}", log.lock().unwrap()));
        std::thread::spawn({
            let log = Arc::clone(&log);
            move || lines.map_while(Result::ok).for_each(|line| note(&log, &line))
        });
        let field = |name: &str| {
            let (_, rest) = serving.split_once(&format!("{name}=")).unwrap();
            rest.split_whitespace().next().unwrap().to_owned()
        };
        Self { child, health: field("health"), metrics: field("metrics"), log, webhooks: port }
    }

    /// For installations after it has written its address.
    pub(crate) fn webhook_flag(&self) -> String {
        format!("--webhook-url={}", self.webhook_url())
    }

    pub(crate) fn webhook_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.webhooks.number())
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        fetch(&self.health, path)
    }

    pub(crate) fn metrics(&self) -> String {
        fetch(&self.metrics, "/metrics").map(|(_, page)| page).unwrap_or_default()
    }

    pub(crate) async fn wait_until_ready(&self) {
        eventually(&format!("the manager is ready; its log:\n{}", self.log()), async || {
            self.get("/readyz").is_some_and(|(status, _)| status == 200)
        })
        .await;
    }

    /// The most memory that it has ever had.
    pub(crate) fn peak_mib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
    }

    /// As `kubectl delete pod` does it.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap()
    }

    /// As the kernel does it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn note(log: &Mutex<String>, line: &str) {
    let mut log = log.lock().unwrap();
    log.push_str(line);
    log.push('\n');
}

/// One plain HTTP request; nothing while nobody listens.
fn fetch(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: manager\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split_whitespace().nth(1)?.parse().ok()?, body.to_owned()))
}

/// Writes a MachineDeployment in one version, without selector, and reads it in the other.
pub(crate) async fn conversion_works(client: &Client) {
    let api = |version: &str| {
        let kind = GroupVersionKind::gvk("cluster.x-k8s.io", version, "MachineDeployment");
        Api::<DynamicObject>::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind))
    };
    let reference = json!({ "apiVersion": "example.com/v1", "kind": "Thing", "name": "x" });
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
        "metadata": { "name": "workers" },
        "spec": {
            "clusterName": "demo",
            "template": { "spec": {
                "clusterName": "demo", "nodeDrainTimeout": "90s", "infrastructureRef": reference,
                "bootstrap": { "dataSecretName": "data" },
            } },
        },
    });
    let apply = PatchParams::apply("test").force();
    let mut last = String::new();
    let start = Instant::now();
    // The API server trusts the new certificate a moment after it was written.
    while let Err(error) = api("v1beta1").patch("workers", &apply, &Patch::Apply(&object)).await {
        last = error.to_string();
        assert!(start.elapsed() < Duration::from_secs(60), "{last}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let newer = api("v1beta2").get("workers").await.unwrap_or_else(|error| panic!("{error}; before: {last}"));
    let spec = &newer.data["spec"];
    assert_eq!(spec["template"]["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 90);
    assert_eq!(spec["selector"]["matchLabels"]["cluster.x-k8s.io/deployment-name"], "workers");
    assert_eq!(
        spec["template"]["spec"]["infrastructureRef"],
        json!({ "apiGroup": "example.com", "kind": "Thing", "name": "x" })
    );
    let older = api("v1beta1").get("workers").await.unwrap();
    assert_eq!(older.data["spec"]["template"]["spec"]["infrastructureRef"], reference);
}

#[test]
fn a_second_installation_changes_nothing() {
    let bed = Testbed::start(Options::default()).unwrap();
    let first = install(&bed, &[]);
    assert!(first.lines().last().unwrap().ends_with(" created"), "{first}");
    let second = install(&bed, &[]);
    let summary = second.lines().last().unwrap();
    assert!(summary.ends_with(" unchanged") && !summary.contains("changed,"), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_of_another_provider_are_left_alone() {
    let bed = Testbed::start(Options::default()).unwrap();
    install(&bed, &["--controllers=cluster,machine"]);
    let definitions: Api<CustomResourceDefinition> = Api::all(bed.client());
    let foreign = json!({ "metadata": { "labels": {
        "app.kubernetes.io/managed-by": null, "cluster.x-k8s.io/provider": "cluster-api",
    } } });
    let name = "clusters.cluster.x-k8s.io";
    definitions.patch(name, &PatchParams::default(), &Patch::Merge(&foreign)).await.unwrap();
    let before = definitions.get(name).await.unwrap().metadata.resource_version;

    let output = try_install(&bed, &[]);
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("clusters.cluster.x-k8s.io (cluster-api)"), "{errors}");
    assert!(errors.contains("--controllers"), "{errors}");
    assert_eq!(definitions.get(name).await.unwrap().metadata.resource_version, before);
    let all = definitions.list_metadata(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(all.items.len(), 2, "nothing was installed on the way to the refusal");

    install(&bed, &["--controllers=hosted-control-plane,machine"]);
}

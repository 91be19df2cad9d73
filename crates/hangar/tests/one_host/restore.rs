//! etcd of a cluster with a worker is backed up while somebody writes, its volume is lost, and it is restored: by a real
//! kubelet, from a real S3 server. And a second cluster starts from the same backup, beside the first.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_host::sample::manifests;
use hangar_machine::net::Netns;
use hangar_parts::images::Upstream;
use hangar_parts::{Parts, Set};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::kubectl::{Kubectl, Running};
use crate::recorder::{Recorder, there};
use crate::tenant::manifest;
use crate::turn;
use crate::waiting::{eventually, is};

const CLUSTER: &str = "demo";
const CLONE: &str = "copy";
/// An address of the management machine alone, which its pods reach; in the fixture with the limits.
const STORE: &str = "192.168.255.1";
const PORT: u16 = 9000;
/// Who may use the store.
const ACCESS: (&str, &str) = ("tester", "secret-of-tester");

struct Trial {
    environment: Environment,
    management: Kubectl,
    machine: Netns,
    start: Instant,
}

#[test]
fn a_cluster_comes_back_from_its_backup_with_its_worker_and_has_a_clone() {
    let _turn = turn();
    let limits = concat!("--limits=", env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store.yaml");
    let environment = Environment::new("restore").with_cluster().with_arguments(&[limits]);
    let start = Instant::now();
    environment.succeed("up");
    let management = Kubectl::new(environment.kubeconfig());
    let machine = environment.network("machine.management");
    let trial = Trial { environment, management, machine, start };
    trial.tell("up");
    let _store = trial.store();
    let tenant = Kubectl::new(trial.environment.cluster_kubeconfig(CLUSTER));
    let recorder = Recorder::of_writes(tenant.kubeconfig());
    recorder.goes_on();
    trial.back_up();
    let promised = recorder.written();
    let backup = trial.make_backup();
    recorder.goes_on();
    recorder.close("backed up");

    trial.lose_everything();
    let (asked, began) = (Timestamp::now(), Instant::now());
    trial.restore();
    recorder.goes_on();
    println!("    writes succeed {:.1} s after the consent", began.elapsed().as_secs_f64());
    recorder.close("restored");
    trial.worker_is_back(&tenant, asked);
    let missing: Vec<_> = promised.difference(&there(&tenant)).copied().collect();
    assert!(missing.is_empty() && !promised.is_empty(), "acknowledged before the backup: {missing:?}");
    println!("    all {} writes that were acknowledged before the backup are there", promised.len());

    let pods = trial.pods(CLUSTER);
    let clone = trial.clone_of(&backup);
    let missing: Vec<_> = promised.difference(&there(&clone)).copied().collect();
    assert!(missing.is_empty(), "not in the clone: {missing:?}");
    clone.succeed(&["create", "configmap", "only-in-the-clone"]);
    let found = tenant.succeed(&["get", "configmap", "only-in-the-clone", "--ignore-not-found"]);
    assert_eq!(found, "", "the clone has an etcd of its own");
    recorder.goes_on();
    assert_eq!(trial.pods(CLUSTER), pods, "the original was left alone");
    trial.tell("a clone beside the original");
    drop(recorder);
    trial.environment.succeed("down");
    trial.environment.assert_gone();
    trial.tell("down");
}

impl Trial {
    fn tell(&self, what: &str) {
        println!("{:>7.2} s  {what}", self.start.elapsed().as_secs_f64());
    }

    /// A command in the network of the management machine.
    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.machine.path().display())).arg(program);
        command
    }

    /// A real S3 server, at an address that the machine gets for it.
    fn store(&self) -> Running {
        let added = self.inside("ip").args(["address", "add", STORE, "dev", "lo"]).status().unwrap();
        assert!(added.success());
        let root = self.environment.state.join(&self.environment.name).join("store");
        fs::create_dir_all(root.join("backups")).unwrap();
        let program = Parts::from_env().unwrap().program(Set::Versitygw, "versitygw").unwrap();
        let (access, secret) = ACCESS;
        let mut server = self.inside(program.to_str().unwrap());
        server
            .args([&format!("--access={access}"), &format!("--secret={secret}"), "--region=lab-1"])
            .args([&format!("--port={STORE}:{PORT}"), "posix"])
            .arg(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running(server.spawn().unwrap())
    }

    /// Secrets of the store and of the key, and where backups go.
    fn back_up(&self) {
        let secret = |name: &str, data: Value| {
            let metadata = json!({"name": name, "namespace": "default"});
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
        };
        let (access, key) = ACCESS;
        let bucket = json!({
            "accessKeyID": access, "secretAccessKey": key, "region": "lab-1", "bucket": "backups/etcd",
            "host": format!("http://{STORE}:{PORT}"),
        });
        let key = json!({"key": STANDARD.encode([7; 32])});
        self.management.apply(&manifest(&[secret("bucket", bucket), secret("backup-key", key)]));
        let fields = json!({"spec": {"etcd": {"backup": backup()}}}).to_string();
        self.management.succeed(&["patch", "hostedcontrolplane", CLUSTER, "--type=merge", "-p", &fields]);
    }

    /// `hangar`, as somebody runs it who reaches the store.
    fn hangar(&self, words: &[&str]) -> Result<String, String> {
        let mut command = self.inside(env!("CARGO_BIN_EXE_hangar"));
        command.args(words).arg("--kubeconfig").arg(self.management.kubeconfig());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        is(output.status.success(), || text(&output.stderr)).map(|()| text(&output.stdout))
    }

    /// Makes one and returns its id.
    fn make_backup(&self) -> String {
        let mut made = String::new();
        eventually("a backup is made", || {
            made = self.hangar(&["backup", "create", CLUSTER])?;
            Ok(())
        });
        print!("    {made}");
        self.tell("backed up under load");
        made.split_whitespace().next().unwrap().to_owned()
    }

    /// The only member's volume goes, and with it everything that the cluster knew.
    fn lose_everything(&self) {
        let claim = format!("data-{CLUSTER}-etcd-0");
        let path = "jsonpath={.metadata.uid}";
        let before = self.management.succeed(&["get", "pvc", &claim, "-o", path]);
        self.management.succeed(&["delete", "pvc", &claim, "--wait=false"]);
        self.management.succeed(&["delete", "pod", &format!("{CLUSTER}-etcd-0"), "--wait=false"]);
        eventually("its volume is gone", || {
            let now = self.management.attempt(&["get", "pvc", &claim, "-o", path])?;
            is(now != before, || now)
        });
        eventually("the loss is said", || {
            let said = self.condition(CLUSTER, "EtcdClusterHealthy")?;
            is(said == "False DataLost", || said)
        });
        self.tell("everything is lost");
    }

    /// As the documentation says: the first answer names the consent.
    fn restore(&self) {
        let refusal = self.hangar(&["backup", "restore", CLUSTER]).unwrap_err();
        assert!(refusal.contains("add --replace=demo/1"), "{refusal}");
        self.hangar(&["backup", "restore", CLUSTER, "--replace=demo/1"]).unwrap();
        self.is_restored(CLUSTER);
        self.tell("restored");
    }

    fn is_restored(&self, cluster: &str) {
        for (kind, expected) in [("EtcdRestored", "True Restored"), ("Available", "True Available")] {
            eventually("it is restored and available", || {
                let said = self.condition(cluster, kind)?;
                is(said == expected, || format!("{said}\n{}", self.environment.describe(cluster)))
            });
        }
    }

    fn condition(&self, cluster: &str, kind: &str) -> Result<String, String> {
        let one = format!("{{.status.conditions[?(@.type==\"{kind}\")]");
        let path = format!("jsonpath={one}.status}} {one}.reason}}");
        self.management.attempt(&["get", "hostedcontrolplane", cluster, "-o", &path])
    }

    /// Its kubelet reports since then, and runs a pod that it did not run before.
    fn worker_is_back(&self, tenant: &Kubectl, since: Timestamp) {
        eventually("the worker is Ready", || {
            let path = "jsonpath={range .items[*]}{.spec.renewTime} {end}";
            let renewed = tenant.attempt(&["-n", "kube-node-lease", "get", "leases", "-o", path])?;
            let is_since = |time: &str| time.parse::<Timestamp>().is_ok_and(|time| time > since);
            let nodes = tenant.attempt(&["get", "nodes", "--no-headers"])?;
            let is_ready = nodes.lines().count() == 1 && nodes.contains(" Ready ");
            is(is_ready && renewed.split_whitespace().any(is_since), || format!("{nodes}{renewed}"))
        });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "after"},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                "name": "after", "image": Upstream::Flannel.reference(),
                "command": ["/bin/sh", "-c", "while :; do sleep 1; done"],
            }]},
        });
        eventually("the cluster takes a pod", || tenant.try_apply(&pod.to_string()));
        tenant.succeed(&["wait", "--for=condition=Ready", "pod/after", "--timeout=2m"]);
        self.tell("the worker is Ready and runs a new pod");
    }

    /// Another Cluster that begins with the data of the backup, without workers.
    fn clone_of(&self, backup_id: &str) -> Kubectl {
        let sample = self.environment.sample(CLONE, Set::Kubernetes134.version());
        let mut objects = manifests(&sample).unwrap();
        objects.retain(|object| {
            let kinds = ["Secret", "Cluster", "HostedControlPlane", "OpenStackCluster"];
            kinds.iter().any(|kind| object["kind"] == *kind)
        });
        for object in objects.iter_mut().filter(|object| object["kind"] == "HostedControlPlane") {
            object["spec"]["etcd"]["backup"] = backup();
            object["spec"]["etcd"]["restore"] =
                json!({"backup": backup_id, "from": {"namespace": "default", "name": CLUSTER}});
        }
        self.management.apply(&manifest(&objects));
        self.is_restored(CLONE);
        let file = self.environment.cluster_kubeconfig(CLONE);
        let secret = format!("{CLONE}-kubeconfig");
        eventually("there is a kubeconfig", || {
            let text =
                self.management.attempt(&["get", "secret", &secret, "-o", "jsonpath={.data.value}"])?;
            fs::write(&file, STANDARD.decode(text).unwrap()).map_err(|error| error.to_string())
        });
        let clone = Kubectl::new(file);
        eventually("the clone answers", || clone.attempt(&["get", "namespaces"]).map(drop));
        clone
    }

    /// The pods of a control plane, and how often they were started.
    fn pods(&self, cluster: &str) -> String {
        let selector = format!("cluster.x-k8s.io/cluster-name={cluster}");
        let path =
            "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount};{end}";
        self.management.succeed(&["get", "pods", "-l", &selector, "-o", path])
    }
}

/// Encrypted, so that keys go along; never by itself.
fn backup() -> Value {
    json!({
        "schedule": "0 3 29 2 *", "secret": {"name": "bucket"}, "encryption": {"secretName": "backup-key"},
    })
}

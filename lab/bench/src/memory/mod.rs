//! `cargo xtask bench memory`
//!
//! Measures the memory of one idle control plane: its programs as plain processes, with the flags, variables and files
//! that the plan renders for one replica of each, one Node in its tenant, and an agent of the tunnel. What is rendered is
//! taken from the goldens of the plan, which its tests keep.
//!
//! The processes run in a network namespace of their own, where they reach each other under the names and ports that they
//! are given. Each has its files at the paths it is given, by mounts that only it sees.

mod files;
mod pods;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use hangar_parts::{Parts, Set};
use serde_json::{Value, json};

use self::files::Files;
use self::pods::{Program, objects, programs};
use super::kubectl::{Kubectl, LOOK};
use super::process::{Measured, words_of};

/// Set in the process that has the network namespace.
const INSIDE: &str = "HANGAR_BENCH_INSIDE";

/// The programs of a control plane, in the order of their start.
const CONTROL_PLANE: [&str; 5] =
    ["etcd", "kube-apiserver", "konnectivity-server", "kube-controller-manager", "kube-scheduler"];
const AGENT: &str = "konnectivity-agent";
const NODE: &str = "worker";

const PATIENCE: Duration = Duration::from_mins(1);

/// An idle control plane.
#[derive(Debug, Args)]
pub(crate) struct Memory {
    /// How long the control plane rests before its memory is read
    #[arg(long, default_value_t = 90, value_name = "SECONDS")]
    rest: u64,
    /// Another value of a variable of a program, such as `etcd:GOGC=50`
    #[arg(long = "variable", value_name = "PROGRAM:NAME=VALUE")]
    variables: Vec<String>,
    /// One more flag of a program, such as `kube-apiserver:watch-cache=false`
    #[arg(long = "flag", value_name = "PROGRAM:NAME=VALUE")]
    flags: Vec<String>,
}

impl Memory {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let parts = Parts::from_env()?;
        if std::env::var_os(INSIDE).is_none() {
            parts.ensure(&[Set::Etcd36, Set::Kubernetes134, Set::Konnectivity])?;
            let own = std::env::current_exe().context("the path of this program")?;
            let mut command = Command::new("unshare");
            command.arg("--net").arg(own).args(std::env::args_os().skip(1)).env(INSIDE, "yes");
            return Err(command.exec()).context("unshare");
        }
        network()?;
        let directory = std::env::temp_dir().join(format!("hangar-bench-memory-{}", std::process::id()));
        let logs = || format!("logs are in {}", directory.display());
        report(&self.measure(&parts, &directory).with_context(logs)?);
        let _ = std::fs::remove_dir_all(&directory);
        Ok(())
    }

    fn measure(&self, parts: &Parts, directory: &Path) -> anyhow::Result<Vec<Weight>> {
        let hosted = objects("everything_is_ready")?;
        let tenant = objects("the_tenant")?;
        let files = Files::create(directory, &[hosted.clone(), tenant.clone()].concat())?;
        let mut all = programs(&hosted);
        all.extend(programs(&tenant).into_iter().filter(|program| program.name == AGENT));
        let kubectl = Kubectl::new(parts.program(Set::Kubernetes134, "kubectl")?, files.administrator()?);
        let mut running = Vec::new();
        for name in CONTROL_PLANE {
            running.push((name, self.start(parts, &files, &all, name)?));
            match name {
                "etcd" => awaited("etcd", || is_listening("127.0.0.1:2379"))?,
                "kube-apiserver" => {
                    awaited("the API server", || kubectl.output(&["get", "--raw=/readyz"]).is_ok())?;
                }
                _ => {}
            }
        }
        kubectl.apply(&documents(tenant.iter().filter(|object| !is_refused(object))))?;
        join(&kubectl)?;
        let token = ["create", "token", AGENT, "--namespace=kube-system"];
        let audience = "--audience=system:konnectivity-server";
        files.tokens(
            AGENT,
            &kubectl.output(&[&token[..], &[audience]].concat())?,
            &kubectl.output(&token)?,
        )?;
        let agent = self.start(parts, &files, &all, AGENT)?;
        let rest = Instant::now() + Duration::from_secs(self.rest);
        while Instant::now() < rest {
            renew(&kubectl)?;
            std::thread::sleep(Duration::from_secs(10));
        }
        drop(agent);
        let mut weights = Vec::new();
        // The last to start are the first to end.
        while let Some((name, process)) = running.pop() {
            let (resident, anonymous) = process.memory().with_context(|| format!("memory of {name}"))?;
            let request =
                all.iter().find(|program| program.name == name).map(|program| program.request.clone());
            weights.push(Weight { name, resident, anonymous, request: request.unwrap_or_default() });
        }
        weights.reverse();
        Ok(weights)
    }

    fn start(&self, parts: &Parts, files: &Files, all: &[Program], name: &str) -> anyhow::Result<Measured> {
        let program = all.iter().find(|program| program.name == name);
        let program = program.with_context(|| format!("no {name} is rendered"))?;
        let of = |given: &[String]| -> Vec<String> {
            let own = given.iter().filter_map(|text| text.strip_prefix(&format!("{name}:")));
            own.map(str::to_owned).collect()
        };
        let path: PathBuf = match name {
            "etcd" => parts.program(Set::Etcd36, name)?,
            "konnectivity-server" => parts.program(Set::Konnectivity, "proxy-server")?,
            AGENT => parts.program(Set::Konnectivity, "proxy-agent")?,
            _ => parts.program(Set::Kubernetes134, name)?,
        };
        let mut command = files.command(program, &path)?;
        command.args(of(&self.flags).iter().map(|flag| format!("--{flag}")));
        if name == AGENT {
            // The server has these ports of the agent's in the same network.
            command.args(["--admin-server-port=18133", "--health-server-port=18134"]);
        }
        command.envs(of(&self.variables).iter().filter_map(|variable| variable.split_once('=')));
        Measured::start(command.stdin(Stdio::null()))
    }
}

/// The network of a namespace of our own: the addresses of load balancers lead here, all others nowhere.
fn network() -> anyhow::Result<()> {
    const SCRIPT: &str = "
        set -e
        ip link set lo up
        # An API server looks for its address where the default route leads.
        ip link add pod type veth peer name end
        ip link set pod up
        ip link set end up
        ip address add 10.0.0.7/24 dev pod
        ip route add default dev pod
        for address; do ip address add $address/32 dev lo; done
    ";
    words_of(Command::new("sh").args(["-c", SCRIPT, "network"]).args(files::ADDRESSES)).map(drop)
}

/// What a program has of the memory, in KiB.
struct Weight {
    name: &'static str,
    resident: u64,
    anonymous: u64,
    request: String,
}

#[allow(clippy::cast_precision_loss)] // For people to read.
fn report(weights: &[Weight]) {
    let mebibytes = |kibibytes: u64| kibibytes as f64 / 1024.0;
    println!("| program | anonymous memory | resident memory | request |");
    println!("|---|---|---|---|");
    for Weight { name, resident, anonymous, request } in weights {
        println!(
            "| {name} | {:.0} MiB | {:.0} MiB | {request} |",
            mebibytes(*anonymous),
            mebibytes(*resident)
        );
    }
    let sum = |of: fn(&Weight) -> u64| mebibytes(weights.iter().map(of).sum());
    println!(
        "| all | {:.0} MiB | {:.0} MiB | |",
        sum(|weight| weight.anonymous),
        sum(|weight| weight.resident)
    );
}

fn awaited(what: &str, is_there: impl Fn() -> bool) -> anyhow::Result<()> {
    let begin = Instant::now();
    while !is_there() {
        if begin.elapsed() > PATIENCE {
            bail!("{what} did not answer in {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn is_listening(address: &str) -> bool {
    std::net::TcpStream::connect(address).is_ok()
}

/// Addresses for documentation are no endpoints to anybody, and the older kind is checked.
fn is_refused(object: &Value) -> bool {
    object["kind"] == "Endpoints"
}

fn documents<'a>(objects: impl Iterator<Item = &'a Value>) -> String {
    objects.map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// A Node as a kubelet makes it.
fn join(kubectl: &Kubectl) -> anyhow::Result<()> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": NODE}},
    });
    kubectl.apply(&documents([&node].into_iter()))?;
    let status = json!({"status": {
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        "capacity": {"cpu": "2", "memory": "4Gi", "pods": "110"},
        "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
    }});
    let patch = format!("--patch={status}");
    kubectl.output(&["patch", "node", NODE, "--subresource=status", "--type=merge", &patch])?;
    renew(kubectl)
}

/// What a kubelet writes every ten seconds.
fn renew(kubectl: &Kubectl) -> anyhow::Result<()> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": NODE, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": now},
    });
    kubectl.apply(&documents([&lease].into_iter()))
}

//! `cargo xtask bench shell`
//!
//! Measures the manager with every CRD installed and no object to reconcile. Its time to ready is compared with
//! `kubectl get` of the same CRDs, which also starts, connects, and lists once; its memory with that of kube-scheduler,
//! a controller in Go that is idle too.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use hangar_parts::{Parts, Set};

use super::median;
use super::process::{Measured, words_of};

pub(super) const HEALTH: &str = "127.0.0.1:18081";
pub(super) const METRICS: &str = "127.0.0.1:18080";
const SCHEDULER_PORT: u16 = 18259;

/// The manager without work.
#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// How often each time is taken; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
    /// How long the manager rests before its memory is read
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    rest: u64,
}

impl Shell {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let parts = Parts::from_env()?;
        parts.ensure(&[Set::Etcd36, Set::Kubernetes134])?;
        let kubectl = parts.program(Set::Kubernetes134, "kubectl")?;
        let scheduler = parts.program(Set::Kubernetes134, "kube-scheduler")?;
        let hangar = build(&["--release", "--package=hangar", "--bin=hangar"])?;
        let serve = build(&["--package=hangar-testbed", "--example=serve"])?;
        let size = std::fs::metadata(&hangar).context("the binary")?.len();

        let mut bed = Measured::start(Command::new(serve).stdout(Stdio::piped()))?;
        let kubeconfig = kubeconfig_of(&mut bed)?;
        words_of(Command::new(&hangar).arg("install").args(common(&kubeconfig)))?;

        let start_floor = median_of(self.runs, || timed(Command::new(&hangar).arg("version")))?;
        let list_floor = median_of(self.runs, || {
            timed(
                Command::new(&kubectl).args(["get", "crds", "--output=name"]).env("KUBECONFIG", &kubeconfig),
            )
        })?;
        let ready = median_of(self.runs, || {
            let mut manager = Measured::start(&mut manager(&hangar, &kubeconfig))?;
            manager.seconds_until_ready(HEALTH, "/readyz")
        })?;
        let rest = Duration::from_secs(self.rest);
        let (resident, anonymous) = resting(&mut manager(&hangar, &kubeconfig), rest)?;
        let (peer_resident, peer_anonymous) = resting(&mut idle_scheduler(&scheduler, &kubeconfig), rest)?;

        println!("| measure | value | beside it | ratio |");
        println!("|---|---|---|---|");
        println!("| size of the binary | {:.1} MiB | | |", mebibytes(size));
        println!("| process start (`hangar version`) | {:.0} ms | | |", start_floor * 1000.0);
        println!(
            "| manager, start to ready | {:.0} ms | `kubectl get crds` {:.0} ms | {:.2} |",
            ready * 1000.0,
            list_floor * 1000.0,
            ready / list_floor
        );
        for (name, ours, theirs) in
            [("resident", resident, peer_resident), ("anonymous", anonymous, peer_anonymous)]
        {
            let (ours, theirs) = (mebibytes(ours * 1024), mebibytes(theirs * 1024));
            println!(
                "| manager at rest, {name} memory | {ours:.1} MiB | kube-scheduler {theirs:.1} MiB | {:.2} |",
                ours / theirs
            );
        }
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss)] // For people to read.
pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

pub(super) fn common(kubeconfig: &Path) -> Vec<String> {
    vec![format!("--kubeconfig={}", kubeconfig.display()), "--webhook-url=https://127.0.0.1:19443".to_owned()]
}

pub(super) fn manager(hangar: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(hangar);
    command
        .args(["manager", "--namespace=hangar-system", "--webhook-address=127.0.0.1:19443"])
        .args([format!("--health-address={HEALTH}"), format!("--metrics-address={METRICS}")])
        .args(common(kubeconfig))
        .stderr(Stdio::null());
    command
}

fn idle_scheduler(program: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--secure-port={SCHEDULER_PORT}"))
        .args(["--bind-address=127.0.0.1", "--leader-elect=false"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Memory after a rest.
fn resting(command: &mut Command, rest: Duration) -> anyhow::Result<(u64, u64)> {
    let process = Measured::start(command)?;
    std::thread::sleep(rest);
    process.memory()
}

/// Builds with cargo and returns the program's path.
pub(super) fn build(arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let output = Command::new("cargo")
        .args(["build", "--locked", "--message-format=json"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo build")?;
    if !output.status.success() {
        bail!("cargo build {} failed", arguments.join(" "));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
        .context("cargo built no program")
}

pub(super) fn kubeconfig_of(bed: &mut Measured) -> anyhow::Result<PathBuf> {
    let output = bed.child().stdout.take().context("the testbed has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let path = line.trim().strip_prefix("export KUBECONFIG=").context("the testbed printed no kubeconfig")?;
    Ok(PathBuf::from(path))
}

fn timed(command: &mut Command) -> anyhow::Result<f64> {
    let start = Instant::now();
    words_of(command)?;
    Ok(start.elapsed().as_secs_f64())
}

fn median_of(runs: u16, mut take: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let times = (0..runs).map(|_| take()).collect::<anyhow::Result<Vec<f64>>>()?;
    median(times.into_iter())
}

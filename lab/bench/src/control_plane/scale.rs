//! The manager with many control planes and without pods: its memory, and what it calls at rest.
//!
//! The manager is the real program, release profile, against a real API server. The actor of the testbed's example
//! `control_planes` plays all others: pods run at once, and tenants keep in memory what is applied. Everything runs in
//! a network namespace of its own (`namespace.rs`).
//!
//! Sizes are made one after the other in the same manager, each from the one before, as a management cluster grows.
//! Nothing is counted before every control plane is Available and Ready, and all must still be so at the end.
//!
//! What is read in a tenant becomes rare while nothing changes there: the looks after the first come after 20 s, 40 s
//! and so on, the fifth after 300 s in all and the sixth after 620 s. By default calls are counted between these two;
//! looks of a control plane that has rested for hours are to be added to them.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use hangar_parts::{Parts, Set};

use super::counts::Counts;
use super::namespace::run_inside;
use super::state::{check_there, told, wait_until_there};
use crate::kubectl::Kubectl;
use crate::process::{Measured, page, words_of};
use crate::shell::{self, HEALTH, METRICS, build, kubeconfig_of, mebibytes};

/// Applied by one call of kubectl.
const CHUNK: u64 = 50;

#[derive(Debug, Args)]
pub(super) struct Scale {
    /// How many control planes, one size after the other
    #[arg(long, value_delimiter = ',', default_value = "1,100,1000", value_name = "COUNTS")]
    sizes: Vec<u64>,
    /// Nodes of each tenant
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    nodes: u32,
    /// How long all are at their goal before calls are counted
    #[arg(long, default_value_t = 330, value_name = "SECONDS")]
    settle: u64,
    /// How long calls are counted
    #[arg(long, default_value_t = 200, value_name = "SECONDS")]
    rest: u64,
}

/// What was measured with so many control planes.
struct Row {
    size: u64,
    /// From the first apply to the last that is at its goal.
    made: f64,
    resident: u64,
    anonymous: u64,
    /// Most of them are connections to tenants.
    files: String,
    calls: Counts,
    minutes: f64,
}

impl Scale {
    /// Builds what is needed and goes on in a network namespace.
    pub(super) fn begin() -> anyhow::Result<()> {
        Parts::from_env()?.ensure(&[Set::Etcd36, Set::Kubernetes134])?;
        let hangar = build(&["--release", "--package=hangar", "--bin=hangar"])?;
        let actor = build(&["--release", "--package=hangar-testbed", "--example=control_planes"])?;
        run_inside([&hangar, &actor])
    }

    /// Inside the namespace.
    pub(super) fn run(&self, hangar: &Path, actor: &Path) -> anyhow::Result<()> {
        let parts = Parts::from_env()?;
        let mut world =
            Measured::start(Command::new(actor).arg(self.nodes.to_string()).stdout(Stdio::piped()))?;
        let kubeconfig = kubeconfig_of(&mut world)?;
        let kubectl = Kubectl::new(parts.program(Set::Kubernetes134, "kubectl")?, kubeconfig.clone());
        words_of(Command::new(hangar).arg("install").args(shell::common(&kubeconfig)))?;
        let log = std::env::temp_dir().join(format!("hangar-bench-manager-{}.log", std::process::id()));
        let mut command = shell::manager(hangar, &kubeconfig);
        command.stderr(File::create(&log).context("the manager's log")?);
        let mut manager = Measured::start(&mut command)?;
        manager.seconds_until_ready(HEALTH, "/readyz")?;
        let mut rows = Vec::new();
        let mut present = 0;
        for &size in &self.sizes {
            let row = self.measured(&kubectl, &manager, present, size);
            rows.push(row.with_context(|| format!("{size} control planes; the log is {}", log.display()))?);
            present = size;
        }
        let _ = std::fs::remove_file(&log);
        print(&rows, self.nodes);
        Ok(())
    }

    fn measured(
        &self,
        kubectl: &Kubectl,
        manager: &Measured,
        present: u64,
        size: u64,
    ) -> anyhow::Result<Row> {
        let start = Instant::now();
        let numbers: Vec<u64> = (present..size).collect();
        for chunk in numbers.chunks(usize::try_from(CHUNK)?) {
            // A fresh manager is ready a moment before the API server trusts its webhooks.
            kubectl.apply_patiently(&manifests(chunk))?;
        }
        wait_until_there(size)?;
        let made = start.elapsed().as_secs_f64();
        eprintln!("{size} control planes are at their goal after {made:.0} s");
        thread::sleep(Duration::from_secs(self.settle));
        let (before, start) = (counts()?.0, Instant::now());
        thread::sleep(Duration::from_secs(self.rest));
        let (after, state) = counts()?;
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        check_there(size, &state)?;
        let (resident, anonymous) = manager.memory()?;
        let files = open_files(&page(METRICS, "/metrics")?)?;
        let calls = after.since(&before);
        let row = Row { size, made, resident, anonymous, files, calls, minutes };
        eprintln!("{}", details(&row));
        Ok(row)
    }
}

fn counts() -> anyhow::Result<(Counts, serde_json::Value)> {
    let state = told()?;
    Ok((Counts::of(&page(METRICS, "/metrics")?, &state)?, state))
}

fn open_files(metrics: &str) -> anyhow::Result<String> {
    let count = metrics.lines().find_map(|line| line.strip_prefix("process_open_fds "));
    count.map(str::to_owned).context("the manager does not tell its open files")
}

/// A Cluster and a control plane for each number, each in a namespace of its own.
fn manifests(numbers: &[u64]) -> String {
    let mut text = String::new();
    for number in numbers {
        let _ = write!(
            text,
            "apiVersion: v1
kind: Namespace
metadata:
  name: tenant-{number}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: cluster-{number}
  namespace: tenant-{number}
spec:
  clusterNetwork:
    pods:
      cidrBlocks: [10.244.0.0/16]
    services:
      cidrBlocks: [10.96.0.0/16]
    serviceDomain: cluster.local
  controlPlaneRef:
    apiGroup: controlplane.cluster.x-k8s.io
    kind: HostedControlPlane
    name: cluster-{number}
---
apiVersion: controlplane.cluster.x-k8s.io/v1alpha1
kind: HostedControlPlane
metadata:
  name: cluster-{number}
  namespace: tenant-{number}
spec:
  version: v1.34.10
  replicas: 1
  etcd:
    replicas: 1
---
"
        );
    }
    text
}

#[allow(clippy::cast_precision_loss)] // For people to read.
fn rate(row: &Row, count: u64) -> f64 {
    count as f64 / row.size as f64 / row.minutes
}

fn print(rows: &[Row], nodes: u32) {
    println!(
        "| control planes, {nodes} Nodes each | made in | resident | anonymous | open files | writes | reads here \
         | reads in tenants | reads of etcd |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        let reads = |whom| rate(row, row.calls.sum(whom, false));
        let writes: u64 = ["management", "tenant", "etcd"].map(|whom| row.calls.sum(whom, true)).iter().sum();
        println!(
            "| {} | {:.0} s | {:.1} MiB | {:.1} MiB | {} | {writes} | {:.2} | {:.2} | {:.2} |",
            row.size,
            row.made,
            mebibytes(row.resident * 1024),
            mebibytes(row.anonymous * 1024),
            row.files,
            reads("management"),
            reads("tenant"),
            reads("etcd"),
        );
    }
}

/// Every call that was made at rest.
fn details(row: &Row) -> String {
    let mut text = format!(
        "{} control planes: {:.1} MiB resident, {:.1} MiB anonymous; at rest, in {:.1} minutes, and per control plane and \
         minute:",
        row.size,
        mebibytes(row.resident * 1024),
        mebibytes(row.anonymous * 1024),
        row.minutes,
    );
    for (call, count) in row.calls.all() {
        let _ = write!(text, "\n  {count:6}  {:.3}  {call}", rate(row, count));
    }
    text
}

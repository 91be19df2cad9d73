//! Control planes on one host, with real pods: from `kubectl apply` to Available, beside the floor.
//!
//! The floor is that of `bench cluster` without its worker: the same objects with the same certificates, from finished
//! manifests, by somebody who waits for one result after the other: a quorum of etcd is Ready, then an API server is
//! Ready and answers at its address. Several at once are applied together on both sides, and the last one counts.
//!
//! Each case begins with control planes that warm the caches and from which its floor is recorded.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use hangar_parts::{Parts, Set};

use crate::cluster::kubernetes_version;
use crate::kubectl::Kubectl;
use crate::median;
use crate::place::Place;
use crate::process::load;
use crate::recorded::{self, Recorded, objects_of};
use crate::shell::build;
use crate::watch::{Watches, holds, runs};

const NAME: &str = "bench-control-plane";
const NAMESPACE: &str = "default";
const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
const CONTROL_PLANES: &str = "hostedcontrolplanes";
/// What must be gone after a deletion.
const LEFT: &str = "clusters,hostedcontrolplanes,statefulsets,deployments,pods,secrets";
/// Only for a run that will never end.
const PATIENCE: Duration = Duration::from_mins(10);
/// What was removed still costs something for a moment.
const REST: Duration = Duration::from_secs(5);

/// So that ten control planes fit on two cores; on both sides, because the floor is recorded from ours.
const REQUESTS: &str = "resources: { requests: { cpu: 10m } }";

const CASES: [Case; 3] = [
    Case { word: "1", title: "1 API server, 1 member of etcd", replicas: 1, count: 1 },
    Case { word: "3x3", title: "3 API servers, 3 members of etcd", replicas: 3, count: 1 },
    Case { word: "10", title: "10 control planes at once, 1 and 1 each", replicas: 1, count: 10 },
];

#[derive(Debug, Args)]
pub(super) struct Times {
    /// How often each side of a case is run; medians count
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=20))]
    runs: u16,
    /// Only these cases
    #[arg(long, value_delimiter = ',', value_parser = ["1", "3x3", "10"], default_value = "1,3x3,10")]
    cases: Vec<String>,
    /// Measure the release profile
    #[arg(long)]
    release: bool,
    /// Where the environment lives meanwhile; its own files are removed before and after
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/lib/hangar-bench-control-plane")]
    state: PathBuf,
    /// Addresses that nothing else on this host uses
    #[arg(long, value_name = "CIDR", default_value = "100.75.0.0/20")]
    range: String,
}

/// Control planes that are applied together, with as many API servers as members of etcd.
struct Case {
    word: &'static str,
    title: &'static str,
    replicas: usize,
    count: usize,
}

impl Times {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let parts = Parts::from_env()?;
        parts.ensure(&[Set::Kubernetes134])?;
        let profile: &[&str] = if self.release { &["--release"] } else { &[] };
        let program = build(&[&["--package=hangar", "--bin=hangar"], profile].concat())?;
        let place = Place::new(&self.state, NAME, &program, parts.program(Set::Kubernetes134, "kubectl")?)?;
        place.up(&["--no-cluster", "--range", &self.range])?;
        let version = kubernetes_version(&place.cloud_configuration())?;
        let mut lines = Vec::new();
        for case in CASES.into_iter().filter(|case| self.cases.iter().any(|word| word == case.word)) {
            let side = Side { place: &place, case: &case, version: &version };
            lines.push(side.measured(self.runs).inspect_err(|_| place.show(&name(0)))?);
        }
        println!("| apply to Available | Hangar | by hand | ratio |\n|---|---|---|---|");
        println!("{}", lines.join("\n"));
        Ok(())
    }
}

/// Both sides of one case.
struct Side<'a> {
    place: &'a Place,
    case: &'a Case,
    version: &'a str,
}

impl Side<'_> {
    /// A line of the table.
    fn measured(&self, runs: u16) -> anyhow::Result<String> {
        let title = self.case.title;
        eprintln!("{title}: the floor is recorded");
        self.hangar("Ready")?;
        let recorded = self.recorded()?;
        self.remove()?;
        let (mut ours, mut floors) = (Vec::new(), Vec::new());
        for run in 1..=runs {
            let is_floor_first = run % 2 == 0;
            for is_floor in [is_floor_first, !is_floor_first] {
                thread::sleep(REST);
                let load = load();
                let seconds = if is_floor { self.floor(&recorded)? } else { self.hangar("Available")? };
                let side = if is_floor { "by hand" } else { "Hangar" };
                eprintln!("{title}, run {run}, {side}, load before {load:.1}: {seconds:.1} s");
                if is_floor {
                    recorded::remove(self.place.management(), NAMESPACE, CLUSTER_LABEL, INSTANCE_LABEL)?;
                    floors.push(seconds);
                } else {
                    self.remove()?;
                    ours.push(seconds);
                }
            }
        }
        let (ours, floor) = (median(ours.into_iter())?, median(floors.into_iter())?);
        Ok(format!("| {title} | {ours:.1} s | {floor:.1} s | {:.2} |", ours / floor))
    }

    fn names(&self) -> impl Iterator<Item = String> {
        (0..self.case.count).map(name)
    }

    /// Hangar's side: seconds until a condition of all is true.
    fn hangar(&self, condition: &str) -> anyhow::Result<f64> {
        let management = self.place.management();
        let mut watches = Watches::new();
        watches.add(CONTROL_PLANES, management, &["--namespace", NAMESPACE])?;
        Watches::wait_until_there();
        let manifests: String = self.names().map(|name| self.manifests(&name)).collect();
        let start = Instant::now();
        management.apply(&manifests)?;
        let mut waiting: Vec<String> = self.names().collect();
        loop {
            let event =
                watches.next(start + PATIENCE).with_context(|| format!("{waiting:?}: {condition}"))?;
            if holds(&event.object, condition) {
                waiting.retain(|name| event.object["metadata"]["name"] != **name);
            }
            if waiting.is_empty() {
                return Ok(event.at.saturating_duration_since(start).as_secs_f64());
            }
        }
    }

    fn recorded(&self) -> anyhow::Result<Vec<(String, Recorded)>> {
        let management = self.place.management();
        let recorded = self.names().map(|name| {
            let objects = objects_of(management, NAMESPACE, &format!("{CLUSTER_LABEL}={name}"))?;
            Ok((name.clone(), Recorded::of(&name, &objects)?))
        });
        recorded.collect()
    }

    /// By hand: seconds until the last API server answers.
    fn floor(&self, recorded: &[(String, Recorded)]) -> anyhow::Result<f64> {
        let management = self.place.management();
        let mut waits = Vec::new();
        for (name, recorded) in recorded {
            let path = self.place.tenant_kubeconfig(name);
            fs::write(&path, &recorded.kubeconfig).context("the tenant's kubeconfig")?;
            let mut watches = Watches::new();
            let selector = format!("{CLUSTER_LABEL}={name}");
            watches.add("pods", management, &["--namespace", NAMESPACE, "--selector", &selector])?;
            waits.push((watches, management.with(&path), recorded));
        }
        Watches::wait_until_there();
        let grounds: Vec<&str> = recorded.iter().map(|(_, recorded)| recorded.ground.as_str()).collect();
        let start = Instant::now();
        management.apply(&grounds.join("\n---\n"))?;
        let quorum = self.case.replicas / 2 + 1;
        thread::scope(|scope| {
            let running: Vec<_> = waits
                .into_iter()
                .map(|(watches, tenant, recorded)| {
                    scope.spawn(move || by_hand(management, &watches, &tenant, recorded, quorum))
                })
                .collect();
            let mut last = start;
            for thread in running {
                let Ok(answered) = thread.join() else { bail!("a thread of the floor panicked") };
                last = last.max(answered?);
            }
            Ok(last.saturating_duration_since(start).as_secs_f64())
        })
    }

    /// Removes Hangar's control planes and waits until nothing of them is left.
    fn remove(&self) -> anyhow::Result<()> {
        let management = self.place.management();
        management.output(&["delete", "clusters", "--all", "--namespace", NAMESPACE, "--timeout=10m"])?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left =
                management.output(&["get", LEFT, "-n", NAMESPACE, "-l", CLUSTER_LABEL, "--output=name"])?;
            if left.trim().is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("after the deletion there is still: {left}");
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn manifests(&self, name: &str) -> String {
        let (version, replicas) = (self.version, self.case.replicas);
        format!(
            "apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: {name}
  namespace: {NAMESPACE}
spec:
  clusterNetwork:
    pods:
      cidrBlocks: [10.244.0.0/16]
    services:
      cidrBlocks: [10.96.0.0/12]
    serviceDomain: cluster.local
  controlPlaneRef:
    apiGroup: controlplane.cluster.x-k8s.io
    kind: HostedControlPlane
    name: {name}
---
apiVersion: controlplane.cluster.x-k8s.io/v1alpha1
kind: HostedControlPlane
metadata:
  name: {name}
  namespace: {NAMESPACE}
spec:
  version: {version}
  replicas: {replicas}
  deployment:
    apiServer: {{ {REQUESTS} }}
    controllerManager: {{ {REQUESTS} }}
    scheduler: {{ {REQUESTS} }}
  etcd:
    replicas: {replicas}
    {REQUESTS}
---
"
        )
    }
}

fn name(number: usize) -> String {
    format!("bench-{number}")
}

/// What is done for one control plane after its first objects were applied. When its API server answered.
fn by_hand(
    management: &Kubectl,
    watches: &Watches,
    tenant: &Kubectl,
    recorded: &Recorded,
    quorum: usize,
) -> anyhow::Result<Instant> {
    let deadline = Instant::now() + PATIENCE;
    let wait_for = |container: &str, count: usize| -> anyhow::Result<()> {
        let mut ready = std::collections::BTreeSet::new();
        while ready.len() < count {
            let pod = watches.next(deadline).with_context(|| format!("{container} to be Ready"))?.object;
            if runs(&pod, container) && holds(&pod, "Ready") {
                ready.insert(pod["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            }
        }
        Ok(())
    };
    wait_for("etcd", quorum)?;
    management.apply(&recorded.api_server)?;
    wait_for("kube-apiserver", 1)?;
    let answered = tenant.wait_until_serving(PATIENCE)?;
    management.apply(&recorded.controllers)?;
    Ok(answered)
}

//! `cargo xtask bench cluster`
//!
//! Measures the time from `kubectl apply` of the sample to an API server that answers, and to a Ready worker, and
//! compares it with the floor: the same objects in the same management cluster and the same server in the same cloud,
//! made by a script from finished manifests (`floor.rs` says in which order). The floor has no controller, mints no
//! certificate and looks up nothing.
//!
//! `hangar up` makes the environment and a first cluster, which warms the caches, and from which the floor is recorded
//! (`recording.rs`). Then both sides run in turn, and the order alternates, so that other load of the host affects
//! both. Making and removing environments and clusters counts on neither side.
//!
//! Times are taken when events of watches arrive, not from the objects, which have whole seconds only. The same
//! processes watch both sides.
//!
//! The environment is removed with the bench, also when that is interrupted or killed: a process of its own waits for
//! the end of it (`../place.rs`).

mod cloud;
mod floor;
mod hangar;
mod recording;
mod report;
mod timeline;

pub(super) use cloud::kubernetes_version;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use hangar_parts::{Parts, Set};

use self::cloud::Cloud;
use self::floor::Floor;
use self::hangar::Hangar;
use self::recording::Recording;
use self::timeline::Timeline;
use super::place::Place;
use super::process::load;
use super::shell::build;

/// The sample's cluster.
const CLUSTER: &str = "demo";
/// Where the sample is.
const NAMESPACE: &str = "default";
/// Everything of a cluster has it.
const SELECTOR: &str = "cluster.x-k8s.io/cluster-name=demo";
/// The volumes of its etcd.
const CLAIMS: &str = "app.kubernetes.io/instance=demo";
/// The environment.
const NAME: &str = "bench-cluster";
/// Only for a run that will never end.
const PATIENCE: Duration = Duration::from_mins(5);
/// What was removed still costs something for a moment.
const REST: Duration = Duration::from_secs(5);

/// A cluster, from apply to a Ready worker.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// How often each is run; medians count
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=20))]
    runs: u16,
    /// Measure the release profile
    #[arg(long)]
    release: bool,
    /// Where the environment lives meanwhile; its own files are removed before and after
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/lib/hangar-bench-cluster")]
    state: PathBuf,
    /// Addresses that nothing else on this host uses
    #[arg(long, value_name = "CIDR", default_value = "100.74.0.0/20")]
    range: String,
}

/// One run of one side.
struct Run {
    /// Of the host, in the minute before.
    load: f64,
    timeline: Timeline,
}

impl Cluster {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let parts = Parts::from_env()?;
        parts.ensure(&[Set::Kubernetes134])?;
        let profile: &[&str] = if self.release { &["--release"] } else { &[] };
        let program = build(&[&["--package=hangar", "--bin=hangar"], profile].concat())?;
        let kubectl = parts.program(Set::Kubernetes134, "kubectl")?;

        let place = Place::new(&self.state, NAME, &program, kubectl)?;
        eprintln!("a first cluster, from which the floor is recorded");
        place.up(&["--range", &self.range])?;
        let cloud = Cloud::of(&place.cloud_configuration())?;
        let recording = Recording::of(&place, &cloud)?;
        eprintln!("{recording}");
        let hangar = Hangar::new(&place, &cloud, &recording);
        hangar.remove()?;
        let floor = Floor::new(&place, &cloud, &recording);

        let (mut ours, mut floors) = (Vec::new(), Vec::new());
        for run in 1..=self.runs {
            let is_floor_first = run % 2 == 0;
            for is_floor in [is_floor_first, !is_floor_first] {
                thread::sleep(REST);
                let load = load();
                let timeline = if is_floor { floor.run() } else { hangar.run() };
                let timeline = timeline.inspect_err(|_| place.show(CLUSTER))?;
                let side = if is_floor { "by hand" } else { "Hangar" };
                eprintln!("run {run}, {side}, load before {load:.1}: {timeline}");
                let run = Run { load, timeline };
                if is_floor {
                    floor.remove()?;
                    floors.push(run);
                } else {
                    hangar.remove()?;
                    ours.push(run);
                }
            }
        }
        report::print(&ours, &floors)
    }
}

//! `up`: makes a cluster whose pods all run, phase by phase, from nothing or from what a killed run or a reboot left.
//!
//! Every phase checks first and does only what is missing. What cannot be seen, such as what a service read when it
//! started, is recorded beside the machine after it was done: so a killed run leaves a record that is too old, never
//! one that is too new.
//!
//! Phases run one after the other until the add-ons are applied, which takes a moment and which pods wait for. From
//! there three chains run side by side: controllers, node and pods; the embedded cloud; and the [`Payload`], which at
//! first keeps the API server busy, even before it is ready for others, and needs a Ready node only at the end. With
//! several nodes their machines start beside the control plane, and the payload waits until all are Ready.
//!
//! A further phase is a variant of `Phase` with a name, a function here that returns `Done`, and a line in the chain it
//! belongs to, after the phases it needs.

mod asked;
mod ground;
mod machine;
mod preflight;
mod static_pods;
mod tenant;
mod workloads;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::Notify;

use crate::addresses::Addresses;
use crate::cloud::{Access, CloudOptions};
use crate::cluster::{self, ExpectedPods};
use crate::error::Result;
use crate::management::NAME;
use crate::one_host::{OneHost, UpOptions};
use crate::payload::{Cluster, Payload};
use crate::phases::{Done, Runner};
use crate::progress::{Phase, Progress};
use crate::sample::{Sample, manifests};

/// An API server takes in a webhook and its certificate within seconds, on a busy host within a minute.
const TAKING_PATIENCE: Duration = Duration::from_mins(4);

/// A cluster that is up.
#[derive(Debug, Clone)]
pub struct Up {
    /// The kubeconfig to use from the host.
    pub kubeconfig: PathBuf,
    /// Addresses on the private network.
    pub addresses: Addresses,
    /// How the embedded cloud is used.
    pub cloud: Access,
    /// The first Cluster's kubeconfig, where one was asked for.
    pub cluster_kubeconfig: Option<PathBuf>,
    /// Why machines cannot reach the outside, if they cannot.
    pub outside_obstacle: Option<&'static str>,
    /// Whether anything had to be made or changed.
    pub changed: bool,
}

impl OneHost {
    /// Brings the environment up, or repairs it. May be called again at any time, also after a run that was killed and
    /// after a restart of the host.
    pub async fn up(
        &self,
        options: &UpOptions,
        payload: Option<&dyn Payload>,
        progress: Arc<dyn Progress>,
    ) -> Result<Up> {
        let logs = self.layout.directory().join("machines").join(NAME).join("logs");
        let cloud_log = self.layout.cloud_log();
        let log_of = move |phase: Phase| match phase {
            Phase::Machine => Some(logs.join("supervisor.log")),
            Phase::Cloud => Some(cloud_log.clone()),
            Phase::ControlPlane
            | Phase::Addons
            | Phase::Controllers
            | Phase::Node
            | Phase::Pods
            | Phase::Hangar => Some(logs.join("kubelet.log")),
            _ => None,
        };
        let runner = Runner::new(Arc::clone(&progress), log_of);
        let options = &runner.run(Phase::Preflight, self.preflight(options)).await?;
        let lock = runner.run(Phase::Lock, self.lock()).await?;
        let done = Box::pin(self.up_locked(options, payload, &runner, &progress)).await;
        if done.is_err() {
            self.forget_if_empty();
        }
        drop(lock);
        done
    }

    async fn up_locked(
        &self,
        options: &UpOptions,
        payload: Option<&dyn Payload>,
        runner: &Runner,
        progress: &Arc<dyn Progress>,
    ) -> Result<Up> {
        runner.run(Phase::Programs, self.programs(options, progress)).await?;
        let packages = runner.run(Phase::Packages, self.packages(progress)).await?;
        let images = runner.run(Phase::Images, self.images(options, &packages, progress)).await?;
        let fabric = runner.run(Phase::Network, self.network(options, &packages)).await?;
        let addresses = Addresses::of(fabric.range())?;
        runner.run(Phase::Credentials, self.credentials(options, addresses)).await?;
        let cloud =
            CloudOptions { packages: packages.clone(), addresses, kubernetes: options.all_kubernetes() };
        let prepared = machine::Prepared { packages, images, fabric: fabric.clone(), addresses };
        let mut started = runner.run(Phase::Machine, self.machine(options, &prepared)).await?;
        let has_several = options.node_count() > 1;
        let machines = async {
            if has_several {
                runner.run(Phase::Machines, self.machines(options, &prepared)).await
            } else {
                Ok(machine::Kubelets::new())
            }
        };
        let control_plane = async {
            let client = runner.run(Phase::ControlPlane, self.control_plane(progress)).await?;
            let expected = runner.run(Phase::Addons, self.addons(options, &client, addresses)).await?;
            Ok((client, expected))
        };
        let (kubelets, (client, expected)) = tokio::try_join!(machines, control_plane)?;
        started.kubelets.extend(kubelets);
        self.forget_programs(&started)?;
        let are_ready = Notify::new();
        let pods = async {
            runner.run(Phase::Controllers, self.controllers(&started.manifests, &client, progress)).await?;
            runner.run(Phase::Node, self.nodes(options, &client, &started.kubelets, progress)).await?;
            are_ready.notify_one();
            let expected = ExpectedPods::new(expected, &started.manifests);
            runner.run(Phase::Pods, self.pods(&client, &expected, &started.images, progress)).await
        };
        let payload = async {
            if has_several {
                are_ready.notified().await;
            }
            match payload {
                Some(payload) => {
                    let work = self.payload(options, payload, addresses, &client, progress);
                    runner.run(Phase::Hangar, work).await
                }
                None => Ok(()),
            }
        };
        let heard = Arc::clone(progress);
        let tell = move |text: &str| heard.detail(Phase::Cloud, text);
        let cloud = runner.run(Phase::Cloud, self.ensure_cloud(options, cloud, tell));
        let ((), (), cloud) = tokio::try_join!(pods, payload, cloud)?;
        let cluster_kubeconfig = match &options.cluster {
            Some(name) => Some(self.tenant(options, name, &client, &cloud, runner, progress).await?),
            None => None,
        };
        Ok(Up {
            kubeconfig: self.kubeconfig(),
            addresses,
            cloud,
            cluster_kubeconfig,
            outside_obstacle: fabric.outside_obstacle()?,
            changed: runner.has_changed(),
        })
    }

    async fn payload(
        &self,
        options: &UpOptions,
        payload: &dyn Payload,
        addresses: Addresses,
        client: &Client,
        progress: &Arc<dyn Progress>,
    ) -> Result<Done<()>> {
        let cluster = Cluster { kubeconfig: self.kubeconfig(), addresses, nodes: options.node_count() };
        let installed = payload.install(&cluster).await?;
        // Who applies a Cluster next is not to meet an API server that does not know the webhooks yet.
        let objects = manifests(&Sample::of_nothing(options.first_kubernetes().version()))?;
        let tell = |state: &str| progress.detail(Phase::Hangar, state);
        let look = || cluster::untaken(client, &objects);
        cluster::wait("the API server to take manifests", TAKING_PATIENCE, tell, look).await?;
        Ok(Done::new((), installed.outcome, installed.changed))
    }

    /// Removes the directory if a failed `up` had not come further than to its lock, which the caller holds.
    fn forget_if_empty(&self) {
        let directory = self.layout.directory();
        let is_lock = |entry: &fs::DirEntry| entry.file_name() == "lock";
        let is_empty =
            fs::read_dir(directory).is_ok_and(|entries| entries.flatten().all(|entry| is_lock(&entry)));
        if is_empty {
            let _ = fs::remove_file(directory.join("lock"));
            let _ = fs::remove_dir(directory);
            // Only when no other environment is there.
            let _ = fs::remove_dir(self.environment.state());
        }
    }
}

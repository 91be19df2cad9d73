//! `up`: step by step from nothing, or from whatever a killed run or a reboot left, to a cluster whose pods all run.
//!
//! Every step looks first and does only what is missing. Nothing is remembered between runs except what is on disk
//! anyway, so there is no state that could be wrong.

mod ground;
mod machine;
mod workloads;

use std::path::PathBuf;
use std::sync::Arc;

use crate::addresses::Addresses;
use crate::error::Result;
use crate::management::NAME;
use crate::one_host::{OneHost, UpOptions};
use crate::progress::{Progress, Step};
use crate::steps::Runner;

/// A cluster that is up.
#[derive(Debug, Clone)]
pub struct Up {
    /// The kubeconfig to use from the host.
    pub kubeconfig: PathBuf,
    /// Addresses on the private network.
    pub addresses: Addresses,
    /// Why machines cannot reach the outside, if they cannot.
    pub outside_obstacle: Option<&'static str>,
    /// Whether anything had to be made or changed.
    pub changed: bool,
}

impl OneHost {
    /// Brings the environment up, or repairs it. May be called again at any time, also after a run that was killed and
    /// after a restart of the host.
    pub async fn up(&self, options: &UpOptions, progress: Arc<dyn Progress>) -> Result<Up> {
        let logs = self.layout.directory().join("machines").join(NAME).join("logs");
        let log_of = move |step: Step| match step {
            Step::Machine => Some(logs.join("supervisor.log")),
            Step::ControlPlane | Step::Node | Step::Addons | Step::Pods => Some(logs.join("kubelet.log")),
            _ => None,
        };
        let mut runner = Runner::new(Arc::clone(&progress), log_of);
        runner.run(Step::Preflight, self.preflight()).await?;
        let _lock = runner.run(Step::Lock, self.lock()).await?;
        runner.run(Step::Programs, self.programs(options)).await?;
        let packages = runner.run(Step::Packages, self.packages(&progress)).await?;
        let store = runner.run(Step::Images, self.images(options, &packages, &progress)).await?;
        let fabric = runner.run(Step::Network, self.network(options, &packages)).await?;
        let addresses = Addresses::of(fabric.range())?;
        runner.run(Step::Credentials, self.credentials(options, addresses)).await?;
        let prepared = machine::Prepared { packages, store, fabric: fabric.clone(), addresses };
        runner.run(Step::Machine, self.machine(options, prepared)).await?;
        let client =
            runner.run(Step::ControlPlane, self.control_plane(options, addresses, &progress)).await?;
        let expected = runner.run(Step::Addons, self.addons(options, &client, addresses)).await?;
        runner.run(Step::Node, self.node(&client, &progress)).await?;
        runner.run(Step::Pods, self.pods(&client, &expected, &progress)).await?;
        Ok(Up {
            kubeconfig: self.kubeconfig(),
            addresses,
            outside_obstacle: fabric.outside_obstacle()?,
            changed: runner.changed,
        })
    }
}

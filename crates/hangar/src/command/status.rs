//! `hangar status` and `hangar logs`: show the state of an environment, and collect its logs.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use hangar_host::{MachineState, Status as Report};

use super::environment::EnvironmentArguments;

/// Show the state of the environment on this host.
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    environment: EnvironmentArguments,
}

impl Status {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let host = self.environment.open()?;
        let report = host.status().await?;
        let name = self.environment.as_flag();
        if report.is_empty() && report.has_files {
            show(&report);
            bail!(
                "no machine runs, but {} exists: hangar up{name} continues, hangar down{name} removes it",
                host.layout().directory().display()
            );
        }
        if report.is_empty() {
            println!("nothing runs: hangar up{name} starts it");
            return Ok(());
        }
        show(&report);
        println!("kubeconfig  {}", host.kubeconfig().display());
        if !report.is_healthy() {
            bail!(
                "not everything runs: hangar up{name} repairs it, hangar logs{name} collects logs for a bug report"
            );
        }
        Ok(())
    }
}

fn show(report: &Report) {
    for machine in &report.machines {
        let state = match &machine.machine.state {
            MachineState::Running(_) => "running",
            MachineState::Changing => "changing",
            MachineState::Stopped => "stopped",
            MachineState::Incomplete => "incomplete",
        };
        println!("machine     {}: {state}", machine.machine.name);
        for service in &machine.services {
            println!("  service   {}: {:?}", service.name, service.state);
        }
    }
    if let Some(cloud) = &report.cloud {
        let state =
            cloud.obstacle.as_ref().map_or("answers".to_owned(), |why| format!("does not answer: {why}"));
        println!("cloud       {}: {state}", cloud.url);
    }
    if let Some(obstacle) = &report.cluster_obstacle {
        println!("cluster     does not answer: {obstacle}");
    }
    for node in &report.nodes {
        let state = node.obstacle.as_ref().map_or("Ready".to_owned(), |why| format!("not ready: {why}"));
        let facts = [node.version.as_deref(), node.zone.as_deref()].into_iter().flatten();
        let facts: Vec<&str> = [state.as_str()].into_iter().chain(facts).collect();
        println!("node        {}: {}", node.name, facts.join(", "));
    }
    for pod in &report.pods {
        let state = pod.obstacle.as_deref().unwrap_or("running");
        let restarts = if pod.restarts > 0 { format!(", {} restarts", pod.restarts) } else { String::new() };
        println!("pod         {}/{}: {state}{restarts}", pod.namespace, pod.name);
    }
}

/// Collect logs of machines and pods, and objects, for a bug report; without keys and Secrets.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    environment: EnvironmentArguments,
    /// Directory to write
    #[arg(long, value_name = "DIRECTORY", default_value = "hangar-logs")]
    bundle: PathBuf,
}

impl Logs {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let host = self.environment.open()?;
        println!("{}", host.collect_logs(&self.bundle).await?.display());
        Ok(())
    }
}

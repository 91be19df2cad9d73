//! The state of an environment: machines, services, pods.

use hangar_machine::{MachineState, MachineStatus, ServiceStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::cloud::CloudReport;
use crate::cluster;
use crate::error::{Result, Trying};
use crate::management::NAME;
use crate::one_host::OneHost;
use crate::phases::blocking;

/// A machine and its services.
#[derive(Debug, Clone)]
pub struct MachineReport {
    pub machine: MachineStatus,
    /// What its supervisor runs; none when it does not run.
    pub services: Vec<ServiceStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodReport {
    pub namespace: String,
    pub name: String,
    /// Why it does not serve, if it does not.
    pub obstacle: Option<String>,
    /// How often its containers started again.
    pub restarts: i32,
}

#[derive(Debug, Clone)]
pub struct Status {
    /// Whether the environment has a directory: one without machines is half made, or half removed.
    pub has_files: bool,
    /// All machines of the environment.
    pub machines: Vec<MachineReport>,
    /// The embedded cloud, where there is one.
    pub cloud: Option<CloudReport>,
    /// Why the cluster does not answer, if it does not.
    pub cluster_obstacle: Option<String>,
    /// The kubelet's version on the node, once it registered.
    pub node_version: Option<String>,
    /// Why the node is not Ready, if it is not.
    pub node_obstacle: Option<String>,
    pub pods: Vec<PodReport>,
}

impl Status {
    /// Whether nothing can run.
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// Whether everything runs.
    pub fn is_healthy(&self) -> bool {
        let is_running = |report: &MachineReport| matches!(report.machine.state, MachineState::Running(_));
        !self.is_empty()
            && self.machines.iter().all(is_running)
            && self.cloud.as_ref().is_none_or(|cloud| cloud.obstacle.is_none())
            && self.cluster_obstacle.is_none()
            && self.node_obstacle.is_none()
            && self.pods.iter().all(|pod| pod.obstacle.is_none())
    }
}

impl OneHost {
    /// Looks; never changes anything.
    pub async fn status(&self) -> Result<Status> {
        let environment = self.environment.clone();
        let machines = blocking(move || {
            let reports = environment.machines()?.into_iter().map(|machine| {
                let services = environment.machine(&machine.name).services().unwrap_or_default();
                MachineReport { machine, services }
            });
            Ok(reports.collect())
        })
        .await?;
        let mut status = Status {
            has_files: self.layout.directory().exists(),
            machines,
            cloud: self.cloud_report().await,
            cluster_obstacle: None,
            node_version: None,
            node_obstacle: None,
            pods: Vec::new(),
        };
        let is_running = |report: &MachineReport| {
            report.machine.name.as_str() == NAME && matches!(report.machine.state, MachineState::Running(_))
        };
        if !status.machines.iter().any(is_running) {
            // Nobody would answer, and asking takes its time.
            status.cluster_obstacle = Some(format!("the machine {NAME} does not run"));
        } else if let Err(error) = self.look_into(&mut status).await {
            status.cluster_obstacle = Some(error.with_causes());
        }
        Ok(status)
    }

    async fn look_into(&self, status: &mut Status) -> Result<()> {
        let since = self.started()?;
        let client = cluster::connect(&self.kubeconfig()).await?;
        let node = Api::<Node>::all(client.clone()).get_opt(NAME).await.trying("read the node")?;
        status.node_version = node.and_then(|node| Some(node.status?.node_info?.kubelet_version));
        status.node_obstacle = cluster::unready_node(&client, NAME, since).await?;
        let pods = Api::<Pod>::all(client).list(&ListParams::default()).await.trying("list the pods")?;
        status.pods = pods.iter().map(|pod| report(pod, since)).collect();
        Ok(())
    }
}

fn report(pod: &Pod, since: Timestamp) -> PodReport {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    PodReport {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        obstacle: cluster::obstacle(pod, since),
        restarts: containers.unwrap_or_default().iter().map(|container| container.restart_count).sum(),
    }
}

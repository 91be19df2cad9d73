//! The state of an environment: machines, services, pods.

use hangar_machine::{MachineState, MachineStatus, ServiceStatus};
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::cloud::CloudReport;
use crate::cluster::{self, Starts};
use crate::error::{Result, Trying};
use crate::management::{NAME, Node, ZONE_LABEL};
use crate::one_host::OneHost;
use crate::phases::blocking;

/// A machine and its services.
#[derive(Debug, Clone)]
pub struct MachineReport {
    pub machine: MachineStatus,
    /// What its supervisor runs; none when it does not run.
    pub services: Vec<ServiceStatus>,
}

/// A node of the management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    pub name: String,
    /// Its kubelet's version, once it registered.
    pub version: Option<String>,
    pub zone: Option<String>,
    /// Why it is not Ready, if it is not.
    pub obstacle: Option<String>,
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
    /// The nodes of the cluster, while it answers.
    pub nodes: Vec<NodeReport>,
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
            && self.nodes.iter().all(|node| node.obstacle.is_none())
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
            nodes: Vec::new(),
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
        let starts = self.starts()?;
        let client = cluster::connect(&self.kubeconfig()).await?;
        let api = Api::<NodeObject>::all(client.clone());
        for machine in status.machines.iter().map(|report| &report.machine) {
            let name = machine.name.to_string();
            if Node::named(&name).is_none() {
                continue;
            }
            let mut node = api.get_opt(&name).await.trying("read the node")?;
            let zone = node.as_mut().and_then(|node| node.labels_mut().remove(ZONE_LABEL));
            let version = node.and_then(|node| Some(node.status?.node_info?.kubelet_version));
            let obstacle = match starts.0.get(&name) {
                Some(since) => cluster::unready_node(&client, &name, *since).await?,
                None => Some("its machine does not run".to_owned()),
            };
            status.nodes.push(NodeReport { name, version, zone, obstacle });
        }
        let pods = Api::<Pod>::all(client).list(&ListParams::default()).await.trying("list the pods")?;
        status.pods = pods.iter().map(|pod| report(pod, &starts)).collect();
        Ok(())
    }
}

fn report(pod: &Pod, starts: &Starts) -> PodReport {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    PodReport {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        obstacle: cluster::obstacle(pod, starts),
        restarts: containers.unwrap_or_default().iter().map(|container| container.restart_count).sum(),
    }
}

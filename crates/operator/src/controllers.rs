//! Starts the chosen controllers and waits for them.
//!
//! All run in every replica: they fill their stores and collect keys, and reconcile only while we lead. That is what
//! makes a takeover quick.

use hangar_plan::controllers::{Controller, Selection};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Parts};
use crate::contracts::Contracts;
use crate::{
    cluster, hosted_control_plane, kubeadm_bootstrap, machine, machine_deployment, machine_set,
    openstack_cluster, openstack_machine,
};

/// Runs the chosen controllers until `stop`, and returns when the last reconcile has ended.
///
/// The manager does this beside its servers; tests do it alone, with gates of their own in the parts.
pub async fn run(parts: Parts, selection: &Selection, stop: CancellationToken) {
    let contracts = Contracts::watch(parts.client.clone(), &parts.metrics.watch, &stop);
    run_with(parts, contracts, selection, stop).await;
}

pub(crate) async fn run_with(
    parts: Parts,
    contracts: Contracts,
    selection: &Selection,
    stop: CancellationToken,
) {
    // Which version of a kind to read stands on CRDs: without them every reference would look broken at first.
    if stop.run_until_cancelled(contracts.synced()).await.is_none() {
        return;
    }
    // Stores outlive the controllers: those end their last reconciles over fresh reads.
    let storing = CancellationToken::new();
    let _stores_end_with_us = storing.clone().drop_guard();
    let context = Context::new(parts, contracts, &storing, &stop);
    let mut running = JoinSet::new();
    for controller in selection.iter() {
        spawn(controller, &context, &mut running);
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            // Without one of its controllers a manager would look healthy and do half its work; the next one does all.
            tracing::error!(%error, "a controller ended: this manager stops, so that another one starts");
            stop.cancel();
        }
    }
}

fn spawn(controller: Controller, context: &Context, running: &mut JoinSet<()>) {
    match controller {
        Controller::HostedControlPlane => hosted_control_plane::spawn(context, running),
        Controller::Cluster => cluster::spawn(context, running),
        Controller::Machine => machine::spawn(context, running),
        Controller::MachineSet => machine_set::spawn(context, running),
        Controller::MachineDeployment => machine_deployment::spawn(context, running),
        Controller::KubeadmBootstrap => kubeadm_bootstrap::spawn(context, running),
        Controller::OpenStackCluster => openstack_cluster::spawn(context, running),
        Controller::OpenStackMachine => openstack_machine::spawn(context, running),
        // Their kinds are installed and kept; nothing acts on them yet.
        Controller::MachineHealthCheck | Controller::ClusterResourceSet => {}
    }
}

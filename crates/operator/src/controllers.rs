//! Starts the chosen controllers and waits for them; previews get theirs from the same table.
//!
//! All of them run in every replica: they fill their stores and collect keys, and reconcile only while this replica
//! leads. So a new leader can start at once.

use hangar_plan::controllers::{Controller, Selection};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Handles};
use crate::contracts::Contracts;
use crate::reconcile::Rehearse;
use crate::{
    Error, cluster, hosted_control_plane, kubeadm_bootstrap, machine, machine_deployment, machine_set,
    openstack_cluster, openstack_machine,
};

/// Runs the chosen controllers until `stop`, and returns when the last reconcile has ended.
///
/// The manager does this beside its servers; tests do it alone, with gates of their own in the handles.
pub async fn run(handles: Handles, selection: &Selection, stop: CancellationToken) -> Result<(), Error> {
    // Stores outlive the controllers: those end their last reconciles over fresh reads.
    let storing = CancellationToken::new();
    let _stores_end_with_us = storing.clone().drop_guard();
    let contracts = Contracts::of(&handles, &stop);
    run_with(Context::new(handles, contracts.clone(), &storing, &stop), contracts, selection).await
}

pub(crate) async fn run_with(
    context: Context,
    contracts: Contracts,
    selection: &Selection,
) -> Result<(), Error> {
    // Which version of a kind to read stands on CRDs: without them every reference would look broken at first.
    if context.stop.run_until_cancelled(contracts.synced()).await.is_none() {
        return Ok(());
    }
    let mut running = JoinSet::new();
    for controller in selection.iter() {
        if let Some(ways) = ways(controller) {
            (ways.spawn)(&context, &mut running);
        }
    }
    all_ended(running, &context.stop).await
}

/// The first controller that broke ends all: without it a manager would look healthy and do half its work, while the
/// next process does all of it.
async fn all_ended(mut running: JoinSet<()>, stop: &CancellationToken) -> Result<(), Error> {
    let mut result = Ok(());
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a controller ended: this manager stops, so that another one starts");
            stop.cancel();
            result = result.and(Err(Error::ControllerEnded(error.to_string())));
        }
    }
    result
}

/// The two ways in which a controller runs. They stand together, so that none runs which previews leave out.
pub(crate) struct Ways {
    /// In a manager.
    spawn: fn(&Context, &mut JoinSet<()>),
    /// In a preview.
    pub(crate) rehearsed: fn(&Context) -> Box<dyn Rehearse>,
}

/// How a controller runs; nothing where its kinds are installed and kept, but nothing acts on them yet.
pub(crate) fn ways(controller: Controller) -> Option<Ways> {
    macro_rules! of {
        ($module:ident) => {
            Some(Ways { spawn: $module::spawn, rehearsed: $module::rehearsed })
        };
    }
    match controller {
        Controller::HostedControlPlane => of!(hosted_control_plane),
        Controller::Cluster => of!(cluster),
        Controller::Machine => of!(machine),
        Controller::MachineSet => of!(machine_set),
        Controller::MachineDeployment => of!(machine_deployment),
        Controller::KubeadmBootstrap => of!(kubeadm_bootstrap),
        Controller::OpenStackCluster => of!(openstack_cluster),
        Controller::OpenStackMachine => of!(openstack_machine),
        Controller::MachineHealthCheck | Controller::ClusterResourceSet => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_controller_that_breaks_ends_the_others_and_is_told() {
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        let asked = stop.clone();
        running.spawn(async move { asked.cancelled().await });
        running.spawn(async { panic!("as if by a defect") });
        let error = all_ended(running, &stop).await.unwrap_err();
        assert!(error.to_string().contains("as if by a defect"), "{error}");
    }

    #[tokio::test]
    async fn controllers_that_were_asked_to_end_are_no_error() {
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        let asked = stop.clone();
        running.spawn(async move { asked.cancelled().await });
        stop.cancel();
        assert!(all_ended(running, &stop).await.is_ok());
    }
}

//! The controller of MachineDeployments.
//!
//! Owns: the deployment's finalizer, revision and status; the MachineSets it makes, and the replicas of all that it
//! manages.
//! Watches: MachineDeployments, their MachineSets, Machines for what is said about them, Clusters where they matter.

mod reconcile;

use std::sync::Arc;

use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::apply::Applier;
use hangar_plan::controllers::Controller;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::managed::is_more_than_status;
use crate::members::{labelled, naming};

/// The field manager; the plan knows the mark that it leaves.
const MANAGER: &str = "hangar-machine-deployment";

struct MachineDeployments {
    context: Context,
    applier: Applier,
}

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let watches = &context.watches;
    let deployments = watches.machine_deployments();
    let (by_set, by_machine, by_cluster) = (deployments.clone(), deployments.clone(), deployments.clone());
    let builder = context
        .builder(Controller::MachineDeployment)
        .roots(deployments, is_more_than_status)
        .watches(watches.machine_sets(), move |change| {
            let owners = change.controllers("MachineDeployment");
            // An orphan may belong to any deployment of its cluster.
            if owners.is_empty() { labelled(&by_set, &change.named_by(CLUSTER_NAME_LABEL)) } else { owners }
        })
        .watches(watches.machines(), move |change| {
            labelled(&by_machine, &change.named_by(CLUSTER_NAME_LABEL))
        })
        .watches(watches.clusters(), move |change| {
            if is_more_than_status(change) { naming(&by_cluster, &change.key) } else { Vec::new() }
        });
    let (leadership, stop) = (Arc::clone(&context.parts.leadership), context.stop.clone());
    let controller = MachineDeployments { context: context.clone(), applier: Applier::new(MANAGER) };
    running.spawn(async move {
        builder.run(controller, leadership, stop).await;
    });
}

#[cfg(test)]
mod tests {
    use hangar_kit::apply::APPLIED_ANNOTATION_PREFIX;

    #[test]
    fn the_plan_knows_the_mark_of_our_field_manager() {
        let mark = format!("{APPLIED_ANNOTATION_PREFIX}{}", super::MANAGER);
        assert_eq!(mark, hangar_plan::machine_deployment::APPLIED_MARK);
    }
}

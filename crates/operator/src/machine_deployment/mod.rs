//! The controller of MachineDeployments.
//!
//! Owns: the deployment's finalizer, revision and status; the MachineSets it makes, and the replicas of all that it
//! manages.
//! Watches: MachineDeployments, their MachineSets, Machines for what is said about them, Clusters where they matter.

mod reconcile;

use std::sync::Arc;

use hangar_api::cluster::v1beta2::MachineDeployment;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::apply::Applier;
use hangar_kit::watch::Watch;
use hangar_plan::controllers::Controller;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::managed::is_more_than_status;

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
            if owners.is_empty() { of_clusters(&by_set, change.named_by(CLUSTER_NAME_LABEL)) } else { owners }
        })
        .watches(watches.machines(), move |change| {
            of_clusters(&by_machine, change.named_by(CLUSTER_NAME_LABEL))
        })
        .watches(watches.clusters(), move |change| {
            if is_more_than_status(change) { of_clusters(&by_cluster, change.itself()) } else { Vec::new() }
        });
    let (leadership, stop) = (Arc::clone(&context.parts.leadership), context.stop.clone());
    let controller = MachineDeployments { context: context.clone(), applier: Applier::new(MANAGER) };
    running.spawn(async move {
        builder.run(controller, leadership, stop).await;
    });
}

/// All deployments of some clusters.
fn of_clusters(deployments: &Watch<MachineDeployment>, clusters: Vec<ObjectKey>) -> Vec<ObjectKey> {
    let of = |cluster: ObjectKey| {
        let found = deployments.by_label(CLUSTER_NAME_LABEL, &cluster.name);
        let keys: Vec<ObjectKey> = found
            .iter()
            .filter(|deployment| deployment.key.namespace == cluster.namespace)
            .map(|deployment| deployment.key.clone())
            .collect();
        keys
    };
    clusters.into_iter().flat_map(of).collect()
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

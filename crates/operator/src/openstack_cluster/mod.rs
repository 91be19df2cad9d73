//! The controller of OpenStackClusters: networks, routers and security groups of a cluster.
//!
//! It owns the status of the OpenStackCluster, its finalizer and its owner id, and in the cloud everything that carries
//! that id. It watches OpenStackClusters, their Clusters, and OpenStackMachines (which must be gone before a network can
//! be deleted). The cloud cannot be watched: it is asked at every change, and again after a while. What is decided, and
//! when, is in `hangar_plan::openstack_cluster`.

mod observe;
mod reconcile;
mod run;

use std::sync::Arc;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::infrastructure::v1beta1::OpenStackCluster;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Change;
use hangar_plan::controllers::Controller;
use tokio::task::JoinSet;

use crate::clouds::Reconciler;
use crate::context::{Context, Watches};

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let watches = &context.watches;
    let builder = context
        .builder(Controller::OpenStackCluster)
        .roots(watches.openstack_clusters(), is_worth_a_look)
        .watches(watches.clusters(), {
            let watches = Arc::clone(watches);
            move |change| if is_news(change) { of_cluster(&watches, &change.key) } else { Vec::new() }
        })
        .watches(watches.openstack_machines(), {
            let watches = Arc::clone(watches);
            move |change| {
                // Only that one is gone matters, and only to a cluster that is going.
                if change.after.is_some() {
                    return Vec::new();
                }
                change
                    .named_by(CLUSTER_NAME_LABEL)
                    .iter()
                    .flat_map(|cluster| of_cluster(&watches, cluster))
                    .collect()
            }
        });
    let (reconciler, stop) = (Reconciler::<OpenStackCluster>::new(context), context.stop.clone());
    let leadership = Arc::clone(&context.parts.leadership);
    running.spawn(async move {
        builder.run(reconciler, leadership, stop).await;
    });
}

/// Our own writes of the status are no reason to ask the cloud again.
fn is_worth_a_look(change: &Change<OpenStackCluster>) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            before.spec != after.spec
                || before.is_terminating != after.is_terminating
                || before.metadata.annotations != after.metadata.annotations
                || before.metadata.owner_references != after.metadata.owner_references
                || before.metadata.labels != after.metadata.labels
        }
        _ => true,
    }
}

/// A Cluster's status changes often, and the cloud need not be asked for that. What its control plane says about itself
/// shows in it as what was reached.
fn is_news(change: &Change<Cluster>) -> bool {
    let facts = |cluster: &Cluster| {
        let reached = cluster.status.as_ref().and_then(|status| status.initialization.clone());
        (cluster.spec.paused, cluster.spec.control_plane_ref.clone(), reached)
    };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => before.uid != after.uid || facts(&before.value) != facts(&after.value),
        _ => true,
    }
}

/// The objects that belong to a Cluster: by label, which its controller sets together with the owner.
fn of_cluster(watches: &Watches, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let all = watches.openstack_clusters().all();
    let own = all.iter().filter(|object| {
        let is_labelled = object.labels.get(CLUSTER_NAME_LABEL) == Some(&cluster.name);
        let is_owned =
            object.owners.iter().any(|owner| owner.kind == "Cluster" && owner.name == cluster.name);
        object.key.namespace == cluster.namespace && (is_labelled || is_owned)
    });
    own.map(|object| object.key.clone()).collect()
}

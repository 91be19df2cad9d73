//! The controller of OpenStackMachines: one server each, with its ports.
//!
//! It owns the status of the OpenStackMachine, its finalizer, its owner id and its provider id, and in the cloud
//! everything that carries that owner id. It watches OpenStackMachines, the Machines that own them, Clusters (which say
//! when machines may be made and when nothing may) and OpenStackClusters (networks, groups, credentials). The cloud
//! cannot be watched: a server that is being made or deleted is asked for every few seconds, one that runs now and then.
//! What is decided, and when, is in `hangar_plan::openstack_machine`.

mod observe;
mod reconcile;
mod run;

use std::sync::Arc;

use hangar_api::infrastructure::v1beta1::OpenStackMachine;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Change;
use hangar_plan::controllers::Controller;
use tokio::task::JoinSet;

use crate::clouds::Reconciler;
use crate::context::Context;
use crate::members::labelled;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let watches = &context.watches;
    let builder = context
        .builder(Controller::OpenStackMachine)
        .roots(watches.openstack_machines(), is_worth_a_look)
        .watches(watches.machines(), |change| {
            let sides = change.before.iter().chain(&change.after);
            let names = sides.map(|machine| &machine.spec.infrastructure_ref);
            let names = names.filter(|reference| reference.kind == "OpenStackMachine");
            let namespace = &change.key.namespace;
            names
                .map(|reference| ObjectKey { namespace: namespace.clone(), name: reference.name.clone() })
                .collect()
        })
        .watches(watches.clusters(), {
            let machines = watches.openstack_machines().clone();
            move |change| {
                let facts = |side: &hangar_api::cluster::v1beta2::Cluster| {
                    let done = side.status.as_ref().and_then(|status| status.initialization.as_ref());
                    (side.spec.paused, done.and_then(|done| done.infrastructure_provisioned))
                };
                // Its status changes often, and hundreds of machines need not ask the cloud for that.
                match (&change.before, &change.after) {
                    (Some(before), Some(after)) if facts(before) == facts(after) => Vec::new(),
                    _ => labelled(&machines, &change.itself()),
                }
            }
        })
        .watches(watches.openstack_clusters(), {
            let machines = watches.openstack_machines().clone();
            move |change| {
                let facts = |side: &hangar_api::infrastructure::v1beta1::OpenStackCluster| {
                    side.status.as_ref().map(|status| status.ready)
                };
                match (&change.before, &change.after) {
                    (Some(before), Some(after)) if facts(before) == facts(after) => Vec::new(),
                    _ => labelled(&machines, &change.named_by(CLUSTER_NAME_LABEL)),
                }
            }
        });
    let (reconciler, stop) = (Reconciler::<OpenStackMachine>::new(context), context.stop.clone());
    let leadership = Arc::clone(&context.parts.leadership);
    running.spawn(async move {
        builder.run(reconciler, leadership, stop).await;
    });
}

/// Our own writes of the status are no reason to ask the cloud again.
fn is_worth_a_look(change: &Change<OpenStackMachine>) -> bool {
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

//! The controller of MachineSets.
//!
//! Owns: the set's finalizer and status; the Machines it makes and what of them follows the template; the clones that
//! those Machines refer to, until the Machine has taken them over.
//! Watches: MachineSets, their Machines, MachineDeployments and Clusters where they matter to the sets, templates.

mod observe;
mod reconcile;

use std::sync::Arc;

use hangar_api::cluster::v1beta2::MachineSet;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::apply::Applier;
use hangar_kit::watch::Change;
use hangar_plan::controllers::Controller;
use kube::core::DynamicObject;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::managed::is_more_than_status;
use crate::members::{labelled, naming};

struct MachineSets {
    context: Context,
    applier: Applier,
}

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let watches = &context.watches;
    let sets = watches.machine_sets();
    let (by_machine, by_deployment, by_cluster) = (sets.clone(), sets.clone(), sets.clone());
    let builder = context
        .builder(Controller::MachineSet)
        .roots(sets, is_more_than_status)
        .watches(watches.machines(), move |change| {
            let owners = change.controllers("MachineSet");
            // An orphan may belong to any set of its cluster.
            if owners.is_empty() {
                labelled(&by_machine, &change.named_by(CLUSTER_NAME_LABEL))
            } else {
                owners
            }
        })
        .watches(watches.machine_deployments(), move |change| {
            if !is_more_than_status(change) {
                return Vec::new();
            }
            labelled(&by_deployment, &change.named_by(CLUSTER_NAME_LABEL))
        })
        .watches(watches.clusters(), move |change| {
            if is_more_than_status(change) { naming(&by_cluster, &change.key) } else { Vec::new() }
        });
    let stores = Arc::clone(watches);
    context.foreign.feed(&builder.queue(), move |change| using(&stores, change));
    let (leadership, stop) = (Arc::clone(&context.parts.leadership), context.stop.clone());
    let controller = MachineSets { context: context.clone(), applier: Applier::new("hangar-machine-set") };
    running.spawn(async move {
        builder.run(controller, leadership, stop).await;
    });
}

/// The sets whose template names a changed object. Only templates matter: what a Machine owns is the Machine's.
fn using(watches: &Watches, change: &Change<DynamicObject>) -> Vec<ObjectKey> {
    let is_owned = change
        .before
        .iter()
        .chain(&change.after)
        .any(|kept| kept.owners.iter().any(|owner| owner.kind == "Machine"));
    if is_owned {
        return Vec::new();
    }
    let names = |set: &MachineSet| {
        let spec = &set.spec.template.spec;
        let mut references = spec.bootstrap.config_ref.iter().chain([&spec.infrastructure_ref]);
        references.any(|reference| reference.name == change.key.name)
    };
    let all = watches.machine_sets().all();
    all.iter()
        .filter(|set| set.key.namespace == change.key.namespace && names(&set.value))
        .map(|set| set.key.clone())
        .collect()
}

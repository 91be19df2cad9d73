//! The controller of Machines.
//!
//! Owns: the Machine's finalizer, the facts in its spec that come from providers, its status; owner reference and label on
//! the objects behind its references; labels, annotations and the first taint of its Node.
//! Watches: Machines; Clusters, MachineSets and MachineDeployments where they matter to their Machines; the referred
//! kinds. Nodes and pods are read live from the tenant, one Node per Machine and minute while all is well.

mod observe;
mod reconcile;
mod tenant;

use std::sync::Arc;

use hangar_api::cluster::v1beta2::{Cluster, Machine};
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Change;
use hangar_plan::controllers::Controller;
use kube::core::DynamicObject;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::managed::is_more_than_status;
use crate::members::{labelled, naming};

struct Machines {
    context: Context,
}

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let watches = &context.watches;
    let machines = watches.machines();
    let (by_cluster, by_set, by_deployment) = (machines.clone(), machines.clone(), machines.clone());
    let builder = context
        .builder(Controller::Machine)
        .roots(machines, is_more_than_status)
        // Tenants are reached by their kubeconfigs, which have to be known before the first look.
        .watches(watches.secrets(), |_| Vec::new())
        .watches(watches.clusters(), move |change| {
            if is_news(change) { naming(&by_cluster, &change.key) } else { Vec::new() }
        })
        // Whether a Machine is up to date depends on the templates above it.
        .watches(watches.machine_sets(), move |change| {
            if !is_more_than_status(change) {
                return Vec::new();
            }
            labelled(&by_set, &change.named_by(CLUSTER_NAME_LABEL))
        })
        .watches(watches.machine_deployments(), move |change| {
            if !is_more_than_status(change) {
                return Vec::new();
            }
            labelled(&by_deployment, &change.named_by(CLUSTER_NAME_LABEL))
        });
    let stores = Arc::clone(watches);
    context.foreign.feed(&builder.queue(), move |change| referring(&stores, change));
    let (leadership, stop) = (Arc::clone(&context.parts.leadership), context.stop.clone());
    let controller = Machines { context: context.clone() };
    running.spawn(async move {
        builder.run(controller, leadership, stop).await;
    });
}

/// Of a Cluster's status Machines need to know what was reached.
fn is_news(change: &Change<Cluster>) -> bool {
    let reached =
        |cluster: &Cluster| cluster.status.as_ref().and_then(|status| status.initialization.clone());
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            is_more_than_status(change) || reached(&before.value) != reached(&after.value)
        }
        _ => true,
    }
}

/// The Machines that own an object, or would if they could: those that refer to its name.
fn referring(watches: &Watches, change: &Change<DynamicObject>) -> Vec<ObjectKey> {
    let namespace = &change.key.namespace;
    let sides = || change.before.iter().chain(&change.after);
    let owners: Vec<ObjectKey> = sides()
        .flat_map(|kept| &kept.owners)
        .filter(|owner| owner.kind == "Machine")
        .map(|owner| ObjectKey { namespace: namespace.clone(), name: owner.name.clone() })
        .collect();
    if !owners.is_empty() {
        return owners;
    }
    let refers = |machine: &Machine| {
        let mut references =
            machine.spec.bootstrap.config_ref.iter().chain([&machine.spec.infrastructure_ref]);
        references.any(|reference| reference.name == change.key.name)
    };
    // Made for a Machine, objects have its name; only those that people made have others.
    let same = watches.machines().get(&change.key);
    if let Some(machine) = same.iter().next().filter(|machine| refers(&machine.value)) {
        return vec![machine.key.clone()];
    }
    let all = watches.machines().all();
    all.iter()
        .filter(|machine| machine.key.namespace == *namespace && refers(&machine.value))
        .map(|machine| machine.key.clone())
        .collect()
}

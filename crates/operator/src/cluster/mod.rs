//! The controller of Clusters.
//!
//! Owns: the Cluster's finalizer, endpoint and status; owner reference and label on the objects behind its two references.
//! Watches: Clusters; MachineDeployments, MachineSets and Machines by their label; kubeconfigs of tenants; the referred
//! kinds, as soon as a Cluster names one.
//!
//! It talks to a tenant only to learn whether its API server answers, once a minute, and remembers the answer for a few
//! seconds so that a busy Cluster does not ask with every change.

mod observe;
mod reconcile;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Change;
use hangar_plan::controllers::Controller;
use kube::core::DynamicObject;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::managed::is_more_than_status;
use observe::Probed;

struct Clusters {
    context: Context,
    probes: Mutex<BTreeMap<ObjectKey, Probed>>,
}

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let watches = &context.watches;
    let builder = context
        .builder(Controller::Cluster)
        .roots(watches.clusters(), is_more_than_status)
        .watches(watches.machine_deployments(), |change| change.named_by(CLUSTER_NAME_LABEL))
        .watches(watches.machine_sets(), |change| change.named_by(CLUSTER_NAME_LABEL))
        .watches(watches.machines(), |change| change.named_by(CLUSTER_NAME_LABEL))
        .watches(watches.secrets(), |change| {
            let is_kubeconfig = change.key.name.ends_with("-kubeconfig");
            if is_kubeconfig { change.named_by(CLUSTER_NAME_LABEL) } else { Vec::new() }
        });
    let stores = Arc::clone(watches);
    context.foreign.feed(&builder.queue(), move |change| referring(&stores, change));
    let (leadership, stop) = (Arc::clone(&context.parts.leadership), context.stop.clone());
    let controller = Clusters { context: context.clone(), probes: Mutex::default() };
    running.spawn(async move {
        builder.run(controller, leadership, stop).await;
    });
}

/// The Clusters that own an object, or would if they could: those that refer to its name.
fn referring(watches: &Watches, change: &Change<DynamicObject>) -> Vec<ObjectKey> {
    let namespace = &change.key.namespace;
    let sides = || change.before.iter().chain(&change.after);
    let owners: Vec<ObjectKey> = sides()
        .flat_map(|kept| &kept.owners)
        .filter(|owner| owner.kind == "Cluster")
        .map(|owner| ObjectKey { namespace: namespace.clone(), name: owner.name.clone() })
        .collect();
    // What a Machine or a set owns is none of a Cluster's business.
    if !owners.is_empty() || sides().any(|kept| !kept.owners.is_empty()) {
        return owners;
    }
    let all = watches.clusters().all();
    let refers = |cluster: &hangar_api::cluster::v1beta2::Cluster| {
        let references = cluster.spec.infrastructure_ref.iter().chain(&cluster.spec.control_plane_ref);
        references.into_iter().any(|reference| reference.name == change.key.name)
    };
    all.iter()
        .filter(|cluster| cluster.key.namespace == *namespace && refers(&cluster.value))
        .map(|cluster| cluster.key.clone())
        .collect()
}

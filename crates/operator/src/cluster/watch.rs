//! Decides which changes wake a Cluster: those of the Cluster itself, of its workers (found by label), of its tenant's
//! kubeconfig, and of the objects that it refers to.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::controller::ControllerBuilder;
use hangar_kit::watch::Change;
use kube::core::DynamicObject;

use crate::context::{Context, Watches};
use crate::referring::{is_more_than_status, owners, referring};

/// The builder with everything that matters.
pub(super) fn watched(context: &Context, builder: ControllerBuilder) -> ControllerBuilder {
    let watches = &context.watches;
    let stores = Arc::clone(watches);
    context.foreign.feed(&builder.queue(), move |change| claimants(&stores, change));
    builder
        .roots(watches.clusters(), is_more_than_status)
        .watches(watches.machine_deployments(), |change| change.named_by(CLUSTER_NAME_LABEL))
        .watches(watches.machine_sets(), |change| change.named_by(CLUSTER_NAME_LABEL))
        .watches(watches.machines(), |change| change.named_by(CLUSTER_NAME_LABEL))
        .watches(watches.secrets(), |change| {
            let is_kubeconfig = change.key.name.ends_with("-kubeconfig");
            if is_kubeconfig { change.named_by(CLUSTER_NAME_LABEL) } else { Vec::new() }
        })
}

/// The Clusters that own an object, or would if they could: those that refer to its name. What a Machine or a set owns is
/// none of a Cluster's business.
fn claimants(watches: &Watches, change: &Change<DynamicObject>) -> Vec<ObjectKey> {
    let has_owner = change.before.iter().chain(&change.after).any(|kept| !kept.owners.is_empty());
    if has_owner {
        return owners::<Cluster>(change);
    }
    referring(watches.clusters(), change, |cluster| {
        cluster.spec.infrastructure_ref.iter().chain(&cluster.spec.control_plane_ref).collect()
    })
}

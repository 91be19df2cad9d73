//! Decides which changes wake an OpenStackCluster: its own, those of its Cluster, and the removal of an
//! OpenStackMachine of that Cluster, because a deleted OpenStackCluster waits until there are none.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::controller::ControllerBuilder;

use crate::context::{Context, Watches};
use crate::referring::{is_cluster_news, is_more_than_status};

/// The builder with everything that matters. The cloud cannot be watched: it is asked at every change, and again after a
/// while.
pub(super) fn watched(context: &Context, builder: ControllerBuilder) -> ControllerBuilder {
    let watches = &context.watches;
    let (by_cluster, by_machine) = (Arc::clone(watches), Arc::clone(watches));
    builder
        .roots(watches.openstack_clusters(), is_more_than_status)
        .watches(watches.clusters(), move |change| {
            if is_cluster_news(change) { of_cluster(&by_cluster, &change.key) } else { Vec::new() }
        })
        .watches(watches.openstack_machines(), move |change| {
            // Only that one is gone matters, and only to a cluster that is going.
            if change.after.is_some() {
                return Vec::new();
            }
            let clusters = change.named_by(CLUSTER_NAME_LABEL);
            clusters.iter().flat_map(|cluster| of_cluster(&by_machine, cluster)).collect()
        })
}

/// The objects that belong to a Cluster: by label, which its controller sets together with the owner.
fn of_cluster(watches: &Watches, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let all = watches.openstack_clusters().all();
    let own = all.iter().filter(|object| {
        let is_labelled = object.labels.get(CLUSTER_NAME_LABEL) == Some(&cluster.name);
        let is_owned = object.owners.iter().any(|owner| owner.is::<Cluster>() && owner.name == cluster.name);
        object.key.namespace == cluster.namespace && (is_labelled || is_owned)
    });
    own.map(|object| object.key.clone()).collect()
}

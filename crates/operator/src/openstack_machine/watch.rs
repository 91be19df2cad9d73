//! Decides which changes wake an OpenStackMachine: its own, and those fields of its Machine, Cluster and
//! OpenStackCluster that its plans read.
//!
//! The statuses of these three change often, some of them through our own writes. If every such change woke hundreds of
//! OpenStackMachines, each would read the cloud for nothing.

use hangar_api::cluster::v1beta2::{Cluster, Machine};
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::controller::ControllerBuilder;
use hangar_kit::watch::Change;

use crate::context::Context;
use crate::referring::{is_more_than_status, labelled};

/// The builder with everything that matters.
pub(super) fn watched(context: &Context, builder: ControllerBuilder) -> ControllerBuilder {
    let watches = &context.watches;
    let (by_cluster, by_infrastructure) =
        (watches.openstack_machines().clone(), watches.openstack_machines().clone());
    let queue = builder.queue();
    context.clouds.on_lists(move |key| queue.add(key.clone()));
    builder
        .roots(watches.openstack_machines(), is_more_than_status)
        .watches(watches.machines(), |change| {
            let facts = |machine: &Machine| (machine.spec.clone(), machine.metadata.labels.clone());
            if is_news(change, facts) { of_machine(change) } else { Vec::new() }
        })
        .watches(watches.clusters(), move |change| {
            let facts = |cluster: &Cluster| {
                let done = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
                (cluster.spec.paused, done.and_then(|done| done.infrastructure_provisioned))
            };
            if is_news(change, facts) { labelled(&by_cluster, &change.itself()) } else { Vec::new() }
        })
        .watches(watches.openstack_clusters(), move |change| {
            let facts = |cluster: &OpenStackCluster| cluster.status.as_ref().map(|status| status.ready);
            let clusters = change.named_by(CLUSTER_NAME_LABEL);
            if is_news(change, facts) { labelled(&by_infrastructure, &clusters) } else { Vec::new() }
        })
}

fn is_news<K, T: PartialEq>(change: &Change<K>, facts: impl Fn(&K) -> T) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => facts(&before.value) != facts(&after.value),
        _ => true,
    }
}

fn of_machine(change: &Change<Machine>) -> Vec<ObjectKey> {
    let sides = change.before.iter().chain(&change.after);
    let references = sides.map(|machine| &machine.spec.infrastructure_ref);
    let ours = references.filter(|reference| reference.is::<OpenStackMachine>());
    let namespace = &change.key.namespace;
    ours.map(|reference| ObjectKey { namespace: namespace.clone(), name: reference.name.clone() }).collect()
}

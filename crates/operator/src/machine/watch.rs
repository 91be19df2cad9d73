//! Decides which changes wake a Machine: its own, and those of its Cluster, of the MachineSet and MachineDeployment
//! above it, of the objects that it refers to, and of its Node.

use std::sync::Arc;
use std::time::Duration;

use hangar_api::cluster::v1beta2::Machine;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::controller::ControllerBuilder;
use hangar_kit::pace::Pace;
use hangar_kit::watch::{Change, Watch};
use hangar_plan::machine::node::is_same_server;
use kube::core::DynamicObject;

use crate::context::{Context, Watches};
use crate::referring::{
    is_another_spec, is_cluster_news, is_more_than_status, labelled, naming, of_machine, owners, referring,
};

/// A Node that joins or goes changes this often within a minute or two.
const FREE_WAKES: u32 = 20;
/// Then it is one that never rests, and what it says is written no more often than this.
const WAKE_INTERVAL: Duration = Duration::from_secs(30);

/// The builder with everything that matters.
pub(super) fn watched(context: &Context, builder: ControllerBuilder) -> ControllerBuilder {
    let watches = &context.watches;
    let machines = watches.machines();
    let (by_cluster, by_set, by_deployment) = (machines.clone(), machines.clone(), machines.clone());
    let stores = Arc::clone(watches);
    context.foreign.feed(&builder.queue(), move |change| claimants(&stores, change));
    context.nodes.on_change({
        let (queue, machines) = (builder.queue(), machines.clone());
        let pace = Pace::new(FREE_WAKES, WAKE_INTERVAL);
        move |cluster, node, provider_id| {
            for key in of_node(&machines, cluster, node, provider_id) {
                let delay = pace.delay(key.clone());
                queue.add_after(key, delay);
            }
        }
    });
    builder
        .roots(machines, is_more_than_status)
        // Tenants are reached by their kubeconfigs, which have to be known before the first look.
        .watches(watches.secrets(), |_| Vec::new())
        .watches(watches.clusters(), move |change| {
            if is_cluster_news(change) { naming(&by_cluster, &change.key) } else { Vec::new() }
        })
        // Whether a Machine is up to date depends on the templates above it.
        .watches(watches.machine_sets(), move |change| {
            let is_news = is_another_spec(change);
            if is_news { labelled(&by_set, &change.named_by(CLUSTER_NAME_LABEL)) } else { Vec::new() }
        })
        .watches(watches.machine_deployments(), move |change| {
            let is_news = is_another_spec(change);
            if is_news { labelled(&by_deployment, &change.named_by(CLUSTER_NAME_LABEL)) } else { Vec::new() }
        })
}

/// The Machines that own an object, or would if they could: those that refer to its name.
fn claimants(watches: &Watches, change: &Change<DynamicObject>) -> Vec<ObjectKey> {
    let owners = owners::<Machine>(change);
    if !owners.is_empty() {
        return owners;
    }
    referring(watches.machines(), change, |machine| of_machine(&machine.spec).collect())
}

/// The Machines that a Node is of, or may be of.
fn of_node(
    machines: &Watch<Machine>,
    cluster: &ObjectKey,
    node: &str,
    provider_id: Option<&str>,
) -> Vec<ObjectKey> {
    let is_its = |machine: &Machine| {
        let reference = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
        let own = machine.spec.provider_id.as_deref().unwrap_or_default();
        reference.is_some_and(|reference| reference.name == node)
            || provider_id.is_some_and(|provider_id| is_same_server(own, provider_id))
    };
    let mut keys = machines.keys_by_label(CLUSTER_NAME_LABEL, cluster);
    keys.retain(|key| machines.get(key).iter().any(|kept| is_its(&kept.value)));
    keys
}

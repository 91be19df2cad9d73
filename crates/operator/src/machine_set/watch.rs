//! Decides which changes wake a MachineSet: its own, and those of its Machines, its MachineDeployment, its Cluster, the
//! version of its control plane, and its templates.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::MachineSet;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::controller::ControllerBuilder;

use crate::context::Context;
use crate::referring::{is_more_than_status, labelled, naming, users, waiting_for_version};

/// The builder with everything that matters.
pub(super) fn watched(context: &Context, builder: ControllerBuilder) -> ControllerBuilder {
    let watches = &context.watches;
    let sets = watches.machine_sets();
    let (by_machine, by_deployment, by_cluster) = (sets.clone(), sets.clone(), sets.clone());
    let stores = Arc::clone(watches);
    context.foreign.feed(&builder.queue(), move |change| {
        users(stores.machine_sets(), change, |set| &set.spec.template.spec)
    });
    let by_version = sets.clone();
    context.foreign.feed(&builder.queue(), move |change| waiting_for_version(&by_version, change));
    builder
        .roots(sets, is_more_than_status)
        .watches(watches.machines(), move |change| {
            let owners = change.controllers::<MachineSet>();
            // An orphan may belong to any set of its cluster.
            if owners.is_empty() {
                labelled(&by_machine, &change.named_by(CLUSTER_NAME_LABEL))
            } else {
                owners
            }
        })
        .watches(watches.machine_deployments(), move |change| {
            let is_news = is_more_than_status(change);
            if is_news { labelled(&by_deployment, &change.named_by(CLUSTER_NAME_LABEL)) } else { Vec::new() }
        })
        .watches(watches.clusters(), move |change| {
            if is_more_than_status(change) { naming(&by_cluster, &change.key) } else { Vec::new() }
        })
}

//! Decides which changes wake a MachineDeployment: its own, and those of its MachineSets, of their Machines (which its
//! status counts), of its Cluster, of the version of its control plane and of its templates.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::MachineDeployment;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::controller::ControllerBuilder;

use crate::context::Context;
use crate::referring::{is_more_than_status, labelled, naming, users, waiting_for_version};

/// The builder with everything that matters.
pub(super) fn watched(context: &Context, builder: ControllerBuilder) -> ControllerBuilder {
    let watches = &context.watches;
    let deployments = watches.machine_deployments();
    let (by_set, by_machine, by_cluster) = (deployments.clone(), deployments.clone(), deployments.clone());
    let stores = Arc::clone(watches);
    context.foreign.feed(&builder.queue(), move |change| {
        users(stores.machine_deployments(), change, |deployment| &deployment.spec.template.spec)
    });
    let by_version = deployments.clone();
    context.foreign.feed(&builder.queue(), move |change| waiting_for_version(&by_version, change));
    builder
        .roots(deployments, is_more_than_status)
        .watches(watches.machine_sets(), move |change| {
            let owners = change.controllers::<MachineDeployment>();
            // An orphan may belong to any deployment of its cluster.
            if owners.is_empty() { labelled(&by_set, &change.named_by(CLUSTER_NAME_LABEL)) } else { owners }
        })
        .watches(watches.machines(), move |change| {
            labelled(&by_machine, &change.named_by(CLUSTER_NAME_LABEL))
        })
        .watches(watches.clusters(), move |change| {
            if is_more_than_status(change) { naming(&by_cluster, &change.key) } else { Vec::new() }
        })
}

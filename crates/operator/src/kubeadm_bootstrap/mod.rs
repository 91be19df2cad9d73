//! The controller of KubeadmConfigs: bootstrap data of workers.
//!
//! It owns the data Secret named after the KubeadmConfig and, in the tenant, the bootstrap token of each machine that
//! has not joined yet. It watches KubeadmConfigs, the Machines that use them, Clusters (which say when a join can work)
//! and Secrets of clusters (the data itself, and the certificate authority). What is decided, and when, is in
//! `hangar_plan::kubeadm_bootstrap`.
//!
//! There is no finalizer: the data Secret goes with its owner, and a token that nobody uses any more ends by itself.

mod observe;
mod reconcile;

use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_plan::controllers::Controller;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::managed::is_more_than_status;
use crate::members::labelled;
use reconcile::Reconciler;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let watches = &context.watches;
    let configs = watches.kubeadm_configs();
    let (by_cluster, by_secret) = (configs.clone(), configs.clone());
    let builder = context
        .builder(Controller::KubeadmBootstrap)
        .roots(configs, is_more_than_status)
        .watches(watches.machines(), |change| {
            let sides = change.before.iter().chain(&change.after);
            let names = sides.filter_map(|machine| machine.spec.bootstrap.config_ref.as_ref());
            let names = names.filter(|reference| reference.kind == "KubeadmConfig");
            names.map(|reference| key(&change.key, &reference.name)).collect()
        })
        .watches(watches.clusters(), move |change| labelled(&by_cluster, &change.itself()))
        .watches(watches.secrets(), move |change| {
            let mut keys = change.controllers("KubeadmConfig");
            // What a waiting configuration reads: the certificate authority and the way to the tenant.
            if ["-ca", "-kubeconfig"].iter().any(|end| change.key.name.ends_with(end)) {
                keys.extend(labelled(&by_secret, &change.named_by(CLUSTER_NAME_LABEL)));
            }
            keys
        });
    let (reconciler, stop) = (Reconciler::new(context), context.stop.clone());
    let leadership = std::sync::Arc::clone(&context.parts.leadership);
    running.spawn(async move {
        builder.run(reconciler, leadership, stop).await;
    });
}

fn key(beside: &ObjectKey, name: &str) -> ObjectKey {
    ObjectKey { namespace: beside.namespace.clone(), name: name.to_owned() }
}

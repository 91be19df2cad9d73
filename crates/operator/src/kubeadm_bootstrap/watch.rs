//! Decides which changes wake a KubeadmConfig: its own, and those of its Machine, its Cluster and the Secrets that it
//! reads.

use hangar_api::bootstrap::v1beta2::KubeadmConfig;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::controller::ControllerBuilder;

use crate::context::Context;
use crate::referring::{is_more_than_status, labelled};

/// The builder with everything that matters.
pub(super) fn watched(context: &Context, builder: ControllerBuilder) -> ControllerBuilder {
    let watches = &context.watches;
    let configs = watches.kubeadm_configs();
    let (by_cluster, by_secret) = (configs.clone(), configs.clone());
    builder
        .roots(configs, is_more_than_status)
        .watches(watches.machines(), |change| {
            let sides = change.before.iter().chain(&change.after);
            let names = sides.filter_map(|machine| machine.spec.bootstrap.config_ref.as_ref());
            let names = names.filter(|reference| reference.is::<KubeadmConfig>());
            names.map(|reference| beside(&change.key, &reference.name)).collect()
        })
        .watches(watches.clusters(), move |change| labelled(&by_cluster, &change.itself()))
        .watches(watches.secrets(), move |change| {
            let mut keys = change.controllers::<KubeadmConfig>();
            // What a waiting configuration reads: the certificate authority and the way to the tenant.
            if ["-ca", "-kubeconfig"].iter().any(|end| change.key.name.ends_with(end)) {
                keys.extend(labelled(&by_secret, &change.named_by(CLUSTER_NAME_LABEL)));
            }
            keys
        })
}

fn beside(key: &ObjectKey, name: &str) -> ObjectKey {
    ObjectKey { namespace: key.namespace.clone(), name: name.to_owned() }
}

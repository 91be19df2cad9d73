//! Reads a MachineDeployment, its MachineSets, their Machines and its templates from the stores. Nothing is read live.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::MachineDeployment;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_plan::machine_deployment::Observed;

use crate::context::Context;
use crate::referring::{of_cluster, served_version};

pub(super) fn cluster_of(deployment: &MachineDeployment) -> ObjectKey {
    ObjectKey { namespace: deployment.metadata.namespace.clone(), name: deployment.spec.cluster_name.clone() }
}

/// What the stores show now.
pub(super) fn observe(context: &Context, root: &Kept<MachineDeployment>) -> Observed {
    let (key, watches) = (&root.key, &context.watches);
    let cluster = cluster_of(root);
    let spec = &root.spec.template.spec;
    let exists = |reference| context.foreign.kept(key.namespace_or_empty(), reference).map(|_| ());
    Observed {
        cluster: watches.clusters().get(&cluster).map(|kept| kept.value.clone()),
        served_version: served_version(context, &cluster),
        sets: of_cluster(watches.machine_sets(), &cluster),
        machines: of_cluster(watches.machines(), &cluster),
        bootstrap_template: spec.bootstrap.config_ref.as_ref().map(exists),
        infrastructure_template: exists(&spec.infrastructure_ref),
        refusals: BTreeMap::new(),
        now: context.ambient.now(),
        deployment: root.value.clone(),
    }
}

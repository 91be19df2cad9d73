//! Reads a MachineDeployment, its MachineSets and their Machines from the stores. Nothing is read live.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::MachineDeployment;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_plan::machine_deployment::Observed;

use crate::context::Context;
use crate::referring::of_cluster;

/// What the stores show now.
pub(super) fn observe(context: &Context, root: &Kept<MachineDeployment>) -> Observed {
    let (key, watches) = (&root.key, &context.watches);
    let name = &root.spec.cluster_name;
    let cluster = ObjectKey { namespace: key.namespace.clone(), name: name.clone() };
    Observed {
        cluster: watches.clusters().get(&cluster).map(|kept| kept.value.clone()),
        sets: of_cluster(watches.machine_sets(), &cluster),
        machines: of_cluster(watches.machines(), &cluster),
        refusals: BTreeMap::new(),
        now: context.ambient.now(),
        deployment: root.value.clone(),
    }
}

//! Who is of a Cluster: whom a change of it wakes.
//!
//! Members have a label with the Cluster's name, by which stores find them at once. It comes from their controllers, so
//! whoever came before the Cluster has none yet and is found by its spec: a walk over the store, for changes of Clusters
//! only.

use hangar_api::cluster::v1beta2::{Machine, MachineDeployment, MachineSet};
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::watch::{Kept, Watch};
use kube::Resource;

/// A kind whose spec names its Cluster.
pub(crate) trait Member {
    fn cluster_name(&self) -> &str;
}

impl Member for MachineDeployment {
    fn cluster_name(&self) -> &str {
        &self.spec.cluster_name
    }
}

impl Member for MachineSet {
    fn cluster_name(&self) -> &str {
        &self.spec.cluster_name
    }
}

impl Member for Machine {
    fn cluster_name(&self) -> &str {
        &self.spec.cluster_name
    }
}

/// Those that have the label of one of these Clusters.
pub(crate) fn labelled<K>(watch: &Watch<K>, clusters: &[ObjectKey]) -> Vec<ObjectKey>
where
    K: Resource + Send + Sync + 'static,
{
    let of = |cluster: &ObjectKey| {
        let found = watch.by_label(CLUSTER_NAME_LABEL, &cluster.name);
        let keys: Vec<ObjectKey> = found
            .iter()
            .filter(|kept| kept.key.namespace == cluster.namespace)
            .map(|kept| kept.key.clone())
            .collect();
        keys
    };
    clusters.iter().flat_map(of).collect()
}

/// Those whose spec names this Cluster.
pub(crate) fn naming<K>(watch: &Watch<K>, cluster: &ObjectKey) -> Vec<ObjectKey>
where
    K: Member + Resource + Send + Sync + 'static,
{
    let is_member =
        |kept: &Kept<K>| kept.key.namespace == cluster.namespace && kept.value.cluster_name() == cluster.name;
    watch.all().iter().filter(|kept| is_member(kept)).map(|kept| kept.key.clone()).collect()
}

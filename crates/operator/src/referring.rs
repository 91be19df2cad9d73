//! Finds the objects that belong together: by reference, by label, by name.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet, MachineSpec};
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_kit::ObjectKey;
use hangar_kit::watch::{Change, Kept, Watch};
use hangar_plan::flow::Read;
use kube::Resource;
use kube::core::DynamicObject;

use crate::context::{Context, Foreign};

/// A kind whose spec names its Cluster. Stores find members at once by what it says, as if all of them had the label with
/// the Cluster's name: who came before the Cluster has none yet, and people can remove it.
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
    clusters.iter().flat_map(|cluster| watch.keys_by_label(CLUSTER_NAME_LABEL, cluster)).collect()
}

/// Those whose spec names this Cluster: a walk over the store, for changes of Clusters only.
pub(crate) fn naming<K>(watch: &Watch<K>, cluster: &ObjectKey) -> Vec<ObjectKey>
where
    K: Member + Resource + Send + Sync + 'static,
{
    let is_member =
        |kept: &Kept<K>| kept.key.namespace == cluster.namespace && kept.value.cluster_name() == cluster.name;
    watch.all().iter().filter(|kept| is_member(kept)).map(|kept| kept.key.clone()).collect()
}

/// Those of a kind that refer to a changed object by its name.
pub(crate) fn referring<K>(
    watch: &Watch<K>,
    change: &Change<DynamicObject>,
    references: impl Fn(&K) -> Vec<&ContractVersionedObjectReference>,
) -> Vec<ObjectKey>
where
    K: Resource + Send + Sync + 'static,
{
    let refers = |kept: &Kept<K>| {
        let is_near = kept.key.namespace == change.key.namespace;
        is_near && references(&kept.value).iter().any(|reference| reference.name == change.key.name)
    };
    watch.all().iter().filter(|kept| refers(kept)).map(|kept| kept.key.clone()).collect()
}

/// What the specification of a Machine, or of Machines to be made, refers to.
pub(crate) fn of_machine(
    spec: &MachineSpec,
) -> impl Iterator<Item = &ContractVersionedObjectReference> + Clone {
    spec.bootstrap.config_ref.iter().chain([&spec.infrastructure_ref])
}

/// Those whose template names a changed object. Only templates matter: what a Machine owns is the Machine's.
pub(crate) fn users<K>(
    watch: &Watch<K>,
    change: &Change<DynamicObject>,
    spec: impl Fn(&K) -> &MachineSpec,
) -> Vec<ObjectKey>
where
    K: Resource + Send + Sync + 'static,
{
    if !owners::<Machine>(change).is_empty() {
        return Vec::new();
    }
    referring(watch, change, |user| of_machine(spec(user)).collect())
}

/// The owners of a kind that a changed object has or had.
pub(crate) fn owners<K: Resource<DynamicType = ()>>(change: &Change<DynamicObject>) -> Vec<ObjectKey> {
    let owners = change.owners().filter(|owner| owner.is::<K>());
    let namespace = &change.key.namespace;
    owners.map(|owner| ObjectKey { namespace: namespace.clone(), name: owner.name.clone() }).collect()
}

/// Whether more than the status of an object changed. Its controller wrote that itself.
pub(crate) fn is_more_than_status<K: Resource>(change: &Change<K>) -> bool {
    let essence = |kept: &Kept<K>| {
        let meta = kept.value.meta();
        (
            meta.generation,
            meta.labels.clone(),
            meta.annotations.clone(),
            meta.finalizers.clone(),
            meta.owner_references.clone(),
            meta.deletion_timestamp.is_some(),
            meta.uid.clone(),
        )
    };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => essence(before) != essence(after),
        _ => true,
    }
}

/// Whether the specification of an object changed, or it is another one.
pub(crate) fn is_another_spec<K: Resource>(change: &Change<K>) -> bool {
    let essence = |kept: &Kept<K>| (kept.value.meta().generation, kept.uid.clone());
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => essence(before) != essence(after),
        _ => true,
    }
}

/// Whether more than the status of a Cluster changed, or what it has reached.
pub(crate) fn is_cluster_news(change: &Change<Cluster>) -> bool {
    let reached =
        |kept: &Kept<Cluster>| kept.status.as_ref().and_then(|status| status.initialization.clone());
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => is_more_than_status(change) || reached(before) != reached(after),
        _ => true,
    }
}

/// The objects of a Cluster, by their index.
pub(crate) fn of_cluster<K>(watch: &Watch<K>, cluster: &ObjectKey) -> Read<K>
where
    K: Resource + Clone + Send + Sync + 'static,
{
    watch.by_label(CLUSTER_NAME_LABEL, cluster).map(|kept| kept.value.clone())
}

/// The control plane that a Cluster refers to, if it is a hosted one.
fn hosted_control_plane(context: &Context, cluster: &ObjectKey) -> Read<ContractVersionedObjectReference> {
    let cluster = context.watches.clusters().get(cluster);
    let reference = match cluster {
        Read::Unknown(unknown) => return Read::Unknown(unknown),
        read => read.iter().next().and_then(|kept| kept.spec.control_plane_ref.clone()),
    };
    let hosted = reference.filter(ContractVersionedObjectReference::is::<HostedControlPlane>);
    hosted.map_or(Read::Absent, Read::One)
}

/// The version that the control plane of a Cluster serves with, if it is a hosted one that has served. It is read as what
/// the Cluster refers to: where there are no hosted control planes, their kind is not installed.
pub(crate) fn served_version(context: &Context, cluster: &ObjectKey) -> Read<String> {
    let reference = match hosted_control_plane(context, cluster) {
        Read::One(reference) => reference,
        Read::Unknown(unknown) => return Read::Unknown(unknown),
        Read::Absent | Read::Many(_) => return Read::Absent,
    };
    match context.foreign.kept(cluster.namespace_or_empty(), &reference) {
        Read::Unknown(unknown) => Read::Unknown(unknown),
        read => Read::found(read.iter().filter_map(|(kept, _)| version_of(kept).map(str::to_owned))),
    }
}

fn version_of(control_plane: &DynamicObject) -> Option<&str> {
    control_plane.data.pointer("/status/version")?.as_str()
}

/// Those of a kind that belong to the Cluster of a control plane, if that serves with another version.
pub(crate) fn waiting_for_version<K>(watch: &Watch<K>, change: &Change<DynamicObject>) -> Vec<ObjectKey>
where
    K: Resource + Send + Sync + 'static,
{
    let version = |kept: &Option<Arc<Kept<DynamicObject>>>| version_of(kept.as_ref()?).map(str::to_owned);
    if version(&change.before) == version(&change.after) {
        return Vec::new();
    }
    labelled(watch, &change.named_by(CLUSTER_NAME_LABEL))
}

/// Whether the store of control planes has only just been started.
pub(crate) fn is_version_starting(context: &Context, cluster: &ObjectKey) -> bool {
    is_starting(&context.foreign, hosted_control_plane(context, cluster).iter())
}

/// Whether a store behind one of the references has only just been started. What it will show in a moment is no reason
/// to say that nothing is known; a store that fails to start is.
pub(crate) fn is_starting<'references>(
    foreign: &Foreign,
    references: impl IntoIterator<Item = &'references ContractVersionedObjectReference>,
) -> bool {
    references.into_iter().any(|reference| {
        let Read::One(resource) = foreign.resource(&reference.api_group, &reference.kind) else {
            return false;
        };
        let watch = foreign.watch(&resource);
        !watch.is_synced() && watch.stats().errors == 0
    })
}

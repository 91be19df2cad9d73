//! Objects behind references, and how Clusters and Machines claim them.
//!
//! A Cluster owns its infrastructure and control plane, a Machine its bootstrap configuration and server, whoever made
//! the objects and whatever their kind. A claim has two parts: an owner reference, by which garbage collection and
//! other controllers find the owner, and the label with the cluster's name. An object that is already claimed is left
//! alone; an object that another owner manages is never taken from it.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::contract::{
    BootstrapConfiguration, Contract, ControlPlane, InfrastructureCluster, InfrastructureMachine,
};
use hangar_api::{names, reference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::{Selector, SelectorExt as _};
use serde_json::Value;

use crate::flow::{Draft, Drafted, StepId, StepOf, Target, Write};

/// An object of a kind whose type is not known, as it was last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Referred {
    pub metadata: ObjectMeta,
    /// Everything else of it.
    pub data: Value,
    /// How to read it.
    pub contract: Contract,
}

/// The metadata that makes an object ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// All owner references it shall have.
    pub owner_references: Vec<OwnerReference>,
    /// Labels to be set.
    pub labels: BTreeMap<String, String>,
}

/// Whether an object is claimed.
#[derive(Clone, Debug, PartialEq)]
pub enum Claiming {
    Held,
    /// It becomes ours with this.
    Needs(Claim),
    /// Another owner manages it: kind and name.
    Taken(String),
}

impl Referred {
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// True while it waits for its finalizers.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// As an infrastructure cluster.
    pub fn infrastructure_cluster(&self) -> InfrastructureCluster<'_> {
        InfrastructureCluster::new(&self.data, self.contract)
    }

    /// As a control plane.
    pub fn control_plane(&self) -> ControlPlane<'_> {
        ControlPlane::new(&self.data, self.contract)
    }

    /// As an infrastructure machine.
    pub fn infrastructure_machine(&self) -> InfrastructureMachine<'_> {
        InfrastructureMachine::new(&self.data, self.contract)
    }

    /// As a bootstrap configuration.
    pub fn bootstrap(&self) -> BootstrapConfiguration<'_> {
        BootstrapConfiguration::new(&self.data, self.contract)
    }

    /// Whether it names this owner and cluster, and what is missing if not. Owners of the dropped kind give way.
    pub fn claiming(&self, owner: &OwnerReference, cluster: &str, dropped: Option<Dropped>) -> Claiming {
        claiming(&self.metadata, owner, cluster, dropped)
    }
}

/// Which owners give way: [`is_kind`] of a type.
pub type Dropped = fn(&OwnerReference) -> bool;

/// See [`Referred::claiming`].
pub fn claiming(
    metadata: &ObjectMeta,
    owner: &OwnerReference,
    cluster: &str,
    dropped: Option<Dropped>,
) -> Claiming {
    let present = metadata.owner_references.as_deref().unwrap_or_default();
    let gives_way = |other: &OwnerReference| dropped.is_some_and(|is_dropped| is_dropped(other));
    let mut owners: Vec<OwnerReference> = present.iter().filter(|other| !gives_way(other)).cloned().collect();
    let is_managed_by_another =
        |other: &&OwnerReference| other.controller == Some(true) && other.uid != owner.uid;
    if owner.controller == Some(true)
        && let Some(other) = owners.iter().find(is_managed_by_another)
    {
        return Claiming::Taken(format!("{} {}", other.kind, other.name));
    }
    match owners.iter_mut().find(|other| other.uid == owner.uid) {
        Some(ours) => {
            if owner.controller == Some(true) {
                ours.controller = owner.controller;
                ours.block_owner_deletion = owner.block_owner_deletion;
            }
        }
        None => owners.push(owner.clone()),
    }
    let has_label = metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(names::CLUSTER_NAME_LABEL))
        .is_some_and(|value| value == cluster);
    if has_label && owners == present {
        return Claiming::Held;
    }
    let labels = BTreeMap::from([(names::CLUSTER_NAME_LABEL.to_owned(), cluster.to_owned())]);
    Claiming::Needs(Claim { owner_references: owners, labels })
}

/// The Cluster of another name that an object belongs to, where it belongs to one: of several the first. The uid does not
/// count: a Cluster that was restored has another one, and is still the same.
pub fn other_cluster<'object>(metadata: &'object ObjectMeta, name: &str) -> Option<&'object str> {
    let mut owners = metadata.owner_references.iter().flatten();
    let first = owners.find(|owner| is_kind::<Cluster>(owner))?;
    (first.name != name).then_some(first.name.as_str())
}

/// What an object of a core kind lacks to belong to its Cluster. One that something else manages belongs to that.
pub fn claim_for_cluster(metadata: &ObjectMeta, cluster: &Cluster, name: &str) -> Option<Claim> {
    if controller(metadata).is_some() {
        return None;
    }
    match claiming(metadata, &owner::<Cluster>(&cluster.metadata, false), name, None) {
        Claiming::Needs(claim) => Some(claim),
        Claiming::Held | Claiming::Taken(_) => None,
    }
}

/// Whether an owner is of this kind, in whatever version.
pub fn is_kind<K: Resource<DynamicType = ()>>(owner: &OwnerReference) -> bool {
    reference::is_kind::<K>(&owner.api_version, &owner.kind)
}

/// A reference to an owner.
pub fn owner<K: Resource<DynamicType = ()>>(metadata: &ObjectMeta, is_controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        controller: is_controller.then_some(true),
        block_owner_deletion: is_controller.then_some(true),
    }
}

/// The owner that manages an object.
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether an object is managed by the owner with this uid.
pub fn is_controlled_by(metadata: &ObjectMeta, uid: &str) -> bool {
    controller(metadata).is_some_and(|owner| owner.uid == uid)
}

/// What ends the pause of an object, if somebody paused it or its Cluster.
pub fn paused(metadata: &ObjectMeta, cluster: Option<&Cluster>) -> Option<&'static str> {
    paused_by(metadata, cluster.is_some_and(|cluster| cluster.spec.paused == Some(true)))
}

/// See [`paused`].
pub fn paused_by(metadata: &ObjectMeta, is_cluster_paused: bool) -> Option<&'static str> {
    let mut annotations = metadata.annotations.iter().flatten();
    if is_cluster_paused {
        return Some("spec.paused of the Cluster to be unset");
    }
    annotations
        .any(|(name, _)| name == names::PAUSED_ANNOTATION)
        .then_some("the annotation cluster.x-k8s.io/paused to be removed")
}

/// Steps that controllers of core kinds plan alike.
impl<P: Drafted> Draft<'_, P>
where
    StepOf<P>: From<Write>,
{
    /// Makes the object a member of its Cluster.
    pub(crate) fn join(&mut self, cluster: &Cluster, cluster_name: &str, name: &'static str) {
        if let Some(claim) = claim_for_cluster(self.metadata(), cluster, cluster_name) {
            self.step(Write::itself(StepId::new("claim", name, ""), claim.fields()));
        }
    }

    /// Deletes an object, unless that was asked for already.
    pub(crate) fn delete<K: Resource<DynamicType = ()>>(&mut self, kind: &'static str, object: &K) {
        if object.meta().deletion_timestamp.is_none() {
            let target = Target::of::<K>(object.meta());
            self.step(Write::delete(StepId::new("delete", kind, &target.name), target));
        }
    }

    /// Takes over the objects that are selected and that nobody manages.
    pub(crate) fn adopt<'a, K: Resource<DynamicType = ()> + 'a>(
        &mut self,
        kind: &'static str,
        selector: &LabelSelector,
        cluster_name: &str,
        objects: impl Iterator<Item = &'a K>,
    ) {
        let Ok(selector) = Selector::try_from(selector.clone()) else { return };
        // A selector that selects everything would take every orphan of the cluster; admission fills empty ones in.
        if selector.selects_all() {
            return;
        }
        let owner = owner::<P::Root>(self.metadata(), true);
        for metadata in objects.map(Resource::meta) {
            let is_orphan = controller(metadata).is_none() && metadata.deletion_timestamp.is_none();
            if !is_orphan || !selector.matches(&metadata.labels.clone().unwrap_or_default()) {
                continue;
            }
            if let Claiming::Needs(claim) = claiming(metadata, &owner, cluster_name, Some(is_kind::<Cluster>))
            {
                let target = Target::of::<K>(metadata);
                self.step(Write::claim(StepId::new("adopt", kind, &target.name), target, &claim));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hangar_api::cluster::v1beta2::MachineSet;

    use super::*;

    fn metadata(owners: &[OwnerReference], label: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            owner_references: Some(owners.to_vec()),
            labels: label
                .map(|value| BTreeMap::from([(names::CLUSTER_NAME_LABEL.to_owned(), value.to_owned())])),
            ..ObjectMeta::default()
        }
    }

    fn named(kind: &str, uid: &str, is_controller: bool) -> OwnerReference {
        let metadata = ObjectMeta {
            name: Some(format!("{uid}-name")),
            uid: Some(uid.to_owned()),
            ..ObjectMeta::default()
        };
        OwnerReference { kind: kind.to_owned(), ..owner::<Cluster>(&metadata, is_controller) }
    }

    #[test]
    fn others_stay_and_ours_is_added_once() {
        let (ours, other) = (named("Cluster", "c", false), named("Thing", "t", true));
        let Claiming::Needs(claim) =
            claiming(&metadata(std::slice::from_ref(&other), None), &ours, "demo", None)
        else {
            panic!("not claimed")
        };
        assert_eq!(claim.owner_references, [other.clone(), ours.clone()]);
        assert_eq!(
            claiming(&metadata(&[other, ours.clone()], Some("demo")), &ours, "demo", None),
            Claiming::Held
        );
    }

    #[test]
    fn a_machine_replaces_its_set_and_nobody_else() {
        let ours = named("Machine", "m", true);
        let set = named("MachineSet", "s", true);
        let Claiming::Needs(claim) =
            claiming(&metadata(&[set], Some("demo")), &ours, "demo", Some(is_kind::<MachineSet>))
        else {
            panic!("not claimed")
        };
        assert_eq!(claim.owner_references, std::slice::from_ref(&ours));
        let other = named("Machine", "other", true);
        let taken = claiming(&metadata(&[other], Some("demo")), &ours, "demo", Some(is_kind::<MachineSet>));
        assert_eq!(taken, Claiming::Taken("Machine other-name".to_owned()));
    }

    #[test]
    fn an_unflagged_reference_becomes_the_managing_one() {
        let (flagged, unflagged) = (named("Machine", "m", true), named("Machine", "m", false));
        let Claiming::Needs(claim) = claiming(&metadata(&[unflagged], Some("demo")), &flagged, "demo", None)
        else {
            panic!("not claimed")
        };
        assert_eq!(claim.owner_references, [flagged]);
    }
}

//! Objects behind references, and how Clusters and Machines claim them.
//!
//! A Cluster owns its infrastructure and control plane, a Machine its bootstrap configuration and server, whoever made
//! the objects and whatever their kind. A claim has two parts: an owner reference, by which garbage collection and
//! other controllers find the owner, and the label with the cluster's name. An object that is already claimed is left
//! alone; an object that another owner manages is never taken from it.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::contract::{
    BootstrapConfiguration, Contract, ControlPlane, Endpoint, InfrastructureCluster, InfrastructureMachine,
};
use hangar_api::conversion::api_version;
use hangar_api::names;
use hangar_api::reference::{self, ContractVersionedObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::{Selector, SelectorExt as _, TypeMeta};
use serde_json::Value;

use crate::flow::{Draft, Drafted, StepId, StepOf, Target, Write};

/// What the views of [`hangar_api::contract`] read of an object, besides its metadata.
const FIELDS: [(&str, &[&str]); 2] = [
    ("spec", &["controlPlaneEndpoint", "failureDomain", "providerID", "replicas", "version"]),
    (
        "status",
        &[
            "addresses",
            "availableReplicas",
            "conditions",
            "dataSecretName",
            "externalManagedControlPlane",
            "failureDomain",
            "failureDomains",
            "initialization",
            "initialized",
            "ready",
            "readyReplicas",
            "replicas",
            "unavailableReplicas",
            "upToDateReplicas",
            "updatedReplicas",
            "v1beta2",
            "version",
            "versions",
        ],
    ),
];

/// What the contract says of an object of a kind whose type is not known, as it was last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Referred {
    pub metadata: ObjectMeta,
    /// The [`FIELDS`] that it has.
    data: Value,
    /// How to read it.
    contract: Contract,
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

/// What the contract names of an object. The rest is the provider's own, and no plan may depend on it.
pub fn contract_fields(object: &Value) -> Value {
    let part = |(part, names): (&str, &[&str])| {
        let given = object.get(part)?;
        let found = names.iter().filter_map(|name| Some(((*name).to_owned(), given.get(name)?.clone())));
        Some((part.to_owned(), Value::Object(found.collect())))
    };
    Value::Object(FIELDS.into_iter().filter_map(part).collect())
}

impl Referred {
    pub fn new(metadata: ObjectMeta, object: &Value, contract: Contract) -> Self {
        Self { metadata, data: contract_fields(object), contract }
    }

    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Its resourceVersion.
    pub fn version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// True while it waits for its finalizers.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// As an infrastructure cluster.
    pub fn infrastructure_cluster(&self) -> InfrastructureCluster<'_> {
        InfrastructureCluster::new(&self.data, self.contract)
    }

    /// The endpoint of an infrastructure cluster as it is given, also half of one.
    pub fn given_endpoint(&self) -> Endpoint {
        let endpoint = self.data.pointer("/spec/controlPlaneEndpoint").cloned().unwrap_or_default();
        serde_json::from_value(endpoint).unwrap_or_default()
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

/// What an object of a core kind lacks to belong to its Cluster. One that something else manages is owned by that, and has
/// only the label.
pub fn claim_for_cluster(metadata: &ObjectMeta, cluster: &Cluster, name: &str) -> Option<Claim> {
    let cluster = owner::<Cluster>(&cluster.metadata, false);
    let manager = controller(metadata).cloned();
    match claiming(metadata, manager.as_ref().unwrap_or(&cluster), name, None) {
        Claiming::Needs(claim) => Some(claim),
        Claiming::Held | Claiming::Taken(_) => None,
    }
}

/// Whether an owner is of this kind, in whatever version.
pub fn is_kind<K: Resource<DynamicType = ()>>(owner: &OwnerReference) -> bool {
    reference::is_kind::<K>(&owner.api_version, &owner.kind)
}

/// Whether a reference names objects of this kind, in whatever version.
pub fn is_kind_of(reference: &ContractVersionedObjectReference, types: &TypeMeta) -> bool {
    let (group, _) = api_version::split(&types.api_version);
    (reference.api_group.as_str(), &reference.kind) == (group, &types.kind)
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
    use serde_json::json;

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
    fn a_label_that_was_removed_is_put_back_and_the_owner_stays() {
        let (manager, cluster) = (named("MachineSet", "s", true), Cluster::default());
        let claim = |label| {
            let metadata = metadata(std::slice::from_ref(&manager), label);
            claim_for_cluster(&metadata, &cluster, "demo")
        };
        assert_eq!(claim(Some("demo")), None);
        for label in [None, Some("other")] {
            let claim = claim(label).unwrap();
            assert_eq!(claim.owner_references, std::slice::from_ref(&manager));
            assert_eq!(claim.labels[names::CLUSTER_NAME_LABEL], "demo");
        }
    }

    #[test]
    fn only_what_the_contract_names_is_taken_and_all_of_it_is() {
        let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "R", "message": "m"});
        let object = json!({
            "spec": {
                "controlPlaneEndpoint": {"host": "api", "port": 6443}, "version": "v1.34.0", "replicas": 3,
                "providerID": "openstack:///a", "failureDomain": "old", "own": "provider's",
            },
            "status": {
                "ready": true, "initialized": true, "externalManagedControlPlane": true, "version": "v1.34.0",
                "initialization": {"provisioned": true, "controlPlaneInitialized": true, "dataSecretCreated": true},
                "conditions": [condition("Ready")], "v1beta2": {"conditions": [condition("Ready"), condition("Available")]},
                "versions": [{"version": "v1.34.0", "replicas": 3}], "replicas": 3, "readyReplicas": 2,
                "availableReplicas": 1, "unavailableReplicas": 2, "updatedReplicas": 1, "upToDateReplicas": 1,
                "failureDomains": [{"name": "nova", "controlPlane": true}], "failureDomain": "nova",
                "addresses": [{"type": "InternalIP", "address": "10.6.0.5"}], "dataSecretName": "a", "own": "provider's",
            },
        });
        for contract in [Contract::V1Beta1, Contract::V1Beta2] {
            let taken = Referred::new(ObjectMeta::default(), &object, contract);
            assert!(!taken.data.to_string().contains("own"), "{}", taken.data);
            let plane = |view: ControlPlane<'_>| {
                let conditions = (view.available_condition(), view.condition("Ready"));
                let versions = (view.desired_version().map(str::to_owned), view.versions());
                let flags = (view.is_initialized(), view.is_externally_managed(), view.is_ready());
                (view.endpoint(), flags, conditions, versions, view.replicas())
            };
            assert_eq!(plane(taken.control_plane()), plane(ControlPlane::new(&object, contract)));
            let cluster = |view: InfrastructureCluster<'_>| {
                (view.is_provisioned(), view.endpoint(), view.failure_domains(), view.ready_condition())
            };
            let whole = InfrastructureCluster::new(&object, contract);
            assert_eq!(cluster(taken.infrastructure_cluster()), cluster(whole));
            let machine = |view: InfrastructureMachine<'_>| {
                let texts = (view.provider_id().map(str::to_owned), view.failure_domain().map(str::to_owned));
                (view.is_provisioned(), texts, view.addresses(), view.ready_condition())
            };
            let whole = InfrastructureMachine::new(&object, contract);
            assert_eq!(machine(taken.infrastructure_machine()), machine(whole));
            let bootstrap = |view: BootstrapConfiguration<'_>| {
                let name = view.data_secret_name().map(str::to_owned);
                (view.is_data_secret_created(), name, view.ready_condition())
            };
            let whole = BootstrapConfiguration::new(&object, contract);
            assert_eq!(bootstrap(taken.bootstrap()), bootstrap(whole));
        }
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

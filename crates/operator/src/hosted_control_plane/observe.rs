//! Makes the observation of a HostedControlPlane from the stores.
//!
//! User-provided Secrets, etcd and the tenant are read only when the plan asks for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::backup::Work;
use hangar_plan::hosted_control_plane::exposure::Ways;
use hangar_plan::hosted_control_plane::names::{Component, INSTANCE_LABEL};
use hangar_plan::hosted_control_plane::{
    ClusterFacts, InfrastructureFacts, MOST_MEMBERS, NOT_ASKED, Names, Observed, OwnedObject, PodFacts,
    members_to_ask,
};
use hangar_plan::neighbours::Neighbour;

use super::watch;
use super::workload::OwnPod;
use crate::context::Context;

type KeptCluster = Arc<Kept<Cluster>>;

/// What the stores show. Secrets that people brought, etcd, and the tenant are read when the plan asks for them.
pub(super) fn observe(context: &Context, root: &Kept<HostedControlPlane>) -> Observed {
    let cluster = owner(context, root);
    let now = context.ambient.now();
    let mut observed = Observed {
        now,
        clocks: context.handles.clock.at(now),
        limits: Arc::clone(&context.handles.limits),
        control_plane: root.value.clone(),
        cluster: cluster.as_ref().map(|kept| ClusterFacts::of(&kept.value)),
        infrastructure: infrastructure(context, &cluster),
        secrets: BTreeMap::new(),
        copies: BTreeMap::new(),
        etcd: not_read(),
        etcd_pods: not_read(),
        etcd_claims: not_read(),
        etcd_members: not_read(),
        etcd_list: Read::unknown(NOT_ASKED),
        api_server: not_read(),
        api_server_pods: not_read(),
        controller_manager: not_read(),
        scheduler: not_read(),
        controller_pods: not_read(),
        service: not_read(),
        tunnel: not_read(),
        ways: Ways::unknown(NOT_ASKED),
        tenant: not_read(),
        addons: BTreeMap::new(),
        network_policies: not_read(),
        cilium_policies: not_read(),
        pod_monitors: not_read(),
        restorable: Read::unknown(NOT_ASKED),
        sources: BTreeMap::new(),
        manager_image: context.handles.image.clone(),
        manager_namespace: context.handles.own_namespace.clone(),
        backup: Work::None,
        troubles: BTreeMap::new(),
    };
    if let Some(names) = observed.names() {
        observe_workloads(context, &mut observed, &names, &root.uid);
    }
    observed.etcd_members = Read::unknown(if members_to_ask(&observed).is_empty() {
        "no member of etcd has started"
    } else {
        NOT_ASKED
    });
    observed.tenant = Read::unknown(if root.is_terminating {
        "the control plane is being deleted"
    } else if observed.is_restoring() {
        "its data is replaced by that of a backup"
    } else if observed.api_server.iter().all(|facts| facts.ready < 1) {
        "no API server is ready"
    } else {
        NOT_ASKED
    });
    observed
}

/// The Cluster's key: tenants are known by it.
pub(super) fn cluster_key(observed: &Observed) -> ObjectKey {
    let names = observed.names();
    let key = names.map(|names| ObjectKey::namespaced(names.namespace(), names.cluster()));
    key.unwrap_or_else(|| ObjectKey::of(&observed.control_plane))
}

/// The Cluster that a control plane belongs to: the one that owns it, else the one that names it, else the one whose
/// label it carries.
fn owner(context: &Context, root: &Kept<HostedControlPlane>) -> Read<KeptCluster> {
    let clusters = context.watches.clusters();
    let get = |name: &str| {
        clusters.get(&ObjectKey { namespace: root.key.namespace.clone(), name: name.to_owned() })
    };
    if let Some(owner) = root.owners.iter().find(|owner| owner.is::<Cluster>()) {
        return get(&owner.name);
    }
    let near = clusters.in_namespace(&root.key.namespace, |_| true);
    let naming = near.filter(|kept| watch::named(kept).as_ref() == Some(&root.key));
    match (&naming, root.labels.get(CLUSTER_NAME_LABEL)) {
        (Read::Absent, Some(name)) => get(name),
        _ => naming,
    }
}

/// Workloads that this control plane manages. Others of these names are not seen: applying ours is refused then, and
/// nobody deletes them.
fn observe_workloads(context: &Context, observed: &mut Observed, names: &Names, uid: &str) {
    let watches = &context.watches;
    let key = |name: String| ObjectKey::namespaced(names.namespace(), name);
    let etcd = watches.stateful_sets().get(&key(names.etcd()));
    observed.etcd = etcd.filter(|kept| is_managed_by(kept, uid)).map(|kept| kept.facts.clone());
    let deployment = |name| {
        let found = watches.deployments().get(&key(name));
        found.filter(|kept| is_managed_by(kept, uid)).map(|kept| kept.facts.clone())
    };
    observed.api_server = deployment(names.api_server());
    observed.controller_manager = deployment(names.controller_manager());
    observed.scheduler = deployment(names.scheduler());
    let service = |name| {
        let found = watches.services().get(&key(name));
        found.filter(|kept| is_managed_by(kept, uid)).map(|kept| kept.facts.clone())
    };
    observed.service = service(names.api_server_service());
    observed.tunnel = service(names.konnectivity_service());
    observed.etcd_pods = pods(context, names, &[Component::Etcd]);
    let claims = watches.etcd_claims().by_label(INSTANCE_LABEL, &key(names.identity().to_owned()));
    let is_member = |name: &String| (0..MOST_MEMBERS).any(|ordinal| names.etcd_claim(ordinal) == *name);
    observed.etcd_claims = claims.filter(|kept| is_member(&kept.key.name)).map(|kept| kept.0.clone());
    observed.api_server_pods = pods(context, names, &[Component::ApiServer]);
    let controllers = [Component::ControllerManager, Component::Scheduler];
    observed.controller_pods = pods(context, names, &controllers);
    let cluster = key(names.cluster().to_owned());
    let policies = watches.network_policies().by_label(CLUSTER_NAME_LABEL, &cluster).known();
    observed.network_policies =
        policies.map_or_else(Read::Unknown, |found| Read::One(owned(&found, uid, |_| None)));
    let neighbours = |kind| {
        let found = context.neighbours.of_cluster(kind, &cluster);
        found.map(|found| owned(&found, uid, |text| text.facts.clone()))
    };
    observed.cilium_policies = neighbours(Neighbour::CiliumNetworkPolicies);
    observed.pod_monitors = neighbours(Neighbour::PodMonitors);
}

/// Those of these objects that this control plane manages, by name.
fn owned<F>(
    found: &[Arc<Kept<F>>],
    uid: &str,
    problem: impl Fn(&F) -> Option<String>,
) -> BTreeMap<String, OwnedObject> {
    let own = found.iter().filter(|kept| is_managed_by(kept, uid));
    let object = |kept: &Arc<Kept<F>>| OwnedObject {
        uid: kept.uid.clone(),
        is_deleting: kept.is_terminating,
        problem: problem(&kept.value),
    };
    own.map(|kept| (kept.key.name.clone(), object(kept))).collect()
}

fn pods(context: &Context, names: &Names, components: &[Component]) -> Read<PodFacts> {
    let cluster = ObjectKey::namespaced(names.namespace(), names.cluster());
    let pods = context.watches.pods().by_label(CLUSTER_NAME_LABEL, &cluster);
    let is_wanted = |pod: &OwnPod| components.iter().any(|component| pod.is_of(*component));
    pods.filter(|kept| is_wanted(&kept.0)).map(|kept| kept.0.facts.clone())
}

/// Whether an object is managed by the owner with this uid.
pub(super) fn is_managed_by<F>(kept: &Kept<F>, uid: &str) -> bool {
    kept.owners.iter().any(|owner| owner.is_controller && owner.uid == uid)
}

fn not_read<T>() -> Read<T> {
    Read::unknown("it was not looked for")
}

fn infrastructure(context: &Context, cluster: &Read<KeptCluster>) -> Read<InfrastructureFacts> {
    let cluster = match cluster {
        Read::One(cluster) => cluster,
        Read::Unknown(unknown) => return Read::Unknown(unknown.clone()),
        Read::Absent | Read::Many(_) => return Read::Absent,
    };
    let Some(reference) = &cluster.spec.infrastructure_ref else {
        return Read::Absent;
    };
    context.foreign.get(cluster.key.namespace_or_empty(), reference).map(|referred| InfrastructureFacts {
        reference: reference.clone(),
        uid: referred.uid().to_owned(),
        endpoint: referred.given_endpoint(),
    })
}

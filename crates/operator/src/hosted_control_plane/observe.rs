//! What the stores and the tenant show, as the plan wants to see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::error::Error;
use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::names::Component;
use hangar_plan::hosted_control_plane::{ClusterFacts, InfrastructureFacts, Names, Observed, PodFacts};
use jiff::Timestamp;
use kube::core::DynamicObject;

use super::{ControlPlanes, watch, workload};

type KeptCluster = Arc<Kept<Cluster>>;

impl ControlPlanes {
    /// Everything one plan is made from.
    pub(super) async fn observed(&self, root: &Kept<HostedControlPlane>) -> Observed {
        let cluster = self.owner(root);
        let mut observed = Observed {
            now: Timestamp::now(),
            control_plane: root.value.clone(),
            cluster: cluster.as_ref().map(|kept| ClusterFacts::of(&kept.value)),
            infrastructure: infrastructure(self, &cluster),
            secrets: BTreeMap::new(),
            etcd: not_read(),
            etcd_pods: not_read(),
            api_server: not_read(),
            api_server_pods: not_read(),
            controller_manager: not_read(),
            scheduler: not_read(),
            service: not_read(),
            tenant: not_read(),
            troubles: BTreeMap::new(),
        };
        let namespace = root.key.namespace_or_empty();
        // A name that nothing can be named after has nothing to be looked for.
        if let Some(names) = owner_name(&cluster, root).and_then(|name| Names::new(&name, namespace).ok()) {
            observed.secrets = self.secrets(&names, &root.uid).await;
            self.observe_workloads(&mut observed, &names, &root.uid);
            let cluster = ObjectKey::namespaced(namespace, names.cluster());
            self.look_at_tenant(&mut observed, &root.key, &cluster).await;
        }
        observed
    }

    /// The Cluster that a control plane belongs to: the one that owns it, else the one that names it, else the one whose
    /// label it carries.
    pub(super) fn owner(&self, root: &Kept<HostedControlPlane>) -> Read<KeptCluster> {
        let clusters = self.context.watches.clusters();
        let get = |name: &str| {
            clusters.get(&ObjectKey { namespace: root.key.namespace.clone(), name: name.to_owned() })
        };
        if let Some(owner) = root.owners.iter().find(|owner| owner.kind == "Cluster") {
            return get(&owner.name);
        }
        let naming = clusters.all().filter(|kept| watch::named(kept).as_ref() == Some(&root.key));
        match (&naming, root.labels.get(CLUSTER_NAME_LABEL)) {
            (Read::Absent, Some(name)) => get(name),
            _ => naming,
        }
    }

    /// Workloads that this control plane manages. Others of these names are not seen: applying ours is refused then, and
    /// nobody deletes them.
    fn observe_workloads(&self, observed: &mut Observed, names: &Names, uid: &str) {
        let watches = &self.context.watches;
        let key = |name: String| ObjectKey::namespaced(names.namespace(), name);
        let etcd = watches.stateful_sets().get(&key(names.etcd()));
        observed.etcd =
            etcd.filter(|kept| is_managed_by(kept, uid)).map(|kept| workload::stateful_set(&kept));
        let deployment = |name| {
            let found = watches.deployments().get(&key(name));
            found.filter(|kept| is_managed_by(kept, uid)).map(|kept| workload::deployment(&kept))
        };
        observed.api_server = deployment(names.api_server());
        observed.controller_manager = deployment(names.controller_manager());
        observed.scheduler = deployment(names.scheduler());
        let service = watches.services().get(&key(names.api_server_service()));
        observed.service =
            service.filter(|kept| is_managed_by(kept, uid)).map(|kept| workload::service(&kept));
        observed.etcd_pods = self.pods(names, Component::Etcd);
        observed.api_server_pods = self.pods(names, Component::ApiServer);
    }

    fn pods(&self, names: &Names, component: Component) -> Read<PodFacts> {
        let pods = self.context.watches.pods().by_label(CLUSTER_NAME_LABEL, names.cluster());
        let pods = pods.filter(|kept| {
            kept.key.namespace_or_empty() == names.namespace() && workload::is_of(kept, component)
        });
        pods.map(|kept| workload::pod(&kept))
    }
}

/// Whether an object is managed by the owner with this uid.
fn is_managed_by<F>(kept: &Kept<F>, uid: &str) -> bool {
    kept.owners.iter().any(|owner| owner.is_controller && owner.uid == uid)
}

/// The name of the Cluster, also of one that is gone: what is named after it has to go too.
pub(super) fn owner_name(cluster: &Read<KeptCluster>, root: &Kept<HostedControlPlane>) -> Option<String> {
    if let Read::One(kept) = cluster {
        return Some(kept.key.name.clone());
    }
    let owner = root.owners.iter().find(|owner| owner.kind == "Cluster").map(|owner| &owner.name);
    owner.or_else(|| root.labels.get(CLUSTER_NAME_LABEL)).cloned()
}

fn not_read<T>() -> Read<T> {
    Read::unknown("it was not looked for")
}

fn infrastructure(this: &ControlPlanes, cluster: &Read<KeptCluster>) -> Read<InfrastructureFacts> {
    let cluster = match cluster {
        Read::One(cluster) => cluster,
        Read::Unknown(unknown) => return Read::Unknown(unknown.clone()),
        Read::Absent | Read::Many(_) => return Read::Absent,
    };
    let Some(reference) = &cluster.spec.infrastructure_ref else {
        return Read::Absent;
    };
    this.context.foreign.get(cluster.key.namespace_or_empty(), reference).map(|referred| {
        InfrastructureFacts {
            api_version: referred.resource.api_version.clone(),
            kind: referred.resource.kind.clone(),
            name: reference.name.clone(),
            uid: referred.object.uid.clone(),
            endpoint: endpoint(&referred.object),
        }
    })
}

/// The endpoint as it is, also half of one.
pub(super) fn endpoint(object: &DynamicObject) -> Endpoint {
    let endpoint = object.data.pointer("/spec/controlPlaneEndpoint").cloned().unwrap_or_default();
    serde_json::from_value(endpoint).unwrap_or_default()
}

/// Why there is nothing to go by.
pub(super) fn unknown(what: &ObjectKey, unknown: hangar_plan::flow::Unknown) -> Error {
    Error::Undecidable { what: format!("{} {what}", super::KIND), unknown }
}

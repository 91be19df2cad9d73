//! Keeps one store for each kind, started by the first controller that asks for it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::OnceLock;

use hangar_api::bootstrap::v1beta2::KubeadmConfig;
use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::Error;
use hangar_kit::metrics::WatchMetrics;
use hangar_kit::watch::{Watch, WatchBuilder};
use hangar_plan::hosted_control_plane::names::{COMPONENT_LABEL, Component, INSTANCE_LABEL};
use hangar_plan::hosted_control_plane::{ClaimFacts, ServiceFacts, WorkloadFacts};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Resource;
use kube::core::{ApiResource, PartialObjectMeta};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{Facts, Kind, Reach, Text};
use crate::hosted_control_plane::workload::{self, OwnPod};
use crate::referring;

/// What is kept of a Secret: never its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecretFacts {
    /// Hashes, expiry and the like, written by whoever made the content.
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
}

/// The stores. Children (Secrets, workloads) are those that carry the label of a cluster, and no others.
pub(crate) struct Watches {
    reach: Reach,
    metrics: WatchMetrics,
    stop: CancellationToken,
    clusters: OnceLock<Watch<Cluster>>,
    machines: OnceLock<Watch<Machine>>,
    machine_sets: OnceLock<Watch<MachineSet>>,
    machine_deployments: OnceLock<Watch<MachineDeployment>>,
    control_planes: OnceLock<Watch<HostedControlPlane>>,
    kubeadm_configs: OnceLock<Watch<KubeadmConfig>>,
    openstack_clusters: OnceLock<Watch<OpenStackCluster>>,
    openstack_machines: OnceLock<Watch<OpenStackMachine>>,
    secrets: OnceLock<Watch<PartialObjectMeta<Secret>, SecretFacts>>,
    config_maps: OnceLock<Watch<ConfigMap, Text<()>>>,
    services: OnceLock<Watch<Service, Text<ServiceFacts>>>,
    pods: OnceLock<Watch<Pod, Facts<OwnPod>>>,
    etcd_claims: OnceLock<Watch<PersistentVolumeClaim, Facts<ClaimFacts>>>,
    stateful_sets: OnceLock<Watch<StatefulSet, Text<WorkloadFacts>>>,
    deployments: OnceLock<Watch<Deployment, Text<WorkloadFacts>>>,
    pod_disruption_budgets: OnceLock<Watch<PodDisruptionBudget, Text<()>>>,
    network_policies: OnceLock<Watch<NetworkPolicy, Text<()>>>,
}

macro_rules! stores {
    ($($(#[$doc:meta])* $name:ident: $kind:ty => $kept:ty, $how:ident, $project:expr;)*) => {
        impl Watches {
            pub(super) fn new(reach: Reach, metrics: WatchMetrics, stop: CancellationToken) -> Self {
                Self { reach, metrics, stop, secrets: OnceLock::new(), $($name: OnceLock::new()),* }
            }

            /// A kind whose store was started, by its group and name.
            pub(super) fn kind(&self, group: &str, kind: &str) -> Option<Kind> {
                $(if let Some(watch) = self.$name.get().filter(|_| is::<$kind>(group, kind)) {
                    let resource = ApiResource::erase::<$kind>(&());
                    return Some(Kind::new(resource, vec![Box::new(watch.clone())]));
                })*
                let secrets = self.secrets.get().filter(|_| is::<Secret>(group, kind))?;
                Some(Kind::new(ApiResource::erase::<Secret>(&()), vec![Box::new(secrets.clone())]))
            }

            /// Starts every store: for previews, in which nobody subscribes to them.
            pub(crate) fn start_all(&self) {
                $(let _ = self.$name();)*
                let _ = self.secrets();
            }

            /// Returns when every store that was started is listed, or one cannot be.
            pub(super) async fn listed(&self) -> Result<(), Error> {
                $(if let Some(watch) = self.$name.get() {
                    watch.listed().await?;
                })*
                match self.secrets.get() {
                    Some(secrets) => secrets.listed().await,
                    None => Ok(()),
                }
            }

            $($(#[$doc])*
            pub(crate) fn $name(&self) -> &Watch<$kind, $kept> {
                self.$name.get_or_init(|| self.start(self.$how(stringify!($name)), $project))
            })*
        }
    };
}

fn is<K: Resource<DynamicType = ()>>(group: &str, kind: &str) -> bool {
    K::group(&()) == group && K::kind(&()) == kind
}

stores! {
    clusters: Cluster => Cluster, every, |object| object;
    /// Every Machine, by cluster.
    machines: Machine => Machine, of_members, |object| object;
    /// Every MachineSet, by cluster.
    machine_sets: MachineSet => MachineSet, of_members, |object| object;
    /// Every MachineDeployment, by cluster.
    machine_deployments: MachineDeployment => MachineDeployment, of_members, |object| object;
    /// Every HostedControlPlane, by cluster.
    control_planes: HostedControlPlane => HostedControlPlane, by_cluster, |object| object;
    /// Every KubeadmConfig, by cluster.
    kubeadm_configs: KubeadmConfig => KubeadmConfig, by_cluster, |object| object;
    /// Every OpenStackCluster, by cluster.
    openstack_clusters: OpenStackCluster => OpenStackCluster, by_cluster, |object| object;
    /// Every OpenStackMachine, by cluster.
    openstack_machines: OpenStackMachine => OpenStackMachine, by_cluster, |object| object;
    config_maps: ConfigMap => Text<()>, of_clusters, |object| Text::new(&object, ());
    services: Service => Text<ServiceFacts>, of_clusters, |object| Text::new(&object, workload::service(&object));
    pods: Pod => Facts<OwnPod>, of_clusters, |object| Facts(workload::own_pod(&object));
    /// Claims of etcd's volumes, which carry no label of a cluster: a StatefulSet cannot give them another one later.
    etcd_claims: PersistentVolumeClaim => Facts<ClaimFacts>, of_etcd, |object| Facts(workload::claim(&object));
    stateful_sets: StatefulSet => Text<WorkloadFacts>, of_clusters,
        |object| Text::new(&object, workload::stateful_set(&object));
    deployments: Deployment => Text<WorkloadFacts>, of_clusters,
        |object| Text::new(&object, workload::deployment(&object));
    pod_disruption_budgets: PodDisruptionBudget => Text<()>, of_clusters, |object| Text::new(&object, ());
    network_policies: NetworkPolicy => Text<()>, of_clusters, |object| Text::new(&object, ());
}

impl Watches {
    /// Secrets of clusters, without their content.
    pub(crate) fn secrets(&self) -> &Watch<PartialObjectMeta<Secret>, SecretFacts> {
        self.secrets.get_or_init(|| {
            let builder: WatchBuilder<PartialObjectMeta<Secret>> = self.of_clusters("secrets");
            let watch = builder.project(&self.stop, |secret| SecretFacts {
                annotations: secret.metadata.annotations.unwrap_or_default(),
                labels: secret.metadata.labels.unwrap_or_default(),
                finalizers: secret.metadata.finalizers.unwrap_or_default(),
            });
            self.count(&watch);
            watch
        })
    }

    fn every<K>(&self, name: &str) -> WatchBuilder<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        WatchBuilder::over(name.replace('_', "-"), self.reach.typed())
    }

    /// By what their spec says: the label is put back when somebody removes it, and they belong together meanwhile.
    fn of_members<K>(&self, name: &str) -> WatchBuilder<K>
    where
        K: referring::Member
            + Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        self.by_cluster(name).named(referring::Member::cluster_name)
    }

    fn by_cluster<K>(&self, name: &str) -> WatchBuilder<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        self.every(name).index_label(CLUSTER_NAME_LABEL)
    }

    fn of_clusters<K>(&self, name: &str) -> WatchBuilder<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        self.by_cluster(name).labels(CLUSTER_NAME_LABEL)
    }

    fn of_etcd<K>(&self, name: &str) -> WatchBuilder<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        let etcd = format!("{INSTANCE_LABEL},{COMPONENT_LABEL}={}", Component::Etcd.as_str());
        self.every(name).index_label(INSTANCE_LABEL).labels(&etcd)
    }

    fn start<K, F>(
        &self,
        builder: WatchBuilder<K>,
        project: impl Fn(K) -> F + Send + Sync + 'static,
    ) -> Watch<K, F>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        F: Send + Sync + 'static,
    {
        let watch = builder.project(&self.stop, project);
        self.count(&watch);
        watch
    }

    fn count<K: Resource + 'static, F: Send + Sync + 'static>(&self, watch: &Watch<K, F>) {
        let counted = watch.clone();
        self.metrics.add(watch.name(), move || counted.stats());
    }
}

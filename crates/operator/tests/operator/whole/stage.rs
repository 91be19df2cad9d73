//! The world of a whole Cluster: a namespace, a cloud, a tenant, and actors for kubelets, load balancers and machines.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigTemplate};
use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine, OpenStackMachineTemplate};
use hangar_cloud::Handle;
use hangar_cloud::model::Status;
use hangar_kit::call::CallLog;
use hangar_testbed::Port;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::described::Catalog;
use super::strikes::stable;
use crate::hosted_control_plane::actor::Actor;
use crate::hosted_control_plane::addons;
use crate::hosted_control_plane::tenant::{MATERIAL, Tenant};
use crate::hosted_control_plane::world::{SWEPT, World};
use crate::workers::cloud::{clouds_yaml, inventory, start};

/// Which half of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Birth,
    Death,
}

/// What all worlds share, since it takes long to start.
pub(super) struct Ground {
    port: Port,
    tenant: OnceCell<(Tenant, Catalog, BTreeSet<String>)>,
    catalog: OnceCell<Catalog>,
    /// What managers called in the management cluster.
    pub(super) calls: CallLog,
}

impl Ground {
    pub(super) fn new() -> Self {
        let (tenant, catalog) = (OnceCell::new(), OnceCell::new());
        Self { port: Port::reserve().unwrap(), tenant, catalog, calls: CallLog::default() }
    }
}

/// One world. Whatever lives in it ends with it.
pub(super) struct Stage<'a> {
    pub(super) ground: &'a Ground,
    pub(super) world: World,
    actor: Actor,
    cloud: Handle,
    tenant: OnceCell<Client>,
}

impl<'a> Stage<'a> {
    /// A world in which somebody has applied a Cluster.
    pub(super) async fn new(ground: &'a Ground) -> Self {
        let world = World::new_in(&SWEPT, "whole").await;
        clear(&world.client).await;
        let actor = Actor::start(&world);
        actor.run("etcd");
        let cloud = start().await;
        for object in manifests(&clouds_yaml(&cloud, "secret"), ground.port.number()) {
            apply(&world, object).await;
        }
        ground.catalog.get_or_init(|| Catalog::of(&world.client)).await;
        Self { ground, world, actor, cloud, tenant: OnceCell::new() }
    }

    /// Whether everything is as the person wants it. Only then a manager that rests is done.
    pub(super) async fn is_at(&self, goal: Half) -> bool {
        let cluster = self.world.api::<Cluster>().get_opt("demo").await.unwrap();
        let Some(cluster) = cluster else {
            return goal == Half::Death;
        };
        if goal == Half::Death {
            return false;
        }
        let conditions = cluster.status.unwrap_or_default().conditions.unwrap_or_default();
        let is_true =
            |type_: &str| conditions.iter().any(|found| found.type_ == type_ && found.status == "True");
        // A cluster is available before all parts of its control plane run.
        is_true("Available")
            && is_true("WorkersAvailable")
            && self.world.condition("Ready").await.0 == "True"
            && self.world.condition("WorkloadReady").await.0 == "True"
    }

    pub(super) async fn delete(&self) {
        self.world.api::<Cluster>().delete("demo", &DeleteParams::default()).await.unwrap();
    }

    /// Everything there is in the namespace, in the cloud, and while there is one in the tenant. What is there twice is
    /// told twice.
    pub(super) async fn described(&self, half: Half) -> Vec<String> {
        let namespace = &self.world.namespace;
        let catalog = self.ground.catalog.get().unwrap();
        let mut all = catalog.describe(&self.world.client, namespace, half == Half::Death).await;
        for (kind, names) in inventory(&self.cloud) {
            all.extend(names.iter().map(|name| format!("cloud: {kind} {}", stable(name, namespace))));
        }
        // Nobody cleans a tenant that goes as a whole.
        if let (Half::Birth, Some(client)) = (half, self.tenant.get()) {
            let (_, catalog, pristine) = self.ground.tenant.get().unwrap();
            let found = catalog.inventory(client).await;
            all.extend(found.difference(pristine).map(|one| format!("tenant: {}", stable(one, namespace))));
        }
        all.sort();
        all
    }

    /// Leaves the tenant as it was found.
    pub(super) async fn end(&self) {
        if let (Some(client), Some((_, catalog, pristine))) = (self.tenant.get(), self.ground.tenant.get()) {
            catalog.reset(client, pristine).await;
        }
    }

    /// Plays kubelets here and in the tenant, without end: the tenant runs with what was minted, pods of its parts are
    /// ready once it answers, a server that runs in the cloud joins as a Node, once, and add-ons run on it.
    pub(super) async fn play(&self) {
        let client = self.served().await;
        for part in ["api-server", "controller-manager", "scheduler"] {
            self.actor.run(part);
        }
        self.tenant.get_or_init(async || client.clone()).await;
        let mut joined = BTreeSet::new();
        for turn in 0_u64.. {
            let running: Vec<(String, String)> = {
                let model = self.cloud.model();
                let active = model.servers.values().filter(|server| server.status == Status::Active);
                active.map(|server| (server.name.clone(), server.id.to_string())).collect()
            };
            for (name, id) in running {
                if joined.insert(id.clone()) {
                    join(&client, &name, &id).await;
                }
            }
            if turn % 10 == 0 && !joined.is_empty() {
                addons::run_all(&client).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn served(&self) -> Client {
        self.minted().await;
        let is_first = !self.ground.tenant.initialized();
        let (tenant, ..) = self
            .ground
            .tenant
            .get_or_init(async || {
                let tenant = Tenant::start(&self.world, self.ground.port.number()).await;
                let client = tenant.client();
                let catalog = Catalog::of(&client).await;
                let pristine = catalog.inventory(&client).await;
                (tenant, catalog, pristine)
            })
            .await;
        if is_first { tenant.client() } else { tenant.serve(&self.world).await }
    }

    async fn minted(&self) {
        loop {
            let names = self.world.names::<Secret>().await;
            let has = |suffix: &str| names.contains(&format!("demo-{suffix}"));
            if MATERIAL.into_iter().all(has) && has("operator-access") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A kubelet registers its Node.
async fn join(client: &Client, name: &str, id: &str) {
    let api: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"providerID": format!("openstack:///{id}"),
            "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]},
    }))
    .unwrap();
    api.create(&PostParams::default(), &node).await.unwrap();
    let status =
        json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn apply(world: &World, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let api: Api<DynamicObject> =
        Api::namespaced_with(world.client.clone(), &world.namespace, &ApiResource::from_gvk(&kind));
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// What a person applies, as `up` does it.
fn manifests(clouds_yaml: &str, port: u16) -> Vec<Value> {
    // Which the webhook adds that does not run here.
    let worker =
        json!({"cluster.x-k8s.io/cluster-name": "demo", "cluster.x-k8s.io/deployment-name": "demo-workers"});
    let identity = json!({"name": "demo-cloud-config", "cloudName": "openstack"});
    let reference = |group: &str, kind: &str, name: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name});
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-cloud-config"},
            "stringData": {"clouds.yaml": clouds_yaml}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
        "spec": {
            "clusterNetwork": {
                "pods": {"cidrBlocks": ["10.244.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/16"]},
                "serviceDomain": "cluster.local",
            },
            "controlPlaneRef": reference("controlplane", "HostedControlPlane", "demo"),
            "infrastructureRef": reference("infrastructure", "OpenStackCluster", "demo"),
        }}),
        // A name, since a load balancer would have another address; it leads to the tenant of this test.
        json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
            "metadata": {"name": "demo"},
            "spec": {"version": "v1.34.10", "replicas": 1, "etcd": {"replicas": 1},
                "controlPlaneEndpoint": {"host": "localhost", "port": port}}}),
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackCluster",
            "metadata": {"name": "demo"},
            "spec": {"identityRef": identity, "managedSubnets": [{"cidr": "10.6.0.0/24"}],
                "externalNetwork": {"filter": {"name": "public"}}, "disableAPIServerFloatingIP": true,
                "managedSecurityGroups": {"allowAllInClusterTraffic": true}}}),
        json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
        "metadata": {"name": "demo-workers"},
        "spec": {"template": {"spec": {"joinConfiguration": {"nodeRegistration": {
            "name": "{{ local_hostname }}",
            "kubeletExtraArgs": [{"name": "provider-id", "value": "openstack:///{{ instance_id }}"}],
        }}}}}}),
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackMachineTemplate",
            "metadata": {"name": "demo-workers"},
            "spec": {"template": {"spec": {"identityRef": identity, "flavor": "small",
                "image": {"filter": {"name": "node-v1.34.10"}}}}}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": "demo-workers"},
        "spec": {
            "clusterName": "demo", "replicas": 1, "selector": {"matchLabels": worker},
            "template": {"metadata": {"labels": worker}, "spec": {
                "clusterName": "demo", "version": "v1.34.10",
                "bootstrap": {"configRef": reference("bootstrap", "KubeadmConfigTemplate", "demo-workers")},
                "infrastructureRef": reference("infrastructure", "OpenStackMachineTemplate", "demo-workers"),
            }}}}),
    ]
}

/// Takes away what others left, without ceremony: a manager of all controllers would look after it.
pub(super) async fn clear(client: &Client) {
    release::<Cluster>(client).await;
    release::<MachineDeployment>(client).await;
    release::<MachineSet>(client).await;
    release::<Machine>(client).await;
    release::<KubeadmConfig>(client).await;
    release::<KubeadmConfigTemplate>(client).await;
    release::<OpenStackMachine>(client).await;
    release::<OpenStackMachineTemplate>(client).await;
    release::<OpenStackCluster>(client).await;
    release::<HostedControlPlane>(client).await;
}

async fn release<K>(client: &Client)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let all: Api<K> = Api::all(client.clone());
    for left in all.list(&ListParams::default()).await.unwrap() {
        let api: Api<K> = Api::namespaced(client.clone(), &left.namespace().unwrap_or_default());
        let released = json!({"metadata": {"finalizers": null}});
        // Either may find it gone.
        let _ = api.delete(&left.name_any(), &DeleteParams::default()).await;
        let _ = api.patch(&left.name_any(), &PatchParams::default(), &Patch::Merge(released)).await;
    }
}

//! Makes each planner's observation from the world.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::contract::Contract;
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_plan::flow::{Planner, Read};
use hangar_plan::machine::{NodeFacts, NodeView, TenantRead, node};
use hangar_plan::referred::Referred;
use hangar_plan::{cluster, machine, machine_deployment, machine_set};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;

use super::{Memory, Name};

impl Memory {
    fn refer(&self, reference: &ContractVersionedObjectReference) -> Read<Referred> {
        let is_older = reference.kind == "StubCluster";
        let contract = if is_older { Contract::V1Beta1 } else { Contract::V1Beta2 };
        self.named(reference).map(|object| Referred::new(object.metadata, &object.data, contract))
    }

    fn named(&self, reference: &ContractVersionedObjectReference) -> Read<DynamicObject> {
        Read::found(self.objects.get(&(reference.kind.clone(), reference.name.clone())).cloned())
    }

    pub(super) fn see_cluster(&self, cluster: Cluster) -> cluster::Observed {
        let mut observed = cluster::Observed {
            infrastructure: cluster.spec.infrastructure_ref.as_ref().map(|one| self.refer(one)),
            control_plane: cluster.spec.control_plane_ref.as_ref().map(|one| self.refer(one)),
            deployments: Read::found(self.all().into_values()),
            sets: Read::found(self.all().into_values()),
            machines: Read::found(self.all().into_values()),
            connection: cluster::Connection::NotTried,
            refusals: BTreeMap::new(),
            now: self.now(),
            cluster,
        };
        if let Some(cluster::Probe) = observed.wanted() {
            observed.connection = cluster::Connection::Answering;
        }
        observed
    }

    fn cluster_of(&self, name: &str) -> Read<Cluster> {
        Read::found(self.all().remove(name))
    }

    pub(super) fn see_deployment(&self, deployment: MachineDeployment) -> machine_deployment::Observed {
        let spec = &deployment.spec.template.spec;
        let exists = |one| self.named(one).map(|_| ());
        machine_deployment::Observed {
            served_version: Read::Absent,
            bootstrap_template: spec.bootstrap.config_ref.as_ref().map(exists),
            infrastructure_template: exists(&spec.infrastructure_ref),
            cluster: self.cluster_of(&deployment.spec.cluster_name),
            sets: Read::found(self.all().into_values()),
            machines: Read::found(self.all().into_values()),
            refusals: BTreeMap::new(),
            now: self.now(),
            deployment,
        }
    }

    fn owner<K: Resource<DynamicType = ()> + DeserializeOwned>(&self, metadata: &ObjectMeta) -> Option<K> {
        let owner = hangar_plan::referred::controller(metadata)?;
        let found: Option<K> = self.all().remove(&owner.name);
        found.filter(|found| found.meta().uid.as_ref() == Some(&owner.uid))
    }

    pub(super) fn see_set(&self, set: MachineSet) -> machine_set::Observed {
        let spec = set.spec.template.spec.clone();
        let template = |one: &ContractVersionedObjectReference| {
            self.named(one).map(|found| machine_set::Template {
                api_version: format!("{}/v1", one.api_group),
                metadata: found.metadata,
                template: found.data.pointer("/spec/template").cloned().unwrap_or_default(),
            })
        };
        let mut observed = machine_set::Observed {
            served_version: Read::Absent,
            cluster: self.cluster_of(&set.spec.cluster_name),
            deployment: self.owner(&set.metadata),
            machines: Read::found(self.all().into_values()),
            bootstrap_template: spec.bootstrap.config_ref.as_ref().map(template),
            infrastructure_template: template(&spec.infrastructure_ref),
            clones: BTreeMap::new(),
            refusals: BTreeMap::new(),
            now: self.now(),
            set,
        };
        let exists = |one| self.refer(one).map(|_| ());
        let clones: BTreeMap<Name, machine_set::Clones> = observed
            .members()
            .into_iter()
            .map(|one| {
                let bootstrap = one.spec.bootstrap.config_ref.as_ref().map(exists);
                let infrastructure = exists(&one.spec.infrastructure_ref);
                (one.metadata.name.clone().unwrap(), machine_set::Clones { bootstrap, infrastructure })
            })
            .collect();
        observed.clones = clones;
        observed
    }

    pub(super) fn see_machine(&self, one: Machine) -> machine::Observed {
        let cluster = self.cluster_of(&one.spec.cluster_name);
        let control_plane = cluster
            .iter()
            .next()
            .and_then(|one| one.spec.control_plane_ref.as_ref())
            .map(|one| self.refer(one));
        let set = self.owner::<MachineSet>(&one.metadata);
        let mut observed = machine::Observed {
            bootstrap: one.spec.bootstrap.config_ref.as_ref().map(|one| self.refer(one)),
            infrastructure: self.refer(&one.spec.infrastructure_ref),
            control_plane,
            has_control_plane_machines: false,
            deployment: set.as_ref().and_then(|set| self.owner(&set.metadata)),
            set,
            cluster,
            node: NodeView::NotLooked,
            pods: Read::unknown("not asked"),
            refusals: BTreeMap::new(),
            now: self.now(),
            machine: one,
        };
        let found = |node: Option<&NodeFacts>| {
            node.map_or(NodeView::Absent, |node| NodeView::Found(Box::new(node.clone())))
        };
        match observed.wanted() {
            None => {}
            Some(TenantRead::FindNode { provider_id, .. }) => {
                observed.pods = Read::Absent;
                let is_same = |node: &&NodeFacts| node::is_same_server(&node.provider_id, &provider_id);
                observed.node = found(self.nodes.values().find(is_same));
            }
            Some(TenantRead::Node { name }) => observed.node = found(self.nodes.get(&name)),
            Some(TenantRead::NodeAndPods { name }) => {
                observed.node = found(self.nodes.get(&name));
                observed.pods = Read::Absent;
            }
        }
        observed
    }
}

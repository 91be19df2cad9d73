//! What each planner sees of the world.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_plan::flow::Read;
use hangar_plan::machine::NodeView;
use hangar_plan::referred::Referred;
use hangar_plan::{cluster, machine, machine_deployment, machine_set};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::{Memory, Name};

impl Memory {
    fn refer(&self, reference: &ContractVersionedObjectReference) -> Read<Referred> {
        let found = self.foreign.get(&(reference.kind.clone(), reference.name.clone()));
        found.cloned().map_or(Read::Absent, Read::One)
    }

    pub(super) fn see_cluster(&self, cluster: &Cluster) -> cluster::Observed {
        cluster::Observed {
            infrastructure: cluster.spec.infrastructure_ref.as_ref().map(|one| self.refer(one)),
            control_plane: cluster.spec.control_plane_ref.as_ref().map(|one| self.refer(one)),
            deployments: Read::found(self.deployments.values().cloned()),
            sets: Read::found(self.sets.values().cloned()),
            machines: Read::found(self.machines.values().cloned()),
            connection: cluster::Connection::Answering,
            refusals: BTreeMap::new(),
            now: self.now(),
            cluster: cluster.clone(),
        }
    }

    fn cluster_of(&self, name: &str) -> Read<Cluster> {
        self.clusters.get(name).cloned().map_or(Read::Absent, Read::One)
    }

    pub(super) fn see_deployment(&self, deployment: &MachineDeployment) -> machine_deployment::Observed {
        machine_deployment::Observed {
            cluster: self.cluster_of(&deployment.spec.cluster_name),
            sets: Read::found(self.sets.values().cloned()),
            machines: Read::found(self.machines.values().cloned()),
            refusals: BTreeMap::new(),
            now: self.now(),
            deployment: deployment.clone(),
        }
    }

    fn owner<'a, K: Resource>(all: &'a BTreeMap<Name, K>, metadata: &ObjectMeta) -> Option<&'a K> {
        let owner = hangar_plan::referred::controller(metadata)?;
        all.get(&owner.name).filter(|found| found.meta().uid.as_ref() == Some(&owner.uid))
    }

    pub(super) fn see_set(&self, set: &MachineSet) -> machine_set::Observed {
        let spec = &set.spec.template.spec;
        let template = |one: &ContractVersionedObjectReference| {
            self.refer(one).map(|found| machine_set::Template {
                api_version: format!("{}/v1", one.api_group),
                metadata: found.metadata,
                data: found.data,
            })
        };
        let mut observed = machine_set::Observed {
            cluster: self.cluster_of(&set.spec.cluster_name),
            deployment: Self::owner(&self.deployments, &set.metadata).cloned(),
            machines: Read::found(self.machines.values().cloned()),
            bootstrap_template: spec.bootstrap.config_ref.as_ref().map(template),
            infrastructure_template: template(&spec.infrastructure_ref),
            clones: BTreeMap::new(),
            refusals: BTreeMap::new(),
            now: self.now(),
            set: set.clone(),
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

    pub(super) fn see_machine(&self, one: &Machine) -> machine::Observed {
        let cluster = self.cluster_of(&one.spec.cluster_name);
        let control_plane = cluster
            .iter()
            .next()
            .and_then(|one| one.spec.control_plane_ref.as_ref())
            .map(|one| self.refer(one));
        let set = Self::owner(&self.sets, &one.metadata).cloned();
        let mut observed = machine::Observed {
            bootstrap: one.spec.bootstrap.config_ref.as_ref().map(|one| self.refer(one)),
            infrastructure: self.refer(&one.spec.infrastructure_ref),
            control_plane,
            has_control_plane_machines: false,
            deployment: set.as_ref().and_then(|set| Self::owner(&self.deployments, &set.metadata)).cloned(),
            set,
            cluster,
            node: NodeView::NotLooked,
            pods: Read::unknown("not asked"),
            refusals: BTreeMap::new(),
            now: self.now(),
            machine: one.clone(),
        };
        let get = |name: &str| {
            self.nodes.get(name).map_or(NodeView::Absent, |node| NodeView::Found(Box::new(node.clone())))
        };
        match machine::look(&observed) {
            machine::Look::Nothing => {}
            machine::Look::FindNode { provider_id } => {
                let found = self
                    .nodes
                    .values()
                    .find(|node| machine::node::is_same_server(&node.provider_id, &provider_id));
                observed.node =
                    found.map_or(NodeView::Absent, |node| NodeView::Found(Box::new(node.clone())));
            }
            machine::Look::Node { name } => observed.node = get(&name),
            machine::Look::NodeAndPods { name } => {
                observed.node = get(&name);
                observed.pods = Read::Absent;
            }
        }
        observed
    }
}

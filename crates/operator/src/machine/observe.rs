//! Reads a Machine and what it refers to from the stores.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Machine, MachineDeployment, MachineSet};
use hangar_api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use hangar_kit::ObjectKey;
use hangar_plan::flow::Read;
use hangar_plan::machine::{NodeView, Observed};
use hangar_plan::referred;
use jiff::Timestamp;

use super::Machines;
use crate::managed;

impl Machines {
    /// Whether a store that the Machine needs has only just been started.
    pub(super) fn is_starting(&self, machine: &Machine) -> bool {
        let cluster = ObjectKey {
            namespace: machine.metadata.namespace.clone(),
            name: machine.spec.cluster_name.clone(),
        };
        let cluster = self.context.watches.clusters().get(&cluster);
        let plane = cluster.iter().find_map(|cluster| cluster.spec.control_plane_ref.as_ref());
        let spec = &machine.spec;
        let references = spec.bootstrap.config_ref.iter().chain([&spec.infrastructure_ref]).chain(plane);
        managed::is_starting(&self.context.foreign, references)
    }

    /// What the stores show now; the tenant is not asked here.
    pub(super) fn read(&self, machine: Machine) -> Observed {
        let key = ObjectKey::of(&machine);
        let (context, namespace) = (&self.context, key.namespace_or_empty());
        let name = &machine.spec.cluster_name;
        let cluster = ObjectKey { namespace: key.namespace.clone(), name: name.clone() };
        let cluster = context.watches.clusters().get(&cluster).map(|kept| kept.value.clone());
        let look = |reference| managed::referred(&context.foreign, namespace, reference);
        let control_plane = match &cluster {
            Read::One(cluster) => cluster.spec.control_plane_ref.as_ref().map(look),
            _ => None,
        };
        let set = self.set(&machine);
        Observed {
            bootstrap: machine.spec.bootstrap.config_ref.as_ref().map(look),
            infrastructure: look(&machine.spec.infrastructure_ref),
            control_plane,
            has_control_plane_machines: self.has_control_plane_machines(&key, name),
            deployment: set.as_ref().and_then(|set| self.deployment(set)),
            set,
            cluster,
            node: NodeView::NotLooked,
            pods: Read::unknown("the pods were not asked for"),
            refusals: BTreeMap::new(),
            now: Timestamp::now(),
            machine,
        }
    }

    fn has_control_plane_machines(&self, key: &ObjectKey, cluster: &str) -> bool {
        let machines = self.context.watches.machines().by_label(CLUSTER_NAME_LABEL, cluster);
        machines.iter().any(|machine| {
            let labels = machine.metadata.labels.iter().flatten();
            machine.key.namespace == key.namespace
                && !machine.is_terminating
                && labels.into_iter().any(|(name, _)| name == CONTROL_PLANE_LABEL)
        })
    }

    fn set(&self, machine: &Machine) -> Option<MachineSet> {
        let owner = referred::controller(&machine.metadata).filter(|owner| owner.kind == "MachineSet")?;
        let key = ObjectKey { namespace: machine.metadata.namespace.clone(), name: owner.name.clone() };
        let read = self.context.watches.machine_sets().get(&key);
        read.iter().find(|kept| kept.uid == owner.uid).map(|kept| kept.value.clone())
    }

    fn deployment(&self, set: &MachineSet) -> Option<MachineDeployment> {
        let owner = referred::controller(&set.metadata).filter(|owner| owner.kind == "MachineDeployment")?;
        let key = ObjectKey { namespace: set.metadata.namespace.clone(), name: owner.name.clone() };
        let read = self.context.watches.machine_deployments().get(&key);
        read.iter().find(|kept| kept.uid == owner.uid).map(|kept| kept.value.clone())
    }
}

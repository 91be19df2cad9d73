//! Reads a Machine and what it refers to from the stores, and its Node and pods from the tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::cluster::v1beta2::{Machine, MachineDeployment, MachineSet};
use hangar_api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use hangar_kit::ObjectKey;
use hangar_kit::client::{Bounds, list_bounded};
use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::machine::{NodeFacts, NodeView, Observed, PodFacts, TenantRead, node};
use hangar_plan::referred;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::context::Context;
use crate::reconcile::{WRITE_LIMIT, answer};
use crate::referring;

/// Ten times what kubelet runs on a Node by default: more than that is no honest answer.
const PODS: Bounds = Bounds { pages: 80, items: 1000 };
/// As small as a page of Nodes: a pod is as heavy.
const PAGE: u32 = 25;

/// The Cluster of a Machine, by which its tenant is known.
pub(super) fn cluster_of(machine: &Machine) -> ObjectKey {
    ObjectKey { namespace: machine.metadata.namespace.clone(), name: machine.spec.cluster_name.clone() }
}

/// Whether a store that the Machine needs has only just been started.
pub(super) fn is_starting(context: &Context, machine: &Machine) -> bool {
    let cluster = context.watches.clusters().get(&cluster_of(machine));
    let plane = cluster.iter().find_map(|cluster| cluster.spec.control_plane_ref.as_ref());
    referring::is_starting(&context.foreign, referring::of_machine(&machine.spec).chain(plane))
}

/// What the stores show now; the tenant is not asked here.
pub(super) fn observe(context: &Context, root: &Kept<Machine>) -> Observed {
    let (key, machine) = (&root.key, &root.value);
    let cluster = context.watches.clusters().get(&cluster_of(machine)).map(|kept| kept.value.clone());
    let look = |reference| context.foreign.get(key.namespace_or_empty(), reference);
    let control_plane = match &cluster {
        Read::One(cluster) => cluster.spec.control_plane_ref.as_ref().map(look),
        _ => None,
    };
    let set = set(context, machine);
    Observed {
        bootstrap: machine.spec.bootstrap.config_ref.as_ref().map(look),
        infrastructure: look(&machine.spec.infrastructure_ref),
        control_plane,
        has_control_plane_machines: has_control_plane_machines(context, &cluster_of(machine)),
        deployment: set.as_ref().and_then(|set| deployment(context, set)),
        set,
        cluster,
        node: NodeView::NotLooked,
        pods: Read::unknown("the pods were not asked for"),
        refusals: BTreeMap::new(),
        now: context.ambient.now(),
        machine: machine.clone(),
    }
}

/// One that cannot be read may be one: a Node is emptied rather than not.
fn has_control_plane_machines(context: &Context, cluster: &ObjectKey) -> bool {
    let machines = context.watches.machines().by_label(CLUSTER_NAME_LABEL, cluster);
    machines.is_unknown()
        || machines.iter().any(|machine| {
            let mut labels = machine.metadata.labels.iter().flatten();
            !machine.is_terminating && labels.any(|(name, _)| name == CONTROL_PLANE_LABEL)
        })
}

fn set(context: &Context, machine: &Machine) -> Option<MachineSet> {
    let owner =
        referred::controller(&machine.metadata).filter(|owner| referred::is_kind::<MachineSet>(owner))?;
    let key = ObjectKey { namespace: machine.metadata.namespace.clone(), name: owner.name.clone() };
    let read = context.watches.machine_sets().get(&key);
    read.iter().find(|kept| kept.uid == owner.uid).map(|kept| kept.value.clone())
}

fn deployment(context: &Context, set: &MachineSet) -> Option<MachineDeployment> {
    let owner =
        referred::controller(&set.metadata).filter(|owner| referred::is_kind::<MachineDeployment>(owner))?;
    let key = ObjectKey { namespace: set.metadata.namespace.clone(), name: owner.name.clone() };
    let read = context.watches.machine_deployments().get(&key);
    read.iter().find(|kept| kept.uid == owner.uid).map(|kept| kept.value.clone())
}

/// Fills in what the plan wants to know from the tenant: the Node from the watch of its Nodes, the pods live.
pub(super) async fn read(context: &Context, observed: &mut Observed, wanted: TenantRead) {
    let cluster = cluster_of(&observed.machine);
    let client = match context.tenants.client(&cluster).await {
        Ok(client) => client,
        Err(error) => {
            observed.node = NodeView::Unreachable(error.to_string());
            return;
        }
    };
    let nodes = context.nodes.subscribe(&cluster);
    if nodes.count().is_err() {
        nodes.ready(WRITE_LIMIT).await;
    }
    let view = |found: Read<Arc<Kept<NodeFacts>>>| node::view(found.map(|kept| kept.value.clone()));
    let (node, with_pods) = match wanted {
        TenantRead::FindNode { provider_id, with_pods } => (view(nodes.find(&provider_id)), with_pods),
        TenantRead::Node { name } => (view(nodes.get(&name)), false),
        TenantRead::NodeAndPods { name } => (view(nodes.get(&name)), true),
    };
    if let (NodeView::Found(node), true) = (&node, with_pods) {
        observed.pods = pods(client, &node.name).await;
    }
    observed.node = node;
}

async fn pods(client: Client, node: &str) -> Read<PodFacts> {
    let parameters = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PAGE);
    match list_bounded(&Api::<Pod>::all(client), &parameters, PODS).await {
        Ok(pods) => Read::found(pods.into_iter().map(PodFacts::from)),
        Err(error) => Read::unknown(format!("the pods of Node {node}: {}", answer::words(&error))),
    }
}

//! A cluster in memory: objects, providers that do their work between passes, Nodes.
//!
//! All four planners run over it as in production: each gets its own observation, is asked what it wants to read, and
//! folds its own outcomes into that observation alone; it sees the writes of others in the next pass. The uid of an
//! object follows from its name and how often that name was used, so that a planner that missed an answer still means
//! the same object. Between passes statuses are written and providers act, until nothing changes any more. Statuses
//! follow from what is observed, so a crash before a status is written loses nothing.

mod act;
mod provide;
mod see;
mod view;

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_plan::flow::crash::World;
use hangar_plan::flow::{Frontier, Identified, Outcome, StepId};
use hangar_plan::machine::{NodeFacts, Step};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;
use view::View;

type Name = String;
/// Kind and name.
type Key = (String, Name);

#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    objects: BTreeMap<Key, DynamicObject>,
    pub(crate) nodes: BTreeMap<Name, NodeFacts>,
    incarnations: BTreeMap<Key, u32>,
    seconds: i64,
    /// The most Machines that ever existed.
    pub(crate) most: usize,
}

/// What the controller of one object does.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    of: Key,
    /// The one that was seen.
    uid: String,
    call: Call,
}

#[derive(Clone, Debug)]
enum Call {
    /// Every planner here has these steps or fewer.
    Step(Box<Step>),
    /// Applies an object of the plan.
    Keep(Box<DynamicObject>),
}

impl Identified for Act {
    fn id(&self) -> StepId {
        let id = match &self.call {
            Call::Step(step) => step.id(),
            Call::Keep(object) => StepId::new("keep", "object", object.metadata.name.clone().unwrap()),
        };
        StepId::new(id.verb, id.kind, format!("{}/{}/{}", self.of.0, self.of.1, id.name))
    }
}

impl Memory {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + self.seconds).unwrap()
    }

    /// What the API server adds to a new object.
    fn born(&mut self, key: &Key, metadata: &mut ObjectMeta) {
        let count = self.incarnations.entry(key.clone()).or_default();
        *count += 1;
        metadata.uid = Some(format!("{}/{}/{count}", key.0, key.1));
        metadata.generation = Some(1);
        metadata.namespace = Some("team".to_owned());
        metadata.creation_timestamp = Some(Time(self.now()));
    }

    /// Adds an object; its uid.
    pub(crate) fn add(&mut self, object: Value) -> String {
        let mut object: DynamicObject = serde_json::from_value(object).unwrap();
        let key = (object.types.clone().unwrap().kind, object.metadata.name.clone().unwrap());
        self.born(&key, &mut object.metadata);
        let uid = object.metadata.uid.clone().unwrap();
        self.objects.insert(key, object);
        self.most = self.most.max(self.all::<Machine>().len());
        uid
    }

    /// All objects of a kind, by name.
    pub(crate) fn all<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> BTreeMap<Name, K> {
        let found = self.objects.iter().filter(|((kind, _), _)| *kind == K::kind(&()));
        found
            .map(|((_, name), object)| {
                let object = serde_json::to_value(object).unwrap();
                (name.clone(), serde_json::from_value(object).unwrap())
            })
            .collect()
    }

    /// What all planners see.
    fn views(&self) -> Vec<View> {
        let cluster = |one: Cluster| View::Cluster(Box::new(self.see_cluster(one)));
        let deployment = |one: MachineDeployment| View::Deployment(Box::new(self.see_deployment(one)));
        let set = |one: MachineSet| View::Set(Box::new(self.see_set(one)));
        let machine = |one: Machine| View::Machine(Box::new(self.see_machine(one)));
        let clusters = self.all().into_values().map(cluster);
        let views = clusters
            .chain(self.all().into_values().map(deployment))
            .chain(self.all().into_values().map(set))
            .chain(self.all().into_values().map(machine));
        views.collect()
    }
}

impl World for Memory {
    /// Each view with the plan made from it: only the one that was folded into is planned again.
    type Observation = BTreeMap<Key, (View, Vec<Act>)>;
    type Step = Act;
    type EndState = Vec<String>;

    fn observe(&self) -> Self::Observation {
        let planned = |view: View| {
            let acts = view.acts();
            (view.key(), (view, acts))
        };
        self.views().into_iter().map(planned).collect()
    }

    fn plan(&self, observation: &Self::Observation) -> Frontier<Act> {
        observation.values().flat_map(|(_, acts)| acts).cloned().collect()
    }

    fn run(&mut self, act: &Act) -> Outcome {
        self.act(act)
    }

    fn fold(&self, observation: &mut Self::Observation, act: &Act, outcome: &Outcome) {
        if let Call::Step(step) = &act.call {
            let (view, acts) = observation.get_mut(&act.of).unwrap();
            view.fold(step, outcome);
            *acts = view.acts();
        }
    }

    fn settle(&mut self) {
        self.seconds += 1;
        loop {
            self.provide();
            let mut is_at_rest = true;
            for view in self.views() {
                let (status, object) = (view.status(), self.objects.get_mut(&view.key()).unwrap());
                is_at_rest &= object.data["status"] == status;
                object.data["status"] = status;
            }
            if is_at_rest {
                return;
            }
        }
    }

    fn end_state(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, one) in self.all::<Cluster>() {
            let status = one.status.unwrap_or_default();
            lines.push(format!("Cluster {name} {:?} {:?}", status.phase, one.spec.control_plane_endpoint));
        }
        for (name, one) in self.all::<MachineDeployment>() {
            let status = one.status.unwrap_or_default();
            lines.push(format!(
                "MachineDeployment {name} {:?} {:?}",
                status.replicas, status.available_replicas
            ));
        }
        for (name, one) in self.all::<MachineSet>() {
            lines.push(format!("MachineSet {name} {:?}", one.spec.replicas));
        }
        for (name, one) in self.all::<Machine>() {
            let status = one.status.unwrap_or_default();
            let node = status.node_ref.map(|node| node.name);
            lines.push(format!("Machine {name} {:?} {node:?} {:?}", status.phase, one.spec.version));
        }
        let foreign = self.objects.keys().filter(|(kind, _)| kind.starts_with("Stub"));
        lines.extend(foreign.map(|(kind, name)| format!("{kind} {name}")));
        lines.extend(
            self.nodes
                .values()
                .map(|node| format!("Node {} {:?} {}", node.name, node.labels, node.taints.len())),
        );
        lines
    }
}

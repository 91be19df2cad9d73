//! One object as its planner sees it.

use hangar_plan::flow::{Never, Outcome, PlanOf, Planner, Read, Step as Any, dynamic};
use hangar_plan::machine::Step;
use hangar_plan::{cluster, machine, machine_deployment, machine_set};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde_json::Value;

use super::{Act, Call, Key};

pub(crate) enum View {
    Cluster(Box<cluster::Observed>),
    Deployment(Box<machine_deployment::Observed>),
    Set(Box<machine_set::Observed>),
    Machine(Box<machine::Observed>),
}

/// A plan of any of the four: what is done, what is said.
struct Planned {
    calls: Vec<Call>,
    status: Value,
}

impl View {
    fn metadata(&self) -> (&'static str, &ObjectMeta) {
        match self {
            Self::Cluster(seen) => ("Cluster", &seen.cluster.metadata),
            Self::Deployment(seen) => ("MachineDeployment", &seen.deployment.metadata),
            Self::Set(seen) => ("MachineSet", &seen.set.metadata),
            Self::Machine(seen) => ("Machine", &seen.machine.metadata),
        }
    }

    pub(super) fn key(&self) -> Key {
        let (kind, metadata) = self.metadata();
        (kind.to_owned(), metadata.name.clone().unwrap())
    }

    pub(super) fn acts(&self) -> Vec<Act> {
        let (of, uid) = (self.key(), self.metadata().1.uid.clone().unwrap());
        let calls = self.plan().calls.into_iter();
        calls.map(|call| Act { of: of.clone(), uid: uid.clone(), call }).collect()
    }

    pub(super) fn status(&self) -> Value {
        self.plan().status
    }

    pub(super) fn fold(&mut self, step: &Step, outcome: &Outcome) {
        let only = match step {
            Step::Write(write) => Some(Any::from(write.clone())),
            Step::Tenant(_) => None,
            Step::Own(never) | Step::Cloud(never) => match *never {},
        };
        match (self, &only) {
            (Self::Cluster(seen), Some(step)) => seen.fold(step, outcome),
            (Self::Deployment(seen), Some(step)) => seen.fold(step, outcome),
            (Self::Set(seen), Some(step)) => seen.fold(step, outcome),
            (Self::Machine(seen), _) => seen.fold(step, outcome),
            (_, None) => panic!("only Machines have Nodes: {step:?}"),
        }
    }

    fn plan(&self) -> Planned {
        match self {
            Self::Cluster(seen) => writes::<cluster::Observed>(&seen.plan(), &[]),
            Self::Deployment(seen) => {
                let live = values(&seen.sets);
                writes::<machine_deployment::Observed>(&seen.plan(), &live)
            }
            Self::Set(seen) => {
                let live = values(&seen.machines);
                writes::<machine_set::Observed>(&seen.plan(), &live)
            }
            Self::Machine(seen) => {
                let plan = seen.plan();
                let calls = plan.steps.iter().cloned().map(|step| Call::Step(Box::new(step)));
                Planned { calls: calls.collect(), status: serde_json::to_value(plan.status).unwrap() }
            }
        }
    }
}

fn values<K: Serialize + Clone>(seen: &Read<K>) -> Vec<Value> {
    seen.iter().map(|one| serde_json::to_value(one).unwrap()).collect()
}

/// A plan without other steps than writes. Its objects are applied where they differ from what was seen.
fn writes<P>(plan: &PlanOf<P>, live: &[Value]) -> Planned
where
    P: Planner<Own = Never, Tenant = Never, Cloud = Never>,
    P::Status: Serialize,
    P::Object: Serialize + Resource,
{
    let steps = plan.steps.iter().map(|step| Call::Step(Box::new(step.write().clone().into())));
    let kept = plan.objects.iter().filter_map(|object| {
        let wanted = serde_json::to_value(object).unwrap();
        let live = live.iter().find(|one| one["metadata"]["name"] == wanted["metadata"]["name"])?;
        let mut after = live.clone();
        json_patch::merge(&mut after, &wanted);
        (after != *live).then(|| Call::Keep(Box::new(dynamic(object))))
    });
    Planned { calls: steps.chain(kept).collect(), status: serde_json::to_value(&plan.status).unwrap() }
}

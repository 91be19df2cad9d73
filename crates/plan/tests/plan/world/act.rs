//! Does what the API servers do when a step is run.

use hangar_plan::flow::{Action, Outcome, Write};
use hangar_plan::machine::{NodeStep, Step};
use hangar_plan::{machine_deployment, referred};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{Act, Call, Key, Memory};

impl Memory {
    pub(super) fn act(&mut self, act: &Act) -> Outcome {
        match &act.call {
            Call::Step(step) => match step.as_ref() {
                Step::Write(write) => self.write(act, write),
                Step::Tenant(step) => self.in_tenant(step),
                Step::Own(never) | Step::Cloud(never) => match *never {},
            },
            Call::Keep(object) => {
                let uid = object.metadata.uid.clone().unwrap_or_else(|| self.uid(&key(object)));
                self.merge(&key(object), &uid, &serde_json::to_value(object).unwrap())
            }
        }
    }

    fn write(&mut self, act: &Act, write: &Write) -> Outcome {
        match &write.action {
            Action::Itself(fields) => self.merge(&act.of, &act.uid, fields),
            Action::Change { target, fields } => {
                self.merge(&(target.kind.clone(), target.name.clone()), &target.uid, fields)
            }
            Action::Create { object, is_kept } => self.create(object, *is_kept),
            Action::Evict { .. } => panic!("no pods are here: {write:?}"),
            Action::Delete { target, .. } => {
                let key = (target.kind.clone(), target.name.clone());
                match self.objects.contains_key(&key) {
                    true if self.uid(&key) != target.uid => Outcome::Stale,
                    true => self.delete(&key),
                    false => Outcome::Done,
                }
            }
        }
    }

    fn uid(&self, key: &Key) -> String {
        self.objects.get(key).and_then(|object| object.metadata.uid.clone()).unwrap_or_default()
    }

    /// A merge patch of exactly one object.
    fn merge(&mut self, key: &Key, uid: &str, fields: &Value) -> Outcome {
        if self.uid(key) != uid {
            return Outcome::Stale;
        }
        let object = self.objects.get_mut(key).unwrap();
        let mut after = serde_json::to_value(&*object).unwrap();
        json_patch::merge(&mut after, fields);
        let before = std::mem::replace(object, serde_json::from_value(after).unwrap());
        if object.data["spec"] != before.data["spec"] {
            object.metadata.generation = before.metadata.generation.map(|number| number + 1);
        }
        let is_free = |object: &DynamicObject| object.metadata.finalizers.iter().flatten().count() == 0;
        if is_free(object) && !is_free(&before) {
            assert!(object.metadata.deletion_timestamp.is_some(), "{key:?} is not being deleted");
            self.objects.remove(key);
        }
        Outcome::Done
    }

    /// What a person changes.
    pub(crate) fn change(&mut self, kind: &str, name: &str, fields: &Value) {
        let key = (kind.to_owned(), name.to_owned());
        let uid = self.uid(&key);
        assert_eq!(self.merge(&key, &uid, fields), Outcome::Done, "{key:?}");
    }

    /// A name that exists is refused: that is what names from slots are for.
    fn create(&mut self, object: &DynamicObject, is_kept: bool) -> Outcome {
        let controller =
            |object: &DynamicObject| referred::controller(&object.metadata).map(|one| one.uid.clone());
        if let Some(present) = self.objects.get(&key(object)) {
            let is_same = controller(present).is_some() && controller(present) == controller(object);
            return if is_same {
                Outcome::Done
            } else {
                Outcome::refused("it exists and is of another owner")
            };
        }
        let mut object = serde_json::to_value(object).unwrap();
        if is_kept && object["kind"] == "MachineSet" {
            let mark = json!({"metadata": {"annotations": {machine_deployment::APPLIED_MARK: ""}}});
            json_patch::merge(&mut object, &mark);
        }
        Outcome::Created(self.add(object))
    }

    pub(crate) fn delete(&mut self, key: &Key) -> Outcome {
        let now = Time(self.now());
        let metadata = &mut self.objects.get_mut(key).unwrap().metadata;
        metadata.deletion_timestamp.get_or_insert(now);
        if metadata.finalizers.iter().flatten().count() == 0 {
            self.objects.remove(key);
        }
        Outcome::Done
    }

    fn in_tenant(&mut self, step: &NodeStep) -> Outcome {
        let name = match step {
            NodeStep::Patch { name, .. } | NodeStep::Cordon { name } | NodeStep::Delete { name, .. } => name,
            NodeStep::Evict { .. } => return Outcome::Done,
        };
        let Some(node) = self.nodes.get_mut(name) else { return Outcome::Stale };
        match step {
            NodeStep::Patch { patch, .. } => {
                for (change, map) in
                    [(&patch.labels, &mut node.labels), (&patch.annotations, &mut node.annotations)]
                {
                    map.retain(|key, _| change.get(key) != Some(&None));
                    let set = change.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
                    map.extend(set);
                }
                node.taints = patch.taints.clone().unwrap_or(std::mem::take(&mut node.taints));
            }
            NodeStep::Cordon { .. } => node.is_cordoned = true,
            NodeStep::Delete { uid, .. } if *uid != node.uid => return Outcome::Stale,
            NodeStep::Delete { .. } => {
                self.nodes.remove(name);
            }
            NodeStep::Evict { .. } => {}
        }
        Outcome::Done
    }
}

fn key(object: &DynamicObject) -> Key {
    (object.types.clone().unwrap().kind, object.metadata.name.clone().unwrap())
}

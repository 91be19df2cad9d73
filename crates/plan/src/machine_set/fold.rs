//! What a step made of the observation.

use hangar_api::cluster::v1beta2::Machine;
use kube::core::DynamicObject;

use super::{Clones, Observed, Step};
use crate::flow::{Action, Outcome, Read, Seen as _, Write};

/// Makes the observation what it is after that outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    let write = step.write();
    match outcome {
        Outcome::Refused(refusal) => {
            observed.refusals.insert(write.id.clone(), refusal.message.clone());
        }
        Outcome::Created(uid) => observed.written(write, Some(uid)),
        Outcome::Done => observed.written(write, None),
        Outcome::Stale | Outcome::Lost | Outcome::Failed(_) => {}
    }
}

impl Observed {
    fn written(&mut self, write: &Write, uid: Option<&String>) {
        write.on_itself(&mut self.set);
        write.on(&mut self.machines, self.now);
        if let Action::Create { object, .. } = &write.action {
            if write.id.kind == "machine" {
                self.made_machine(object, uid);
            } else {
                self.made_clone(object);
            }
        }
        if let Action::Change { target, fields } = &write.action {
            let templates = self.bootstrap_template.iter_mut().chain([&mut self.infrastructure_template]);
            for template in templates.flat_map(Read::iter_mut) {
                if template.metadata.uid.as_ref() == Some(&target.uid) {
                    template.merge(fields);
                }
            }
        }
    }

    /// Only what was made just now is known well enough to go on from; one that was there before is read first.
    fn made_machine(&mut self, object: &DynamicObject, uid: Option<&String>) {
        let parsed = serde_json::to_value(object).and_then(serde_json::from_value::<Machine>);
        let (Ok(mut machine), Some(uid)) = (parsed, uid) else { return };
        machine.metadata.uid = Some(uid.clone());
        let clones = Clones {
            bootstrap: machine.spec.bootstrap.config_ref.as_ref().map(|_| Read::Absent),
            infrastructure: Read::Absent,
        };
        self.clones.insert(machine.metadata.name.clone().unwrap_or_default(), clones);
        self.machines.add(machine);
    }

    fn made_clone(&mut self, object: &DynamicObject) {
        let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let Some(clones) = self.clones.get_mut(name) else { return };
        let machine = self.machines.iter().find(|machine| machine.metadata.name.as_deref() == Some(name));
        let config = machine.and_then(|machine| machine.spec.bootstrap.config_ref.as_ref());
        if config.is_some_and(|config| config.kind == kind) {
            clones.bootstrap = Some(Read::One(()));
        } else {
            clones.infrastructure = Read::One(());
        }
    }
}

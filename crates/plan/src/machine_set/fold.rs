//! Folds the outcome of a step into the observation of a MachineSet.

use hangar_api::cluster::v1beta2::Machine;
use hangar_api::reference::is_kind;
use kube::core::DynamicObject;

use super::{Clones, Observed};
use crate::flow::{Action, Read, Seen as _, Write};
use crate::referred;

impl Observed {
    pub(super) fn written(&mut self, write: &Write, uid: &str) {
        write.on_itself(&mut self.set);
        write.on(&mut self.machines, self.now);
        if let Action::Create { object, .. } = &write.action {
            match machine(object) {
                Some(machine) => self.made_machine(machine, uid),
                None => self.made_clone(object),
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
    fn made_machine(&mut self, mut machine: Machine, uid: &str) {
        if uid.is_empty() {
            return;
        }
        machine.metadata.uid = Some(uid.to_owned());
        let clones = Clones {
            bootstrap: machine.spec.bootstrap.config_ref.as_ref().map(|_| Read::Absent),
            infrastructure: Read::Absent,
        };
        self.clones.insert(machine.metadata.name.clone().unwrap_or_default(), clones);
        self.machines.add(machine);
    }

    fn made_clone(&mut self, object: &DynamicObject) {
        let Some(types) = &object.types else { return };
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let Some(clones) = self.clones.get_mut(name) else { return };
        let machine = self.machines.iter().find(|machine| machine.metadata.name.as_deref() == Some(name));
        let config = machine.and_then(|machine| machine.spec.bootstrap.config_ref.as_ref());
        if config.is_some_and(|config| referred::is_kind_of(config, types)) {
            clones.bootstrap = Some(Read::One(()));
        } else {
            clones.infrastructure = Read::One(());
        }
    }
}

fn machine(object: &DynamicObject) -> Option<Machine> {
    let types = object.types.as_ref()?;
    let is_machine = is_kind::<Machine>(&types.api_version, &types.kind);
    is_machine.then(|| object.clone().try_parse().ok()).flatten()
}

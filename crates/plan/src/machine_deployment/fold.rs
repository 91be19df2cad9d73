//! Folds the outcome of a step into the observation of a MachineDeployment.

use hangar_api::cluster::v1beta2::MachineSet;

use super::Observed;
use crate::flow::{Action, Write};

impl Observed {
    pub(super) fn written(&mut self, write: &Write, uid: &str) {
        write.on_itself(&mut self.deployment);
        write.on(&mut self.sets, self.now);
        // Only what was made just now is known well enough to go on from; one that was there before is read first.
        if let (Action::Create { object, .. }, false) = (&write.action, uid.is_empty())
            && let Ok(mut set) = serde_json::to_value(object).and_then(serde_json::from_value::<MachineSet>)
        {
            set.metadata.uid = Some(uid.to_owned());
            self.sets.add(set);
        }
    }
}

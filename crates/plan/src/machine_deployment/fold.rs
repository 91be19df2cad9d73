//! What a step made of the observation.

use hangar_api::cluster::v1beta2::MachineSet;

use super::{Observed, Step};
use crate::flow::{Action, Outcome, Write};

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
        write.on_itself(&mut self.deployment);
        write.on(&mut self.sets, self.now);
        // Only what was made just now is known well enough to go on from; one that was there before is read first.
        if let (Action::Create { object, .. }, Some(uid)) = (&write.action, uid)
            && let Ok(mut set) = serde_json::to_value(object).and_then(serde_json::from_value::<MachineSet>)
        {
            set.metadata.uid = Some(uid.clone());
            self.sets.add(set);
        }
    }
}

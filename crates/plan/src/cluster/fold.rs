//! What a step made of the observation.

use super::{Observed, Step};
use crate::flow::{Outcome, Write};

/// Makes the observation what it is after that outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    let write = step.write();
    if let Outcome::Refused(refusal) = outcome {
        observed.refusals.insert(write.id.clone(), refusal.message.clone());
    }
    if outcome.is_success() {
        observed.written(write);
    }
}

impl Observed {
    fn written(&mut self, write: &Write) {
        let now = self.now;
        write.on_itself(&mut self.cluster);
        for part in self.infrastructure.iter_mut().chain(&mut self.control_plane) {
            write.on(part, now);
        }
        write.on(&mut self.deployments, now);
        write.on(&mut self.sets, now);
        write.on(&mut self.machines, now);
    }
}

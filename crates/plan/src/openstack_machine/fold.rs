//! What a step made of the observation.

use super::{Observed, Step};
use crate::flow::{Identified as _, Outcome, Seen as _};
use crate::openstack::{CloudTrouble, server_requested};

/// Makes the observation what it is after that outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    match outcome {
        Outcome::Created(id) => {
            observed.trouble = None;
            done(observed, step, id);
        }
        Outcome::Done => {
            observed.trouble = None;
            done(observed, step, "");
        }
        _ => {
            let reason = match step {
                Step::Cloud(step) => step.reason(),
                Step::Write(_) => "ObjectNotWritten",
                Step::Own(never) | Step::Tenant(never) => match *never {},
            };
            observed.trouble = Some(CloudTrouble::of_step(reason, &step.id(), outcome));
        }
    }
    if let (true, Some(facts)) = (outcome.ends_the_pass(), observed.cloud.facts_mut()) {
        facts.forget(&format!("the answer to {} was lost", step.id()));
    }
}

fn done(observed: &mut Observed, step: &Step, id: &str) {
    match step {
        Step::Write(write) => write.on_itself(&mut observed.object),
        Step::Cloud(step) => {
            if step.is_noted() {
                observed.object.merge(&server_requested(Some(observed.now)));
            }
            let is_requested = observed.requested_at().is_some();
            if let Some(facts) = observed.cloud.facts_mut() {
                facts.done(step, id, is_requested);
            }
        }
        Step::Own(never) | Step::Tenant(never) => match *never {},
    }
}

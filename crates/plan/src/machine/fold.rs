//! What a step made of the observation.

use super::{NodeStep, NodeView, Observed, Step};
use crate::flow::{Identified as _, Outcome, Write};

/// Makes the observation what it is after that outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    if let Outcome::Refused(refusal) = outcome {
        observed.refusals.insert(step.id(), refusal.message.clone());
    }
    if !outcome.is_success() {
        return;
    }
    match step {
        Step::Write(write) => observed.written(write),
        Step::Tenant(step) => observed.done_in_tenant(step),
        Step::Own(never) | Step::Cloud(never) => match *never {},
    }
}

impl Observed {
    fn written(&mut self, write: &Write) {
        write.on_itself(&mut self.machine);
        write.on(&mut self.infrastructure, self.now);
        if let Some(bootstrap) = &mut self.bootstrap {
            write.on(bootstrap, self.now);
        }
    }

    fn done_in_tenant(&mut self, step: &NodeStep) {
        match (step, &mut self.node) {
            (NodeStep::Patch { patch, .. }, NodeView::Found(node)) => patch.apply(node),
            (NodeStep::Cordon { .. }, NodeView::Found(node)) => node.is_cordoned = true,
            (NodeStep::Patch { .. } | NodeStep::Cordon { .. }, _) => {}
            (NodeStep::Delete { .. }, node) => *node = NodeView::Absent,
            (NodeStep::Evict { pod, .. }, _) => {
                for facts in self.pods.iter_mut().filter(|facts| facts.key == *pod) {
                    facts.leaves_by.get_or_insert(self.now);
                }
            }
        }
    }
}

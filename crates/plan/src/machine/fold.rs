//! Folds the outcome of a step into the observation of a Machine.

use super::{NodeStep, NodeView, Observed};
use crate::flow::Write;

impl Observed {
    pub(super) fn written(&mut self, write: &Write) {
        write.on_itself(&mut self.machine);
        write.on(&mut self.infrastructure, self.now);
        if let Some(bootstrap) = &mut self.bootstrap {
            write.on(bootstrap, self.now);
        }
    }

    pub(super) fn done_in_tenant(&mut self, step: &NodeStep) {
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

//! Folds the outcome of a step into the observation of a Cluster.

use super::Observed;
use crate::flow::Write;

impl Observed {
    pub(super) fn written(&mut self, write: &Write) {
        let now = self.now;
        write.on_itself(&mut self.cluster);
        for referred in self.infrastructure.iter_mut().chain(&mut self.control_plane) {
            write.on(referred, now);
        }
        write.on(&mut self.deployments, now);
        write.on(&mut self.sets, now);
        write.on(&mut self.machines, now);
    }
}

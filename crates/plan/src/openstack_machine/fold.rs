//! Folds the outcome of a step into the observation of an OpenStackMachine.

use super::{Observed, Step};
use crate::flow::Seen as _;
use crate::openstack::Request;

pub(super) fn done(observed: &mut Observed, step: &Step, id: &str) {
    match step {
        Step::Write(write) => write.on_itself(&mut observed.object),
        Step::Cloud(step) => {
            // What else is asked for is settled by its answer.
            if let Some(request @ Request::Server) = step.request() {
                observed.object.merge(&request.noted(observed.now));
            }
            let is_requested = observed.requested_at().is_some();
            if let Some(facts) = observed.cloud.facts_mut() {
                facts.done(step, id, is_requested);
            }
        }
        Step::Own(never) | Step::Tenant(never) => match *never {},
    }
}

//! Records the metrics of the controller loop and of the call layer.

use std::time::Duration;

use super::{CallMetrics, ControllerLabels, Metrics};
use crate::ObjectKey;
use crate::call::{Answer, Call, CallGate, Delivery, Verb};
use crate::controller::{Load, Observer, Verdict};

impl Observer for Metrics {
    fn reconciled(&self, controller: &'static str, _key: &ObjectKey, verdict: Verdict, took: Duration) {
        let result = match verdict {
            Verdict::Done => "done",
            Verdict::NotYet => "waiting",
            Verdict::Failed(category) => {
                self.reconcile.observe_error(controller, category);
                "error"
            }
        };
        self.reconcile.observe(controller, result, took);
    }

    fn load(&self, controller: &'static str, load: Load) {
        let labels = ControllerLabels { controller };
        let set = |family: &super::components::ControllerGauge, value: usize| {
            family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.queue.depth, load.ready);
        set(&self.queue.running, load.running);
        set(&self.queue.slow, load.slow);
        set(&self.queue.failing, load.failing);
    }
}

impl CallGate for CallMetrics {
    fn after(&self, call: &Call, answer: Answer, _took: Duration) -> Delivery {
        // Other paths hold names, whose number has no bound.
        let resource = if call.verb == Verb::Other { "other" } else { call.resource.as_str() };
        match answer {
            Answer::Status(status) => self.observe(call.verb.as_str(), resource, status.as_str()),
            Answer::Disconnected => self.observe(call.verb.as_str(), resource, "disconnected"),
            Answer::TimedOut => self.observe(call.verb.as_str(), resource, "timeout"),
            Answer::TooLarge => self.observe(call.verb.as_str(), resource, "too-large"),
            Answer::NoRoom => self.observe(call.verb.as_str(), resource, "no-room"),
        }
        Delivery::Deliver
    }
}

//! The gates of every call to a cloud: the fence, which stops writes, and a counter for the metrics.

use std::sync::Arc;
use std::time::Duration;

use hangar_kit::leadership::Leadership;
use hangar_kit::metrics::CallMetrics;
use hangar_openstack::{Answer, Call, CallGate, Delivery};

/// Lets a write through only while the lease outlasts it.
pub(super) struct Fence(pub(super) Arc<dyn Leadership>);

impl CallGate for Fence {
    fn before(&self, call: &Call, limit: Duration) -> Result<(), &'static str> {
        if !call.verb.is_write() {
            return Ok(());
        }
        match self.0.remaining() {
            Some(remaining) if remaining >= limit => Ok(()),
            Some(_) => Err("the lease ends before the call would"),
            None => Err("not the leader"),
        }
    }
}

/// Counts calls beside those to API servers, by service and kind.
pub(super) struct Counted(pub(super) CallMetrics);

impl CallGate for Counted {
    fn after(&self, call: &Call, answer: Answer, _took: Duration) -> Delivery {
        let resource = format!("openstack-{}/{}", call.service, call.kind);
        let code = match answer {
            Answer::Status(status) => status.as_str().to_owned(),
            Answer::Unreached => "unreached".to_owned(),
            Answer::Disconnected => "disconnected".to_owned(),
            Answer::TimedOut => "timeout".to_owned(),
        };
        self.0.observe(call.verb.as_str(), &resource, &code);
        Delivery::Deliver
    }
}

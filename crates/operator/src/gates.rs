//! The gates of every call to a cloud and to etcd's members: the fence, which stops writes, and a counter for the metrics.

use std::sync::Arc;
use std::time::Duration;

use hangar_kit::leadership::Leadership;
use hangar_kit::metrics::CallMetrics;
use {hangar_etcd as etcd, hangar_openstack as openstack};

/// Lets a write through only while the lease outlasts it.
pub(crate) struct Fence(pub(crate) Arc<dyn Leadership>);

impl Fence {
    fn check(&self, is_write: bool, limit: Duration) -> Result<(), &'static str> {
        if !is_write {
            return Ok(());
        }
        match self.0.remaining() {
            Some(remaining) if remaining >= limit => Ok(()),
            Some(_) => Err("the lease ends before the call would"),
            None => Err("not the leader"),
        }
    }
}

impl etcd::CallGate for Fence {
    fn before(&self, call: &etcd::Call, limit: Duration) -> Result<(), &'static str> {
        self.check(call.verb.is_write(), limit)
    }
}

impl openstack::CallGate for Fence {
    fn before(&self, call: &openstack::Call, limit: Duration) -> Result<(), &'static str> {
        self.check(call.verb.is_write(), limit)
    }
}

/// Counts calls beside those to API servers: to a cloud by service and kind.
pub(crate) struct Counted(pub(crate) CallMetrics);

impl etcd::CallGate for Counted {
    fn after(&self, call: &etcd::Call, answer: etcd::Answer, _took: Duration) -> etcd::Delivery {
        let code = match answer {
            etcd::Answer::Done => "done",
            etcd::Answer::Refused => "refused",
            etcd::Answer::Unreached => "unreached",
            etcd::Answer::Unknown => "unknown",
        };
        self.0.observe(call.verb.as_str(), "etcd", code);
        etcd::Delivery::Deliver
    }
}

impl openstack::CallGate for Counted {
    fn after(
        &self,
        call: &openstack::Call,
        answer: openstack::Answer,
        _took: Duration,
    ) -> openstack::Delivery {
        let resource = format!("openstack-{}/{}", call.service, call.kind);
        let code = match answer {
            openstack::Answer::Status(status) => status.as_str().to_owned(),
            openstack::Answer::Unreached => "unreached".to_owned(),
            openstack::Answer::Disconnected => "disconnected".to_owned(),
            openstack::Answer::TimedOut => "timeout".to_owned(),
        };
        self.0.observe(call.verb.as_str(), &resource, &code);
        openstack::Delivery::Deliver
    }
}

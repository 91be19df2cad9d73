//! A server that was asked for, as long as nobody knows what became of it.
//!
//! Nova may take a request long after its caller gave up, and takes another one beside it: ports are bound later, and the
//! clean-up of the one that loses unbinds them from the one that wins, which then runs without a network. So it is written
//! on the object, before a server is asked for, that it is. A clear "no" takes that back at once (the runtime does both,
//! around the call); a server that is seen takes it back as well. What is neither stays written, for the next process
//! too, and nothing is asked for until a settling time has passed and the ports were replaced: Nova refuses a late
//! request whose port is gone.

use std::time::Duration;

use hangar_api::conditions::Actor;

use super::{CloudFacts, Draft, Observed, POLL, TYPE, delete};
use crate::flow::{StepId, Write};
use crate::openstack::{server_requested, server_requested_at};

/// Three times the longest write to a cloud.
const SETTLING: Duration = Duration::from_secs(90);
/// What is waited for until then.
const ON: &str =
    "the server that was asked for to be listed, or to be certain not to come: the answer was lost";

/// How long until a request whose end is not known is settled; none when there is none. Clocks differ: a time ahead of
/// ours counts like one as far behind.
pub(super) fn unsettled(observed: &Observed) -> Option<Duration> {
    let requested_at = server_requested_at(observed.object.metadata.annotations.as_ref())?;
    Some(SETTLING.saturating_sub(observed.now.duration_since(requested_at).unsigned_abs()))
}

/// True while the request is not settled.
pub(super) fn waits(draft: &mut Draft<'_>, reason: &str, left: Duration) -> bool {
    if !left.is_zero() {
        draft.wait(TYPE, reason, Actor::Cloud, ON);
        draft.again(left.min(POLL));
    }
    !left.is_zero()
}

/// No server came of it: all that it could be made of goes, then the note.
pub(super) fn settle(draft: &mut Draft<'_>, facts: &CloudFacts, left: Duration) {
    if !waits(draft, "InstanceNotReady", left) && delete::ports(draft, facts, "InstanceNotReady") {
        draft.step(forget());
        draft.working(TYPE, "InstanceNotReady", "the lost request to be forgotten");
    }
}

/// It is known what became of it.
pub(super) fn forget() -> Write {
    Write::itself(StepId::new("settle", "request", "self"), server_requested(None))
}

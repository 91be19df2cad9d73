//! The note of a request for a server whose outcome is not known yet.
//!
//! Nova may accept a request long after its caller gave up, and it accepts a second one beside it. Ports are bound
//! later, and the clean-up of the request that loses unbinds them from the server that wins, which then runs without a
//! network. So before a server is requested, a note of the request is written on the object. A clear refusal removes
//! the note at once (the runtime does both, around the call); so does a server that is seen. Otherwise the note stays,
//! also for the next process, and no server is requested until a settling time has passed and the ports were replaced:
//! Nova refuses a late request whose port is gone.

use std::time::Duration;

use super::{Decided, Situation, State};
use crate::flow::{StepId, Write};
use crate::openstack::server_requested;

/// How long a lost request may still be carried out: three times the longest write to a cloud.
pub const SETTLING: Duration = Duration::from_secs(90);
/// It may be listed before that.
const LISTED: Duration = Duration::from_secs(15);

impl Situation<'_> {
    /// The wait until a request whose end is not known is settled. Clocks differ: a time ahead of ours counts like one as
    /// far behind.
    pub(super) fn unsettled(&self) -> Option<Decided> {
        let left = self.settling.saturating_sub(self.now.duration_since(self.requested_at?).unsigned_abs());
        let on =
            "the server that was asked for to be listed, or to be certain not to come: the answer was lost";
        let waiting = State::Waiting { on: on.to_owned(), again: left.min(LISTED) };
        (!left.is_zero()).then(|| waiting.into())
    }

    /// No server came of it: all that it could be made of goes, then the note.
    pub(super) fn settle(&self) -> Decided {
        self.unsettled().or_else(|| self.without_ports()).unwrap_or_else(|| Decided {
            steps: vec![forget().into()],
            ..State::Working("the lost request to be forgotten").into()
        })
    }
}

/// It is known what became of it.
pub(super) fn forget() -> Write {
    Write::itself(StepId::new("settle", "request", "self"), server_requested(None))
}

//! A request for a server whose outcome is not known yet.
//!
//! Nova may accept a request long after its caller gave up, and it accepts a second one beside it. Ports are bound
//! later, and the clean-up of the request that loses unbinds them from the server that wins, which then runs without a
//! network. So the note of the request ([`crate::openstack::Request`]) stays until a server is seen, and while it is
//! there no server is requested until a settling time has passed and the ports were replaced: Nova refuses a late request
//! whose port is gone.

use super::{Decided, Situation, State};
use crate::flow::Write;
use crate::openstack::Request;
use crate::openstack::request::{LISTED, awaited, left};

impl Situation<'_> {
    /// The wait until a request whose end is not known is settled.
    pub(super) fn unsettled(&self) -> Option<Decided> {
        let left = left(self.requested_at?, self.settling, self.now)?;
        Some(State::Waiting { on: awaited("server"), again: left.min(LISTED) }.into())
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
    Request::Server.forget()
}

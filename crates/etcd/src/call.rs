//! Names calls, and defines the gates that see them.
//!
//! The same call has the same name in every run: what it does, and to which member or object. Gates are asked before a
//! request is sent and after its answer is complete. A stream is one call, whose answer is complete when it has begun.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Error;

/// What a call does: first those to members, then those to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    Status,
    ListMembers,
    AddLearner,
    Promote,
    RemoveMember,
    UpdatePeers,
    MoveLeader,
    Defragment,
    ListAlarms,
    DisarmAlarm,
    Hash,
    /// Reads the revision.
    Revision,
    Snapshot,
    GetObject,
    ListObjects,
    PutObject,
    DeleteObject,
    ListUploads,
    BeginUpload,
    UploadPart,
    CompleteUpload,
    AbortUpload,
}

impl Verb {
    /// True when the call can change something that others see.
    pub fn is_write(self) -> bool {
        !matches!(
            self,
            Self::Status
                | Self::ListMembers
                | Self::ListAlarms
                | Self::Hash
                | Self::Revision
                | Self::Snapshot
                | Self::GetObject
                | Self::ListObjects
                | Self::ListUploads
        )
    }

    /// True for calls to a store, and not to a member.
    pub fn is_of_store(self) -> bool {
        self >= Self::GetObject
    }

    /// As in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::ListMembers => "list members",
            Self::AddLearner => "add learner",
            Self::Promote => "promote",
            Self::RemoveMember => "remove member",
            Self::UpdatePeers => "update peers",
            Self::MoveLeader => "move leader",
            Self::Defragment => "defragment",
            Self::ListAlarms => "list alarms",
            Self::DisarmAlarm => "disarm alarm",
            Self::Hash => "hash",
            Self::Revision => "revision",
            Self::Snapshot => "snapshot",
            Self::GetObject => "get object",
            Self::ListObjects => "list objects",
            Self::PutObject => "put object",
            Self::DeleteObject => "delete object",
            Self::ListUploads => "list uploads",
            Self::BeginUpload => "begin upload",
            Self::UploadPart => "upload part",
            Self::CompleteUpload => "complete upload",
            Self::AbortUpload => "abort upload",
        }
    }
}

/// A call, by a name that is the same in every run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    pub verb: Verb,
    /// At which member, or about which object of a bucket.
    pub about: String,
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.verb.as_str(), self.about)
    }
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// The other side said no.
    Refused,
    /// No connection was made, so nothing was sent.
    Unreached,
    /// It may have been sent; no answer that can be read.
    Unknown,
}

/// What happens to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The caller gets it.
    Deliver,
    /// The caller gets [`Error::Lost`], as if the connection had died after the other side was done.
    Withhold(&'static str),
}

/// Asked about every call. Must not block.
pub trait CallGate: Send + Sync + 'static {
    /// Before it is sent; `limit` is the longest it can take. An error keeps it from being sent.
    fn before(&self, call: &Call, limit: Duration) -> Result<(), &'static str> {
        let _ = (call, limit);
        Ok(())
    }

    /// After it was answered or failed. Not asked when a gate stopped the call.
    fn after(&self, call: &Call, answer: Answer, took: Duration) -> Delivery {
        let _ = (call, answer, took);
        Delivery::Deliver
    }
}

/// The gates of one client.
#[derive(Clone, Default)]
pub(crate) struct Gates(Vec<Arc<dyn CallGate>>);

impl fmt::Debug for Gates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} gates", self.0.len())
    }
}

impl Gates {
    pub(crate) fn new(gates: Vec<Arc<dyn CallGate>>) -> Self {
        Self(gates)
    }

    /// Makes the call, if no gate is against it, and asks them about the answer.
    pub(crate) async fn pass<T>(
        &self,
        call: &Call,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        for gate in &self.0 {
            gate.before(call, limit).map_err(|why| Error::Stopped { call: call.clone(), why })?;
        }
        let started = std::time::Instant::now();
        let result = match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::TimedOut { call: call.clone(), limit }),
        };
        let answer = result.as_ref().map_or_else(Error::answer, |_| Answer::Done);
        let took = started.elapsed();
        tracing::debug!(%call, ?answer, ?took, "etcd call");
        let mut withheld = None;
        for gate in &self.0 {
            if let Delivery::Withhold(why) = gate.after(call, answer, took) {
                withheld = Some(why);
            }
        }
        match withheld {
            Some(why) => Err(Error::Lost { call: call.clone(), why: why.to_owned() }),
            None => result,
        }
    }
}

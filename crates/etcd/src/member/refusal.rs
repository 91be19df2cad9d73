//! What a member means when it says no.
//!
//! etcd says it in words: several kinds share one gRPC code, and some come with the code `Unknown`, because their error
//! types carry none. The words are those of `rpctypes/error.go`, which clients in all languages compare; they have not
//! changed since etcd 3.4.
//!
//! Not every refusal is one. A member that answers "request timed out" has proposed the change and does not know whether
//! the others accepted it: it may be done later. Such kinds are unknown ([`RefusalKind::is_unknown`]).

use std::error::Error as StdError;

use tonic::{Code, Status};

use crate::text::{causes, clean};
use crate::{Call, Error};

/// A member's no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {text}")]
pub struct Refusal {
    pub call: Call,
    pub kind: RefusalKind,
    /// In the member's own words.
    pub text: String,
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// Promoted too early: the learner has not caught up with the leader.
    LearnerNotReady,
    /// There is another learner already.
    TooManyLearners,
    /// Not enough members run to lose or gain one.
    NotEnoughStarted,
    /// A member was not connected to the others for a while, and changes of members wait for that.
    Unhealthy,
    NoLeader,
    /// Only the leader does this.
    NotLeader,
    /// The member that is to lead cannot.
    BadTransferee,
    MemberNotFound,
    /// A member with the same id, which follows from the peer URLs and the time.
    MemberExists,
    PeerUrlExists,
    BadPeerUrls,
    /// It votes already.
    NotLearner,
    /// Learners do not answer this.
    IsLearner,
    NoSpace,
    /// The members' data differ.
    Corrupt,
    /// The revision that was asked for is compacted, or does not exist yet.
    NoSuchRevision,
    /// Proposed, and the outcome is unknown to the member.
    OutcomeUnknown,
    /// It is shutting down; what was proposed may be done by the others.
    Stopping,
    Overloaded,
    /// The certificate is not accepted for this.
    Denied,
    Unsupported,
    Other,
}

/// The kinds by words that only they have; the longest come first where one contains another.
const WORDS: [(&str, RefusalKind); 25] = [
    ("can only promote a learner member which is in sync with leader", RefusalKind::LearnerNotReady),
    ("can only promote a learner member", RefusalKind::NotLearner),
    ("too many learner members in cluster", RefusalKind::TooManyLearners),
    ("not enough started members", RefusalKind::NotEnoughStarted),
    ("unhealthy cluster", RefusalKind::Unhealthy),
    ("no leader", RefusalKind::NoLeader),
    ("not leader", RefusalKind::NotLeader),
    ("bad leader transferee", RefusalKind::BadTransferee),
    ("leader changed", RefusalKind::OutcomeUnknown),
    ("request timed out", RefusalKind::OutcomeUnknown),
    ("request cancelled", RefusalKind::OutcomeUnknown),
    ("member not found", RefusalKind::MemberNotFound),
    ("member ID already exist", RefusalKind::MemberExists),
    ("Peer URLs already exists", RefusalKind::PeerUrlExists),
    ("given member URLs are invalid", RefusalKind::BadPeerUrls),
    ("rpc not supported for learner", RefusalKind::IsLearner),
    ("database space exceeded", RefusalKind::NoSpace),
    ("corrupt cluster", RefusalKind::Corrupt),
    ("required revision has been compacted", RefusalKind::NoSuchRevision),
    ("required revision is a future revision", RefusalKind::NoSuchRevision),
    ("server stopped", RefusalKind::Stopping),
    ("too many requests", RefusalKind::Overloaded),
    ("permission denied", RefusalKind::Denied),
    ("not capable", RefusalKind::Unsupported),
    ("invalid auth token", RefusalKind::Denied),
];

impl RefusalKind {
    /// True when a write may be done, or may still become so.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::OutcomeUnknown | Self::Stopping | Self::Other)
    }

    /// True when the same call may succeed later without an action of a person.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::LearnerNotReady
                | Self::TooManyLearners
                | Self::NotEnoughStarted
                | Self::Unhealthy
                | Self::NoLeader
                | Self::NotLeader
                | Self::BadTransferee
                | Self::OutcomeUnknown
                | Self::Stopping
                | Self::Overloaded
        )
    }

    /// Stable, one word in `PascalCase`: the event reason and the metric label.
    pub fn category(self) -> &'static str {
        match self {
            Self::LearnerNotReady => "LearnerNotReady",
            Self::TooManyLearners => "TooManyLearners",
            Self::NotEnoughStarted => "NotEnoughMembers",
            Self::Unhealthy => "EtcdUnhealthy",
            Self::NoLeader => "NoLeader",
            Self::NotLeader => "NotLeader",
            Self::BadTransferee => "BadTransferee",
            Self::MemberNotFound => "MemberNotFound",
            Self::MemberExists => "MemberExists",
            Self::PeerUrlExists => "PeerURLExists",
            Self::BadPeerUrls => "BadPeerURLs",
            Self::NotLearner => "NotLearner",
            Self::IsLearner => "IsLearner",
            Self::NoSpace => "NoSpace",
            Self::Corrupt => "Corrupt",
            Self::NoSuchRevision => "NoSuchRevision",
            Self::OutcomeUnknown => "OutcomeUnknown",
            Self::Stopping => "MemberStopping",
            Self::Overloaded => "Overloaded",
            Self::Denied => "Denied",
            Self::Unsupported => "Unsupported",
            Self::Other => "Refused",
        }
    }

    fn of(code: Code, text: &str) -> Self {
        if let Some((_, kind)) = WORDS.iter().find(|(words, _)| text.contains(words)) {
            return *kind;
        }
        match code {
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied,
            Code::Unimplemented => Self::Unsupported,
            _ => Self::Other,
        }
    }
}

/// What a failed call means: whether it was sent, answered, or neither is known.
pub(super) fn read(call: &Call, status: &Status, limit: std::time::Duration) -> Error {
    let source = status.source();
    let chain = std::iter::successors(source, |error| (*error).source()).take(16);
    let mut is_unreached = false;
    let mut is_late = matches!(status.code(), Code::DeadlineExceeded);
    for error in chain {
        is_unreached |= error.is::<tonic::ConnectError>();
        is_late |= error.is::<tonic::TimeoutExpired>();
    }
    let call = call.clone();
    if is_unreached {
        return Error::Unreached { call, why: source.map(causes).unwrap_or_default() };
    }
    if is_late {
        return Error::TimedOut { call, limit };
    }
    let text = clean(status.message().trim_start_matches("etcdserver: "));
    if status.code() == Code::OutOfRange && text.contains("decoded message length too large") {
        return Error::Malformed { call, why: text };
    }
    // A status without a source was sent by the member, or by what stands in its place; etcd's own begin with its name.
    // Anything else that can come of a connection that broke says nothing about the call.
    let is_etcds = status.message().starts_with("etcdserver: ");
    let is_of_transport =
        matches!(status.code(), Code::Unknown | Code::Internal | Code::Unavailable | Code::Cancelled);
    if source.is_some()
        || (is_of_transport && !is_etcds && RefusalKind::of(status.code(), &text) == RefusalKind::Other)
    {
        let why = source.map_or(text, causes);
        return Error::Lost { call, why };
    }
    let kind = RefusalKind::of(status.code(), &text);
    Error::Refused(Box::new(Refusal { call, kind, text }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Verb;

    fn refused(code: Code, text: &str) -> Error {
        let call = Call { verb: Verb::Promote, about: "etcd-0".to_owned() };
        read(&call, &Status::new(code, text), Duration::from_secs(1))
    }

    #[test]
    fn a_promotion_that_is_too_early_is_not_one_of_a_voter() {
        let kind = |text: &str| refused(Code::FailedPrecondition, text).refusal().map(|refusal| refusal.kind);
        let early = "etcdserver: can only promote a learner member which is in sync with leader";
        assert_eq!(kind(early), Some(RefusalKind::LearnerNotReady));
        assert_eq!(kind("etcdserver: can only promote a learner member"), Some(RefusalKind::NotLearner));
    }

    #[test]
    fn a_refusal_without_a_code_of_its_own_is_one() {
        let text = "etcdserver: re-configuration failed due to not enough started members";
        let error = refused(Code::Unknown, text);
        assert_eq!(error.refusal().map(|refusal| refusal.kind), Some(RefusalKind::NotEnoughStarted));
        assert!(!error.is_lost());
    }

    #[test]
    fn what_a_member_does_not_know_is_lost_and_not_refused() {
        for text in [
            "etcdserver: request timed out",
            "etcdserver: request timed out, possibly due to previous leader failure",
            "etcdserver: leader changed",
            "etcdserver: server stopped",
        ] {
            let error = refused(Code::Unavailable, text);
            assert!(error.is_lost() && error.is_retryable(), "{error}");
        }
        assert!(refused(Code::Unavailable, "upstream connect error").is_lost());
        assert!(refused(Code::DeadlineExceeded, "context deadline exceeded").is_lost());
        assert!(!refused(Code::Unavailable, "etcdserver: unhealthy cluster").is_lost());
    }

    #[test]
    fn a_hostile_text_is_shortened() {
        let text = format!("etcdserver: {}\n\u{7}", "x".repeat(100_000));
        assert!(refused(Code::FailedPrecondition, &text).to_string().len() < 500);
    }
}

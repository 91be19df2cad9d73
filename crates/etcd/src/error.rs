//! Errors, distinguished by what a caller does about them.
//!
//! Three families. A call failed: whether it was sent, and whether the other side said no, decide what may be done next.
//! Data is not what it should be: a snapshot, an encrypted object, a backup; these never heal by trying again. And a
//! configuration cannot be used.

use std::time::Duration;

use crate::{Answer, Call, Refusal, StoreRefusal};

/// Why something was not done, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An address, a certificate or a key cannot be used as it is.
    #[error("{what}: {why}")]
    Unusable { what: &'static str, why: String },
    /// A member answered, and said no.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A store answered, and said no.
    #[error(transparent)]
    StoreRefused(Box<StoreRefusal>),
    /// Nothing was sent: no connection.
    #[error("{call}: not sent: {why}")]
    Unreached { call: Call, why: String },
    /// Sent, and no whole answer came.
    #[error("{call}: the answer was lost: {why}")]
    Lost { call: Call, why: String },
    /// No answer within the time limit. The request may have been sent.
    #[error("{call}: no answer within {limit:?}")]
    TimedOut { call: Call, limit: Duration },
    /// A gate kept it from being sent.
    #[error("{call} stopped: {why}")]
    Stopped { call: Call, why: &'static str },
    /// The other side did it, and the answer cannot be read.
    #[error("{call}: unexpected answer: {why}")]
    Malformed { call: Call, why: String },
    /// A stream of a database is not a whole snapshot.
    #[error("the snapshot is {0}")]
    Snapshot(SnapshotFault),
    /// An encrypted object cannot be opened.
    #[error("the encrypted object {0}")]
    Encryption(EncryptionFault),
    /// There is no such backup, or it is not usable.
    #[error("backup {id}: {fault}")]
    Backup { id: String, fault: BackupFault },
    /// Reading a backup or writing it to its destination failed here.
    #[error("writing the snapshot: {0}")]
    Sink(String),
}

/// Why bytes are not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotFault {
    #[error("cut off after {received} bytes")]
    CutOff {
        received: u64,
        /// How many there should have been, where that was told.
        expected: Option<u64>,
    },
    /// All bytes came, and they are not those that etcd made the digest of.
    #[error("damaged: its digest is wrong")]
    Damaged,
    /// It does not begin as a database of etcd does.
    #[error("no snapshot of etcd")]
    NotASnapshot,
    /// Larger than allowed.
    #[error("larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// It is not the one that the manifest describes.
    #[error("not the one in the manifest: its digest is another one")]
    Another,
}

/// Why an encrypted object cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncryptionFault {
    #[error("is not encrypted")]
    NotEncrypted,
    #[error("needs a key, and none was given")]
    KeyNeeded,
    /// It was encrypted with another key.
    #[error("was encrypted with another key")]
    WrongKey,
    /// It ends before its end. All that came is genuine.
    #[error("is cut off")]
    CutOff,
    /// Changed, put in another order, cut within a piece, or moved here from another backup.
    #[error("was changed, or cut off, or belongs to another backup")]
    Altered,
    /// Made by a newer version.
    #[error("has a format that this version does not know")]
    UnknownFormat,
}

/// Why a backup cannot be used or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackupFault {
    /// Neither manifest nor snapshot.
    #[error("does not exist")]
    Absent,
    /// There is a manifest without a snapshot.
    #[error("its snapshot is missing")]
    SnapshotMissing,
    /// One of the same id is complete already.
    #[error("exists already")]
    Exists,
    #[error("its manifest cannot be read: {0}")]
    Manifest(String),
    /// The object has another size than the manifest says.
    #[error("its object has {found} bytes instead of {expected}")]
    Size { found: u64, expected: u64 },
    /// Keys are never written unencrypted.
    #[error("keys are part of a backup only if it is encrypted")]
    KeysNeedEncryption,
}

impl From<SnapshotFault> for Error {
    fn from(fault: SnapshotFault) -> Self {
        Self::Snapshot(fault)
    }
}

impl From<EncryptionFault> for Error {
    fn from(fault: EncryptionFault) -> Self {
        Self::Encryption(fault)
    }
}

impl Error {
    #[allow(clippy::needless_pass_by_value, reason = "texts and errors are made where this is called")]
    pub(crate) fn unusable(what: &'static str, why: impl std::fmt::Display) -> Self {
        Self::Unusable { what, why: crate::text::clean(&format!("{why}")) }
    }

    /// The call it is about, if it is about one.
    pub fn call(&self) -> Option<&Call> {
        match self {
            Self::Refused(refusal) => Some(&refusal.call),
            Self::StoreRefused(refusal) => Some(&refusal.call),
            Self::Unreached { call, .. }
            | Self::Lost { call, .. }
            | Self::TimedOut { call, .. }
            | Self::Stopped { call, .. }
            | Self::Malformed { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The refusal, if a member answered.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The refusal, if a store answered.
    pub fn store_refusal(&self) -> Option<&StoreRefusal> {
        match self {
            Self::StoreRefused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// True when a write may have happened although its outcome is not known. Only reading tells.
    pub fn is_lost(&self) -> bool {
        let is_open = match self {
            Self::Lost { .. } | Self::TimedOut { .. } | Self::Malformed { .. } => true,
            Self::Refused(refusal) => refusal.kind.is_unknown(),
            Self::StoreRefused(refusal) => refusal.kind.is_unknown(),
            _ => false,
        };
        is_open && self.call().is_some_and(|call| call.verb.is_write())
    }

    /// True when the same call may succeed later without an action of a person.
    pub fn is_retryable(&self) -> bool {
        match self {
            // A snapshot is taken again, from a member that does not fail in the middle.
            Self::Unreached { .. }
            | Self::Lost { .. }
            | Self::TimedOut { .. }
            | Self::Stopped { .. }
            | Self::Snapshot(SnapshotFault::CutOff { .. }) => true,
            Self::Refused(refusal) => refusal.kind.is_transient(),
            Self::StoreRefused(refusal) => refusal.kind.is_transient(),
            _ => false,
        }
    }

    /// True when a person has to change something: credentials, a bucket, a key.
    pub fn is_user_fault(&self) -> bool {
        match self {
            Self::Unusable { .. }
            | Self::Encryption(EncryptionFault::WrongKey | EncryptionFault::KeyNeeded) => true,
            Self::StoreRefused(refusal) => !refusal.kind.is_transient(),
            _ => false,
        }
    }

    /// Stable, one word in `PascalCase`: the event reason and the metric label.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => "InvalidConfiguration",
            Self::Refused(refusal) => refusal.kind.category(),
            Self::StoreRefused(refusal) => refusal.kind.category(),
            Self::Unreached { .. } => "Unreachable",
            Self::Lost { .. } => "AnswerLost",
            Self::TimedOut { .. } => "Timeout",
            Self::Stopped { .. } => "Stopped",
            Self::Malformed { .. } => "UnexpectedAnswer",
            Self::Snapshot(SnapshotFault::CutOff { .. }) => "SnapshotCutOff",
            Self::Snapshot(_) => "SnapshotInvalid",
            Self::Encryption(EncryptionFault::WrongKey | EncryptionFault::KeyNeeded) => "WrongKey",
            Self::Encryption(_) => "EncryptionBroken",
            Self::Backup { fault: BackupFault::Absent | BackupFault::SnapshotMissing, .. } => "BackupMissing",
            Self::Backup { .. } => "BackupInvalid",
            Self::Sink(_) => "WriteFailed",
        }
    }

    /// What a gate is told.
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Self::Unreached { .. } | Self::Stopped { .. } | Self::Unusable { .. } => Answer::Unreached,
            Self::Refused(refusal) if !refusal.kind.is_unknown() => Answer::Refused,
            Self::StoreRefused(refusal) if !refusal.kind.is_unknown() => Answer::Refused,
            _ => Answer::Unknown,
        }
    }
}

//! Calls etcd members, streams snapshots of them, and keeps these in S3.
//!
//! ```text
//! Member --snapshot()--> Snapshot --(pieces, checked)--> BackupStore::write --(encrypted, in parts)--> S3
//!                                                        BackupStore::read  <--(opened, checked)---
//! ```
//!
//! - [`Member`] is one member of one etcd cluster, by its own address. Nothing here chooses among members: which one is
//!   asked, and in which order members are changed, belongs to the plan.
//! - [`Snapshot`] is the database of a member, piece by piece. It ends well only when all of it came and the digest that
//!   etcd appends is right.
//! - [`BackupStore`] keeps snapshots of one control plane in a bucket. [`Retention`] says which of them are to go, as a
//!   pure function.
//!
//! What callers can rely on:
//! - **Unknown is not refused.** [`Error::is_lost`] is true for a write that may have happened: the answer was lost, or
//!   the member itself does not know. Only reading tells. A write is sent once, never again by itself.
//! - **Refusals are data** ([`RefusalKind`], [`StoreRefusalKind`]): a learner that is not in sync, a cluster without a
//!   leader, a bucket that does not exist.
//! - **Every call ends.** Short calls have a time limit, streams a limit for the time between two pieces ([`Limits`],
//!   [`StoreLimits`]).
//! - **Nothing that comes from outside is believed.** Answers have a largest size, texts are shortened and cleaned,
//!   identifiers are parsed, a stream that ends early is an error.
//! - **A snapshot is never in memory**: at most one part of an upload is.
//! - **Every call passes the gates** ([`CallGate`]), which may stop it or withhold its answer: the fence of the leader
//!   and the crash sweep are built on that.
//! - **Credentials and keys** are in no `Debug`, error or log line.

mod backup;
mod call;
mod companion;
mod encryption;
mod error;
mod id;
mod member;
mod s3;
mod settings;
mod snapshot;
mod text;
mod volume;

pub use backup::{
    Backup, BackupId, BackupStore, Companion, Encryption, InvalidBackupId, Leftovers, Listing, Manifest,
    NewBackup, Owner, Retention,
};
pub use call::{Answer, Call, CallGate, Delivery, Verb};
pub use companion::{Files, KeyFiles};
pub use encryption::BackupKey;
pub use error::{BackupFault, EncryptionFault, Error, SnapshotFault};
pub use id::{ClusterId, Digest, MemberId, Revision};
pub use member::{
    Added, Alarm, AlarmKind, ClusterMember, Credentials, Freshness, Hash, Limits, Member, MemberOptions,
    MemberStatus, Membership, Refusal, RefusalKind,
};
pub use s3::{AddressRule, Addressing, StoreConfig, StoreLimits, StoreRefusal, StoreRefusalKind};
pub use settings::StoreKeys;
pub use snapshot::{Origin, Snapshot, Taken};
pub use volume::{fetch, inspect, place};

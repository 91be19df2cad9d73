//! What a member tells about itself, and the alarms of the cluster.

use super::Member;
use super::wire::{AlarmRequest, AlarmResponse, Empty, StatusResponse, WireAlarm};
use crate::text::clean;
use crate::{ClusterId, Error, MemberId, Revision, Verb};

/// More texts of errors are not kept.
const MOST_ERRORS: usize = 16;

const GET: i32 = 0;
const DEACTIVATE: i32 = 2;

/// A member, as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    pub member: MemberId,
    pub cluster: ClusterId,
    /// Whom it follows, or itself; none where it knows of no leader.
    pub leader: Option<MemberId>,
    pub is_learner: bool,
    /// Of its own key space: other members may be ahead.
    pub revision: Revision,
    pub raft_term: u64,
    pub raft_index: u64,
    /// How far of that it has applied.
    pub raft_applied_index: u64,
    /// Of the program, such as `3.6.16`.
    pub version: String,
    /// Of the database's format, such as `3.6.0`; from etcd 3.6 on.
    pub storage_version: Option<String>,
    /// Of the file, in bytes.
    pub database_size: u64,
    /// What of it is in use; the rest is free inside the file until a defragmentation.
    pub database_in_use: u64,
    /// From which size on writes are refused; from etcd 3.6 on.
    pub database_quota: Option<u64>,
    /// Alarms and the like, in its own words.
    pub errors: Vec<String>,
}

impl MemberStatus {
    pub fn is_leader(&self) -> bool {
        self.leader == Some(self.member)
    }
}

/// What is wrong with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlarmKind {
    /// Its database reached the quota: the cluster refuses writes.
    NoSpace,
    /// Its data differ from those of the others.
    Corrupt,
}

impl AlarmKind {
    fn number(self) -> i32 {
        match self {
            Self::NoSpace => 1,
            Self::Corrupt => 2,
        }
    }
}

/// An alarm that is on until it is disarmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alarm {
    pub member: MemberId,
    pub kind: AlarmKind,
}

impl Member {
    /// Answered by the member alone: also without a leader, and by a learner.
    pub async fn status(&self) -> Result<MemberStatus, Error> {
        const VERB: Verb = Verb::Status;
        let answer: StatusResponse = self.call(VERB, "/etcdserverpb.Maintenance/Status", Empty {}).await?;
        let header = self.header(VERB, answer.header)?;
        let optional_text = |text: String| Some(clean(&text)).filter(|text| !text.is_empty());
        let quota = self.unsigned(VERB, "the quota", answer.db_size_quota)?;
        Ok(MemberStatus {
            member: MemberId::new(header.member_id),
            cluster: ClusterId::new(header.cluster_id),
            leader: Some(answer.leader).filter(|id| *id != 0).map(MemberId::new),
            is_learner: answer.is_learner,
            revision: Revision::new(self.unsigned(VERB, "the revision", header.revision)?),
            raft_term: answer.raft_term,
            raft_index: answer.raft_index,
            raft_applied_index: answer.raft_applied_index,
            version: clean(&answer.version),
            storage_version: optional_text(answer.storage_version),
            database_size: self.unsigned(VERB, "the size of the database", answer.db_size)?,
            database_in_use: self.unsigned(VERB, "the used size of the database", answer.db_size_in_use)?,
            database_quota: Some(quota).filter(|quota| *quota != 0),
            errors: answer.errors.iter().take(MOST_ERRORS).map(|text| clean(text)).collect(),
        })
    }

    /// The alarms of all members, as this one knows them.
    pub async fn alarms(&self) -> Result<Vec<Alarm>, Error> {
        let request = AlarmRequest { action: GET, member_id: 0, alarm: 0 };
        let answer: AlarmResponse =
            self.call(Verb::ListAlarms, "/etcdserverpb.Maintenance/Alarm", request).await?;
        self.header(Verb::ListAlarms, answer.header)?;
        answer.alarms.iter().map(|alarm| self.alarm(alarm)).collect()
    }

    /// Ends an alarm. Succeeds when it is not on.
    pub async fn disarm(&self, alarm: Alarm) -> Result<(), Error> {
        let request =
            AlarmRequest { action: DEACTIVATE, member_id: alarm.member.number(), alarm: alarm.kind.number() };
        let answer: AlarmResponse =
            self.call(Verb::DisarmAlarm, "/etcdserverpb.Maintenance/Alarm", request).await?;
        self.header(Verb::DisarmAlarm, answer.header).map(drop)
    }

    fn alarm(&self, alarm: &WireAlarm) -> Result<Alarm, Error> {
        let kind = match alarm.alarm {
            1 => AlarmKind::NoSpace,
            2 => AlarmKind::Corrupt,
            other => {
                return Err(self.malformed(Verb::ListAlarms, format!("an alarm of the unknown kind {other}")));
            }
        };
        Ok(Alarm { member: MemberId::new(alarm.member_id), kind })
    }
}

//! Care of one member's database: defragmentation, hashes, the beginning of a snapshot.

use futures::StreamExt;
use http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

use super::wire::{Acknowledged, Empty, HashRequest, HashResponse, RangeRequest, SnapshotFrame};
use super::{Member, refusal};
use crate::snapshot::Frame;
use crate::text::clean;
use crate::{ClusterId, Error, MemberId, Origin, Revision, Snapshot, Verb};

/// The largest piece of a snapshot that is taken; etcd sends 32 KiB.
const LARGEST_FRAME: usize = 1 << 20;

/// How much of what was acknowledged to writers has to be in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// All of it, as of the beginning: the member first catches up with the majority. Fails without one, and on learners.
    Acknowledged,
    /// What the member has. For a member that is the last one left.
    AsFound,
}

/// A hash of a member's key space up to a revision. Members that agree have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    pub member: MemberId,
    pub cluster: ClusterId,
    pub hash: u32,
    /// Up to which revision.
    pub revision: Revision,
    /// Hashes can be compared only if this is the same: what is older was dropped.
    pub compact_revision: Option<Revision>,
}

impl Member {
    /// Gives free space inside the database back to the file system. The member answers nothing meanwhile.
    pub async fn defragment(&self) -> Result<(), Error> {
        let _: Acknowledged =
            self.call(Verb::Defragment, "/etcdserverpb.Maintenance/Defragment", Empty {}).await?;
        // etcd sends no header here.
        Ok(())
    }

    /// Of the key space up to `revision`, or up to now.
    pub async fn hash(&self, revision: Option<Revision>) -> Result<Hash, Error> {
        const VERB: Verb = Verb::Hash;
        let revision = i64::try_from(revision.map_or(0, Revision::number)).unwrap_or(i64::MAX);
        let answer: HashResponse =
            self.call(VERB, "/etcdserverpb.Maintenance/HashKV", HashRequest { revision }).await?;
        let header = self.header(VERB, answer.header)?;
        // Before the first compaction it is -1.
        let compacted = u64::try_from(answer.compact_revision).ok().filter(|revision| *revision > 0);
        // Members before 3.6 do not say up to where; it is what was asked for, or the revision in the header.
        let up_to = [answer.hash_revision, revision, header.revision].into_iter().find(|number| *number > 0);
        Ok(Hash {
            member: MemberId::new(header.member_id),
            cluster: ClusterId::new(header.cluster_id),
            hash: answer.hash,
            revision: Revision::new(self.unsigned(VERB, "the revision", up_to.unwrap_or_default())?),
            compact_revision: compacted.map(Revision::new),
        })
    }

    /// The revision that contains every write that was acknowledged before this call. Needs a majority.
    pub async fn revision(&self) -> Result<Revision, Error> {
        const VERB: Verb = Verb::Revision;
        let request = RangeRequest { key: Self::no_key(), limit: 1, count_only: true };
        let answer: Acknowledged = self.call(VERB, "/etcdserverpb.KV/Range", request).await?;
        let header = self.header(VERB, answer.header)?;
        Ok(Revision::new(self.unsigned(VERB, "the revision", header.revision)?))
    }

    /// Begins to stream the database.
    ///
    /// A follower may not have applied yet what writers were told is done, so that it is first asked for the revision
    /// that contains all of that, and then has it ([`Freshness::Acknowledged`]). The snapshot may contain later writes
    /// too.
    pub async fn snapshot(&self, freshness: Freshness) -> Result<Snapshot, Error> {
        let least = match freshness {
            Freshness::Acknowledged => Some(self.revision().await?),
            Freshness::AsFound => None,
        };
        let status = self.status().await?;
        let origin = Origin {
            cluster: status.cluster,
            member: status.member,
            revision: least.unwrap_or(status.revision),
            version: status.version,
        };
        let call = self.named(Verb::Snapshot);
        let limit = self.limits.call;
        let work = async {
            let mut grpc = self.grpc(LARGEST_FRAME);
            let unreached = |error| Error::Unreached { call: call.clone(), why: crate::text::causes(&error) };
            grpc.ready().await.map_err(unreached)?;
            let codec = ProstCodec::<Empty, SnapshotFrame>::default();
            let path = PathAndQuery::from_static("/etcdserverpb.Maintenance/Snapshot");
            let answer = grpc.server_streaming(tonic::Request::new(Empty {}), path, codec).await;
            answer.map_err(|status| refusal::read(&call, &status, limit))
        };
        let stream = self.gates.pass(&call, limit, work).await?.into_inner();
        let idle = self.limits.idle;
        let frames = futures::stream::unfold(Some((stream, call)), move |state| async move {
            let (mut stream, call) = state?;
            let frame = match tokio::time::timeout(idle, stream.message()).await {
                Err(_) => Err(Error::TimedOut { call: call.clone(), limit: idle }),
                Ok(Err(status)) => Err(refusal::read(&call, &status, idle)),
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(frame))) => Ok(Frame {
                    remaining: frame.remaining_bytes,
                    storage_version: Some(clean(&frame.storage_version)).filter(|text| !text.is_empty()),
                    bytes: frame.blob,
                }),
            };
            let next = frame.is_ok().then_some((stream, call));
            Some((frame, next))
        });
        Ok(Snapshot::new(origin, frames.boxed(), self.limits.largest_snapshot))
    }
}

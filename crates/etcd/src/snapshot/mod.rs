//! A member's database, piece by piece, and whether all of it came.
//!
//! etcd streams the file of its database, and then 32 bytes more: the SHA-256 of the file. The pieces say how many bytes
//! of the file are still to come. Nothing else marks the end, so that a connection that closes early looks like a
//! complete answer to whoever only reads it. [`Snapshot::next`] therefore says that there is no more only when the count
//! and the digest are right; everything else that ends a stream is an error.
//!
//! Pieces are handed on before the digest is known: a consumer keeps what it writes apart until the end.
//! [`BackupStore`](crate::BackupStore) completes its upload only then.

mod check;

use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};

pub(crate) use check::{Checked, SnapshotCheck};

use crate::{ClusterId, Digest, Error, MemberId, Revision, SnapshotFault};

/// Where a snapshot comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub cluster: ClusterId,
    pub member: MemberId,
    /// The snapshot contains all writes up to this one. It may contain later ones.
    pub revision: Revision,
    /// Of the member's program.
    pub version: String,
}

/// A piece as it arrives.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// How many bytes of the file are still to come.
    pub(crate) remaining: u64,
    pub(crate) storage_version: Option<String>,
    pub(crate) bytes: Bytes,
}

type Frames = Pin<Box<dyn Stream<Item = Result<Frame, Error>> + Send>>;

/// A snapshot that is being read.
pub struct Snapshot {
    origin: Origin,
    storage_version: Option<String>,
    frames: Frames,
    check: SnapshotCheck,
    /// Size of the file, as the first piece told.
    file_size: Option<u64>,
    limit: u64,
    began: Instant,
    /// Once it ended, how.
    end: Option<Result<Checked, Error>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Snapshot").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// A snapshot that came whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub origin: Origin,
    /// Of the database's format; from etcd 3.6 on.
    pub storage_version: Option<String>,
    /// In bytes, with etcd's digest at the end.
    pub size: u64,
    /// Of all these bytes.
    pub digest: Digest,
    pub took: Duration,
}

impl Snapshot {
    pub(crate) fn new(origin: Origin, frames: Frames, limit: u64) -> Self {
        Self {
            origin,
            storage_version: None,
            frames,
            check: SnapshotCheck::default(),
            file_size: None,
            limit,
            began: Instant::now(),
            end: None,
        }
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How many bytes there will be, once the first piece has come.
    pub fn expected_size(&self) -> Option<u64> {
        self.file_size.map(|size| size.saturating_add(check::TRAILER))
    }

    /// The next piece; none when all came and is right. After an error, that error again.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(end) = &self.end {
            return end.clone().map(|_| None);
        }
        let piece = self.advance().await;
        if let Err(error) = &piece {
            self.end = Some(Err(error.clone()));
        }
        piece
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(frame) = self.frames.next().await else {
            let checked = self.check.clone().finish(self.expected_size())?;
            self.end = Some(Ok(checked));
            return Ok(None);
        };
        let frame = frame?;
        if self.storage_version.is_none() {
            self.storage_version = frame.storage_version;
        }
        let length = u64::try_from(frame.bytes.len()).unwrap_or(u64::MAX);
        let told = self.check.received().saturating_add(length).saturating_add(frame.remaining);
        let file_size = *self.file_size.get_or_insert(told);
        if self.expected_size().is_none_or(|size| size > self.limit) {
            return Err(SnapshotFault::TooLarge { limit: self.limit }.into());
        }
        // The digest is no part of the file, and comes when nothing of it remains.
        let is_trailer = frame.remaining == 0 && self.check.received() >= file_size;
        let is_consistent = if is_trailer {
            self.check.received().saturating_add(length) <= file_size.saturating_add(check::TRAILER)
        } else {
            told == file_size
        };
        if length == 0 || !is_consistent {
            return Err(SnapshotFault::Damaged.into());
        }
        self.check.push(&frame.bytes)?;
        Ok(Some(frame.bytes))
    }

    /// What was read, if all of it was.
    pub fn taken(&self) -> Option<Taken> {
        let Some(Ok(checked)) = &self.end else { return None };
        Some(Taken {
            origin: self.origin.clone(),
            storage_version: self.storage_version.clone(),
            size: checked.size,
            digest: checked.digest,
            took: self.began.elapsed(),
        })
    }

    /// Writes all of it. After an error the sink has bytes of no use.
    pub async fn copy_to(mut self, sink: &mut (impl AsyncWrite + Unpin)) -> Result<Taken, Error> {
        let failed = |error: std::io::Error| Error::Sink(crate::text::clean(&error.to_string()));
        while let Some(piece) = self.next().await? {
            sink.write_all(&piece).await.map_err(failed)?;
        }
        sink.flush().await.map_err(failed)?;
        // `next` answered that there is no more, which sets it.
        self.taken().ok_or_else(|| SnapshotFault::Damaged.into())
    }
}

#[cfg(test)]
mod tests;

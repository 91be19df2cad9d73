//! A backup that is read: opened, and checked as a snapshot is.

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{Manifest, fault};
use crate::encryption::Decryptor;
use crate::s3::Body;
use crate::snapshot::SnapshotCheck;
use crate::{BackupFault, Error, SnapshotFault};

/// The snapshot in a backup, piece by piece. As with [`Snapshot`](crate::Snapshot), there is no more only when all of it
/// came and is right.
pub struct Backup {
    manifest: Manifest,
    body: Body,
    decryptor: Option<Decryptor>,
    received: u64,
    check: Option<SnapshotCheck>,
    end: Option<Result<(), Error>>,
}

impl std::fmt::Debug for Backup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Backup").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

impl Backup {
    pub(super) fn new(manifest: Manifest, body: Body, decryptor: Option<Decryptor>) -> Self {
        Self { manifest, body, decryptor, received: 0, check: Some(SnapshotCheck::default()), end: None }
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The next piece; none when all came and is right. After an error, that error again.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(end) = &self.end {
            return end.clone().map(|()| None);
        }
        let piece = self.advance().await;
        match &piece {
            Ok(Some(_)) => {}
            Ok(None) => self.end = Some(Ok(())),
            Err(error) => self.end = Some(Err(error.clone())),
        }
        piece
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, Error> {
        let expected = self.manifest.stored_size;
        let size = |found| fault(&self.manifest.id, BackupFault::Size { found, expected });
        loop {
            let Some(encrypted) = self.body.next().await? else { break };
            self.received += u64::try_from(encrypted.len()).unwrap_or(u64::MAX);
            if self.received > expected {
                return Err(size(self.received));
            }
            let piece = match &mut self.decryptor {
                Some(decryptor) => {
                    let mut out = Vec::new();
                    decryptor.push(&encrypted, &mut out)?;
                    Bytes::from(out)
                }
                None => encrypted,
            };
            if !piece.is_empty() {
                self.take(&piece)?;
                return Ok(Some(piece));
            }
        }
        // Decryption knows for certain what a size only suggests.
        if let Some(decryptor) = self.decryptor.take() {
            let mut out = Vec::new();
            decryptor.finish(&mut out)?;
            if !out.is_empty() {
                self.take(&out)?;
                return Ok(Some(out.into()));
            }
        }
        if self.received != expected {
            return Err(size(self.received));
        }
        let check = self.check.take().ok_or(SnapshotFault::Damaged)?;
        let checked = check.finish(Some(self.manifest.size))?;
        if checked.size != self.manifest.size || checked.digest != self.manifest.digest {
            return Err(SnapshotFault::Another.into());
        }
        Ok(None)
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), SnapshotFault> {
        self.check.as_mut().map_or(Ok(()), |check| check.push(piece))
    }

    /// Writes all of it. After an error the sink has bytes of no use.
    pub async fn copy_to(mut self, sink: &mut (impl AsyncWrite + Unpin)) -> Result<Manifest, Error> {
        let failed = |error: std::io::Error| Error::Sink(crate::text::clean(&error.to_string()));
        while let Some(piece) = self.next().await? {
            sink.write_all(&piece).await.map_err(failed)?;
        }
        sink.flush().await.map_err(failed)?;
        Ok(self.manifest)
    }
}

//! An object that is written in parts, and exists only when all of them are there.

use bytes::Bytes;

use super::Bucket;
use crate::{Error, SnapshotFault};

/// S3 wants at least 5 MiB for all parts but the last, and at most ten thousand: 80 GiB with these. One part is in memory.
const PART: usize = 8 << 20;
const MOST_PARTS: usize = 10_000;

pub(crate) struct Upload<'a> {
    bucket: &'a Bucket,
    key: String,
    id: String,
    tags: Vec<String>,
    buffer: Vec<u8>,
    written: u64,
}

impl<'a> Upload<'a> {
    pub(crate) async fn begin(bucket: &'a Bucket, key: &str) -> Result<Self, Error> {
        let id = bucket.begin(key).await?;
        Ok(Self { bucket, key: key.to_owned(), id, tags: Vec::new(), buffer: Vec::new(), written: 0 })
    }

    /// Takes the next bytes; sends what makes a whole part.
    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            if self.buffer.len() == PART {
                self.send().await?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PART - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Error> {
        if self.tags.len() == MOST_PARTS {
            return Err(SnapshotFault::TooLarge { limit: self.written }.into());
        }
        let part = Bytes::from(std::mem::take(&mut self.buffer));
        self.written += u64::try_from(part.len()).unwrap_or(u64::MAX);
        let tag = self.bucket.part(&self.key, &self.id, self.tags.len() + 1, part).await?;
        self.tags.push(tag);
        Ok(())
    }

    /// Makes the object; answers its size.
    pub(crate) async fn complete(&mut self) -> Result<u64, Error> {
        // Without any part there is nothing to complete.
        if !self.buffer.is_empty() || self.tags.is_empty() {
            self.send().await?;
        }
        self.bucket.complete(&self.key, &self.id, &self.tags).await?;
        Ok(self.written)
    }

    /// Gives up, and leaves no parts behind. If this fails too, the next backup ends it.
    pub(crate) async fn abort(self) {
        if let Err(error) = self.bucket.abort(&self.key, &self.id).await {
            tracing::info!(key = self.key, %error, "parts of a failed upload stay for now");
        }
    }
}

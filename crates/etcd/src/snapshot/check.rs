//! Decides whether bytes are a whole snapshot, without keeping them.

use crate::id::sha256;
use crate::{Digest, SnapshotFault};

/// The length of the digest that etcd appends.
pub(crate) const TRAILER: u64 = 32;

/// The file is written in pages; all sizes of pages are multiples of this.
const PAGE: u64 = 512;

/// The first page is a header of 16 bytes and then this number, little-endian: bbolt's mark.
const MARK: u32 = 0xED0C_DAED;
const MARK_AT: usize = 16;

/// The state of a check. Cheap to clone: digests in the making and some bytes.
#[derive(Clone)]
pub(crate) struct SnapshotCheck {
    received: u64,
    /// The first bytes, until the mark is in them.
    head: Vec<u8>,
    /// The last bytes that came: they may be the digest.
    tail: Vec<u8>,
    /// Of everything before the tail.
    file: aws_lc_rs::digest::Context,
    /// Of everything.
    all: aws_lc_rs::digest::Context,
}

/// What a snapshot that passed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) size: u64,
    pub(crate) digest: Digest,
}

impl Default for SnapshotCheck {
    fn default() -> Self {
        Self { received: 0, head: Vec::new(), tail: Vec::new(), file: sha256(), all: sha256() }
    }
}

impl SnapshotCheck {
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Takes the next bytes, however they are cut. Refuses what does not begin as a database does.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), SnapshotFault> {
        const HEAD: usize = MARK_AT + 4;
        if self.head.len() < HEAD {
            self.head.extend(bytes.iter().take(HEAD - self.head.len()));
            if self.head.len() == HEAD && self.head[MARK_AT..] != MARK.to_le_bytes() {
                return Err(SnapshotFault::NotASnapshot);
            }
        }
        self.received += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.all.update(bytes);
        self.tail.extend_from_slice(bytes);
        let trailer = usize::try_from(TRAILER).unwrap_or(usize::MAX);
        let ready = self.tail.len().saturating_sub(trailer);
        self.file.update(&self.tail[..ready]);
        self.tail.drain(..ready);
        Ok(())
    }

    /// At the end of the bytes.
    pub(crate) fn finish(self, expected: Option<u64>) -> Result<Checked, SnapshotFault> {
        let received = self.received;
        let is_short = expected.is_some_and(|expected| received < expected);
        // A file without its digest, or a part of one.
        let is_odd = received <= TRAILER || !(received - TRAILER).is_multiple_of(PAGE);
        if is_short || is_odd {
            return Err(SnapshotFault::CutOff { received, expected });
        }
        if self.head.len() < MARK_AT + 4 {
            return Err(SnapshotFault::NotASnapshot);
        }
        if Digest::of(self.file).bytes()[..] != self.tail[..] {
            return Err(SnapshotFault::Damaged);
        }
        Ok(Checked { size: received, digest: Digest::of(self.all) })
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    /// Bytes that look like a database of some pages, with their digest.
    pub(crate) fn database(pages: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..pages * 4096).map(|place| u8::try_from(place % 251).unwrap()).collect();
        bytes[MARK_AT..MARK_AT + 4].copy_from_slice(&MARK.to_le_bytes());
        let mut digest = sha256();
        digest.update(&bytes);
        bytes.extend(Digest::of(digest).bytes());
        bytes
    }
}

//! The backups of one control plane in a bucket.
//!
//! ```text
//! [prefix/]<namespace>/<name>/<id>.db       the snapshot, encrypted or as it is
//! [prefix/]<namespace>/<name>/<id>.keys     what a snapshot cannot give back, always encrypted; if it was given
//! [prefix/]<namespace>/<name>/<id>.json     the manifest
//! ```
//!
//! An id is the time of the backup, `20261118T194500Z`, so that keys sort by age in every tool.
//!
//! **A backup exists when its manifest does.** The manifest is written last and deleted first. The snapshot itself is
//! written in parts and appears whole or not at all, and only after all its bytes came and etcd's digest was right. What
//! a backup that died left behind (parts, objects without a manifest) is never listed as a backup; the next one of the
//! same control plane and [`BackupStore::remove_leftovers`] remove it.
//!
//! **What is read is checked again**: its size, that it opens with the key, that it is a snapshot with the right digest,
//! and that it is the one in the manifest. The manifest itself is not secret and not encrypted. Nothing in it has to be
//! believed: the id is part of what an encrypted object opens with.
//!
//! One backup of a control plane runs at a time. Who calls this holds that; if two run all the same, the later one ends
//! the upload of the earlier one, which then fails.

mod id;
mod manifest;
mod read;
mod retention;

use bytes::Bytes;
use jiff::Timestamp;

pub use id::{BackupId, InvalidBackupId, Owner};
pub use manifest::{Companion, Encryption, Manifest};
pub use read::Backup;
pub use retention::Retention;

use crate::encryption::{Decryptor, Encryptor};
use crate::id::sha256;
use crate::s3::{Body, Bucket, Object, StoreConfig, Upload};
use crate::{BackupFault, BackupKey, Digest, EncryptionFault, Error, Snapshot, SnapshotFault};

/// Keys and authorities of a control plane are some 20 KB.
const LARGEST_COMPANION: usize = 1 << 20;
const LARGEST_MANIFEST: usize = 64 << 10;

/// A backup to be made.
#[derive(Debug)]
pub struct NewBackup<'a> {
    pub id: BackupId,
    pub snapshot: Snapshot,
    /// Encrypts it.
    pub key: Option<&'a BackupKey>,
    /// What a snapshot alone cannot give back: authorities, keys. Refused without a key to encrypt it with.
    pub keys: Option<&'a [u8]>,
}

/// The backups there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The newest ones, newest first.
    pub newest: Vec<BackupId>,
    /// How many there are in all.
    pub total: usize,
}

/// What backups that died had left, and what is removed now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Uploads that were never completed.
    pub uploads: usize,
    /// Objects that belong to no backup.
    pub objects: usize,
}

/// The backups of one control plane.
#[derive(Clone, Debug)]
pub struct BackupStore {
    bucket: Bucket,
    /// Before the ids, with a slash at its end.
    root: String,
    /// What encrypted objects are tied to, before the id. Without the prefix: a bucket may be moved below another one.
    context: String,
}

impl BackupStore {
    pub fn new(config: &StoreConfig, owner: &Owner) -> Result<Self, Error> {
        let prefix = config.prefix.trim_matches('/');
        let is_fine =
            |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(char::is_control);
        if !prefix.is_empty() && (prefix.len() > 500 || !prefix.split('/').all(is_fine)) {
            return Err(Error::unusable(
                "the prefix of backups",
                format!("{prefix:?} cannot be part of a key"),
            ));
        }
        let separator = if prefix.is_empty() { "" } else { "/" };
        Ok(Self {
            bucket: Bucket::new(config)?,
            root: format!("{prefix}{separator}{owner}/"),
            context: format!("{owner}/"),
        })
    }

    fn key(&self, id: &BackupId, suffix: &str) -> String {
        format!("{}{id}{suffix}", self.root)
    }

    fn context(&self, id: &BackupId, suffix: &str) -> String {
        format!("{}{id}{suffix}", self.context)
    }

    /// Makes a backup: it is there when this succeeds, and not when it fails, unless the error says that the answer to
    /// the last call was lost. Refused if one of this id is complete.
    pub async fn write(&self, backup: NewBackup<'_>) -> Result<Manifest, Error> {
        let id = backup.id.clone();
        if backup.keys.is_some() && backup.key.is_none() {
            return Err(fault(&id, BackupFault::KeysNeedEncryption));
        }
        if backup.keys.is_some_and(|keys| keys.len() > LARGEST_COMPANION) {
            return Err(Error::unusable("the keys of a backup", "they are larger than a mebibyte"));
        }
        if self.find_manifest(&id).await?.is_some() {
            return Err(fault(&id, BackupFault::Exists));
        }
        self.end_uploads().await?;
        let NewBackup { snapshot, key, keys, .. } = backup;
        let mut upload = Upload::begin(&self.bucket, &self.key(&id, ".db")).await?;
        let written = self.fill(&mut upload, snapshot, &id, key).await;
        let mut manifest = match written {
            Ok(manifest) => manifest,
            Err(error) => {
                upload.abort().await;
                return Err(error);
            }
        };
        if let (Some(keys), Some(key)) = (keys, key) {
            manifest.keys = Some(self.write_keys(&id, keys, key).await?);
        }
        self.bucket.put(&self.key(&id, ".json"), manifest.to_json()).await?;
        Ok(manifest)
    }

    async fn fill(
        &self,
        upload: &mut Upload<'_>,
        mut snapshot: Snapshot,
        id: &BackupId,
        key: Option<&BackupKey>,
    ) -> Result<Manifest, Error> {
        let mut out = Vec::new();
        let context = self.context(id, ".db");
        let mut encryptor = key.map(|key| Encryptor::begin(key, &context, &mut out)).transpose()?;
        let mut stored = sha256();
        while let Some(piece) = snapshot.next().await? {
            match &mut encryptor {
                Some(encryptor) => encryptor.push(&piece, &mut out)?,
                None => out.extend_from_slice(&piece),
            }
            stored.update(&out);
            upload.write(&out).await?;
            out.clear();
        }
        if let Some(encryptor) = encryptor {
            encryptor.finish(&mut out)?;
        }
        stored.update(&out);
        upload.write(&out).await?;
        // Only now: all of it came, and etcd's digest is right.
        let taken = snapshot.taken().ok_or(SnapshotFault::Damaged)?;
        let stored_size = upload.complete().await?;
        Ok(Manifest::new(id, &taken, key, stored_size, Digest::of(stored)))
    }

    async fn write_keys(&self, id: &BackupId, keys: &[u8], key: &BackupKey) -> Result<Companion, Error> {
        let mut out = Vec::new();
        let mut encryptor = Encryptor::begin(key, &self.context(id, ".keys"), &mut out)?;
        encryptor.push(keys, &mut out)?;
        encryptor.finish(&mut out)?;
        let mut digest = sha256();
        digest.update(&out);
        let companion = Companion {
            stored_size: u64::try_from(out.len()).unwrap_or(u64::MAX),
            stored_digest: Digest::of(digest),
        };
        self.bucket.put(&self.key(id, ".keys"), out.into()).await?;
        Ok(companion)
    }

    /// The newest backups, at most so many.
    pub async fn list(&self, most: usize) -> Result<Listing, Error> {
        let mut ids = self.ids().await?;
        ids.reverse();
        let total = ids.len();
        ids.truncate(most);
        Ok(Listing { newest: ids, total })
    }

    /// The newest backup that was begun at this time or before it.
    pub async fn latest_before(&self, time: Timestamp) -> Result<Option<BackupId>, Error> {
        let ids = self.ids().await?;
        Ok(ids.into_iter().rev().find(|id| id.time() <= time))
    }

    /// All of them, oldest first. Some bytes each, of at most half a million objects.
    async fn ids(&self) -> Result<Vec<BackupId>, Error> {
        let mut ids = Vec::new();
        self.bucket.list(&self.root, |object| ids.extend(self.named(&object, ".json"))).await?;
        ids.sort();
        Ok(ids)
    }

    /// Which backup an object belongs to by its key. Other files in the folder are nobody's business.
    fn named(&self, object: &Object, suffix: &str) -> Option<BackupId> {
        object.key.strip_prefix(&self.root)?.strip_suffix(suffix)?.parse().ok()
    }

    pub async fn manifest(&self, id: &BackupId) -> Result<Manifest, Error> {
        self.find_manifest(id).await?.ok_or_else(|| fault(id, BackupFault::Absent))
    }

    async fn find_manifest(&self, id: &BackupId) -> Result<Option<Manifest>, Error> {
        let Some(body) = self.bucket.get(&self.key(id, ".json")).await? else { return Ok(None) };
        let too_large = || fault(id, BackupFault::Manifest("it is too large".to_owned()));
        let bytes = read_small(body, LARGEST_MANIFEST).await?.ok_or_else(too_large)?;
        Manifest::from_json(id, &bytes).map(Some).map_err(|why| fault(id, BackupFault::Manifest(why)))
    }

    /// Begins to read a backup. What is wrong with it is said when it is known: a missing key at once, a cut-off object
    /// at its end.
    pub async fn read(&self, id: &BackupId, key: Option<&BackupKey>) -> Result<Backup, Error> {
        let manifest = self.manifest(id).await?;
        let decryptor = Self::decryptor(manifest.encryption.as_ref(), key, &self.context(id, ".db"))?;
        let body = self.bucket.get(&self.key(id, ".db")).await?;
        let body = body.ok_or_else(|| fault(id, BackupFault::SnapshotMissing))?;
        if let Some(found) = body.length.filter(|length| *length != manifest.stored_size) {
            return Err(fault(id, BackupFault::Size { found, expected: manifest.stored_size }));
        }
        Ok(Backup::new(manifest, body, decryptor))
    }

    /// What a snapshot alone cannot give back, if it is part of the backup.
    pub async fn read_keys(&self, id: &BackupId, key: &BackupKey) -> Result<Option<Vec<u8>>, Error> {
        let manifest = self.manifest(id).await?;
        let Some(companion) = manifest.keys else { return Ok(None) };
        let context = self.context(id, ".keys");
        let decryptor = Self::decryptor(manifest.encryption.as_ref(), Some(key), &context)?;
        let mut decryptor = decryptor.ok_or(EncryptionFault::NotEncrypted)?;
        let body = self.bucket.get(&self.key(id, ".keys")).await?;
        let body = body.ok_or_else(|| fault(id, BackupFault::SnapshotMissing))?;
        let expected = companion.stored_size;
        let length = body.length.unwrap_or(expected);
        let size = |found| fault(id, BackupFault::Size { found, expected });
        let encrypted = read_small(body, 2 * LARGEST_COMPANION).await?.ok_or_else(|| size(length))?;
        let mut out = Vec::new();
        decryptor.push(&encrypted, &mut out)?;
        decryptor.finish(&mut out)?;
        Ok(Some(out))
    }

    fn decryptor(
        encryption: Option<&Encryption>,
        key: Option<&BackupKey>,
        context: &str,
    ) -> Result<Option<Decryptor>, Error> {
        match (encryption, key) {
            // Plain, and a key was given: whoever expects an encrypted object must not be given another one.
            (None, Some(_)) => Err(EncryptionFault::NotEncrypted.into()),
            (None, None) => Ok(None),
            (Some(_), None) => Err(EncryptionFault::KeyNeeded.into()),
            (Some(encryption), Some(key)) if encryption.key != key.name() => {
                Err(EncryptionFault::WrongKey.into())
            }
            (Some(_), Some(key)) => Ok(Some(Decryptor::new(key, context))),
        }
    }

    /// Removes a backup. Succeeds if it does not exist; after a failure in the middle it is no backup any more.
    pub async fn delete(&self, id: &BackupId) -> Result<(), Error> {
        for suffix in [".json", ".keys", ".db"] {
            self.bucket.delete(&self.key(id, suffix)).await?;
        }
        Ok(())
    }

    /// Removes what backups that died have left: uploads, and objects without a manifest that are older than `before`.
    /// Not while a backup runs.
    pub async fn remove_leftovers(&self, before: Timestamp) -> Result<Leftovers, Error> {
        let uploads = self.end_uploads().await?;
        let (mut complete, mut parts) = (Vec::new(), Vec::new());
        self.bucket
            .list(&self.root, |object| {
                complete.extend(self.named(&object, ".json"));
                let id = self.named(&object, ".db").or_else(|| self.named(&object, ".keys"));
                parts.extend(id.filter(|_| object.last_modified < before).map(|id| (id, object.key)));
            })
            .await?;
        complete.sort();
        let orphans = parts.iter().filter(|(id, _)| complete.binary_search(id).is_err());
        let mut removed = Leftovers { uploads, objects: 0 };
        for (_, key) in orphans {
            self.bucket.delete(key).await?;
            removed.objects += 1;
        }
        Ok(removed)
    }

    async fn end_uploads(&self) -> Result<usize, Error> {
        let unfinished = self.bucket.unfinished(&self.root).await?;
        for upload in &unfinished {
            self.bucket.abort(&upload.key, &upload.upload_id).await?;
        }
        Ok(unfinished.len())
    }
}

fn fault(id: &BackupId, fault: BackupFault) -> Error {
    Error::Backup { id: id.to_string(), fault }
}

/// All of it, or none if it is larger.
async fn read_small(mut body: Body, most: usize) -> Result<Option<Bytes>, Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(bytes.into()))
}

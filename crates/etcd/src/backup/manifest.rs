//! The manifest: what a backup is, in JSON, for people and for restores.

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::BackupId;
use crate::text::clean;
use crate::{BackupKey, ClusterId, Digest, MemberId, Revision, Taken};

const FORMAT: u32 = 1;

/// What is stored, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    format: u32,
    pub id: BackupId,
    pub taken_at: Timestamp,
    /// How long it took, in milliseconds.
    pub took_milliseconds: u64,
    /// Of etcd, not of Kubernetes.
    pub cluster_id: ClusterId,
    /// Which member it was taken from.
    pub member_id: MemberId,
    /// All writes up to this one are in it.
    pub revision: Revision,
    pub etcd_version: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub storage_version: Option<String>,
    /// Of the snapshot in bytes, with the digest that etcd appends.
    pub size: u64,
    /// SHA-256 of the snapshot.
    pub digest: Digest,
    /// Of the object in the bucket, in bytes.
    pub stored_size: u64,
    /// SHA-256 of the object in the bucket; `sha256sum` shows it.
    pub stored_digest: Digest,
    /// Absent if it is stored as it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub encryption: Option<Encryption>,
    /// What a snapshot alone cannot give back, if it is part of the backup.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keys: Option<Companion>,
}

/// How a backup is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Encryption {
    pub algorithm: String,
    /// The name of the key, see [`BackupKey::name`].
    pub key: String,
}

/// A second object of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Companion {
    pub stored_size: u64,
    pub stored_digest: Digest,
}

impl Manifest {
    pub(super) fn new(
        id: &BackupId,
        taken: &Taken,
        key: Option<&BackupKey>,
        stored_size: u64,
        stored_digest: Digest,
    ) -> Self {
        let encryption =
            key.map(|key| Encryption { algorithm: "AES-256-GCM-STREAM-1".to_owned(), key: key.name() });
        Self {
            format: FORMAT,
            id: id.clone(),
            taken_at: id.time(),
            took_milliseconds: u64::try_from(taken.took.as_millis()).unwrap_or(u64::MAX),
            cluster_id: taken.origin.cluster,
            member_id: taken.origin.member,
            revision: taken.origin.revision,
            etcd_version: taken.origin.version.clone(),
            storage_version: taken.storage_version.clone(),
            size: taken.size,
            digest: taken.digest,
            stored_size,
            stored_digest,
            encryption,
            keys: None,
        }
    }

    pub(super) fn to_json(&self) -> Bytes {
        // Strings and numbers: this cannot fail.
        serde_json::to_vec_pretty(self).unwrap_or_default().into()
    }

    pub(super) fn from_json(id: &BackupId, bytes: &[u8]) -> Result<Self, String> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| clean(&error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(format!("its format is {}, and this version knows {FORMAT}", manifest.format));
        }
        if manifest.id != *id {
            return Err(format!("it is that of {}", manifest.id));
        }
        Ok(Self {
            etcd_version: clean(&manifest.etcd_version),
            storage_version: manifest.storage_version.as_deref().map(clean),
            ..manifest
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Origin;

    fn manifest() -> Manifest {
        let id = BackupId::at("2026-11-18T19:45:00Z".parse().unwrap());
        let digest = Digest::of(crate::id::sha256());
        let origin = Origin {
            cluster: ClusterId::new(0xabc),
            member: MemberId::new(0xdef),
            revision: Revision::new(42),
            version: "3.6.16".to_owned(),
        };
        let taken =
            Taken { origin, storage_version: None, size: 8224, digest, took: Duration::from_millis(15) };
        Manifest::new(&id, &taken, Some(&BackupKey::new(&[1; 32]).unwrap()), 8320, digest)
    }

    #[test]
    fn a_manifest_keeps_its_names() {
        let text = String::from_utf8(manifest().to_json().to_vec()).unwrap();
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let key = manifest().encryption.unwrap().key;
        let expected = format!(
            r#"{{
  "format": 1,
  "id": "20261118T194500Z",
  "takenAt": "2026-11-18T19:45:00Z",
  "tookMilliseconds": 15,
  "clusterId": "abc",
  "memberId": "def",
  "revision": 42,
  "etcdVersion": "3.6.16",
  "size": 8224,
  "digest": "{digest}",
  "storedSize": 8320,
  "storedDigest": "{digest}",
  "encryption": {{
    "algorithm": "AES-256-GCM-STREAM-1",
    "key": "{key}"
  }}
}}"#
        );
        assert_eq!(text, expected);
        assert_eq!(Manifest::from_json(&manifest().id, text.as_bytes()), Ok(manifest()));
    }

    #[test]
    fn a_manifest_of_another_backup_or_of_the_future_is_refused() {
        let text = String::from_utf8(manifest().to_json().to_vec()).unwrap();
        let other = BackupId::at("2026-11-18T19:45:01Z".parse().unwrap());
        assert!(Manifest::from_json(&other, text.as_bytes()).is_err());
        let newer = text.replace("\"format\": 1", "\"format\": 2");
        assert!(Manifest::from_json(&manifest().id, newer.as_bytes()).unwrap_err().contains("format is 2"));
        for broken in ["", "{}", "[]", "{\"format\":1}"] {
            assert!(Manifest::from_json(&manifest().id, broken.as_bytes()).is_err());
        }
    }
}

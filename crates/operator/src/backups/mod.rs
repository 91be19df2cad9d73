//! The store, the key and the rules of backups, from what a HostedControlPlane and its Secrets say. The controller and
//! `hangar backup` read them here.

mod people;
mod restoring;

use std::collections::BTreeMap;

pub use hangar_api::controlplane::v1alpha1::EtcdBackupSuccess as Made;
use hangar_api::controlplane::v1alpha1::{EtcdBackupEncryption, EtcdBackupRetention, EtcdBackupSecret};
pub use hangar_etcd::{
    Addressing, BackupId, BackupKey, BackupStore, Error, Manifest, Owner, Retention, StoreConfig, StoreKeys,
};
use k8s_openapi::ByteString;

pub use people::{Asked, Fault, ask, asked, store_of, store_to_restore_from};
pub use restoring::{Proposal, propose, restore};

/// Where an encryption Secret has the key, unless it says otherwise.
const KEY: &str = "key";

/// A Secret's data.
pub type Data = BTreeMap<String, ByteString>;

fn get<'a>(data: &'a Data) -> impl Fn(&str) -> Option<&'a [u8]> {
    |key| data.get(key).map(|value| value.0.as_slice())
}

/// The store that a Secret describes.
pub fn store(settings: &EtcdBackupSecret, data: &Data) -> Result<StoreConfig, Error> {
    let names: BTreeMap<_, _> = settings.keys().into_iter().collect();
    StoreKeys::default().renamed(|usual| names.get(usual).copied()).read(get(data))
}

/// The key that a Secret has.
pub fn key(settings: &EtcdBackupEncryption, data: &Data) -> Result<BackupKey, Error> {
    let name = settings.key.as_deref().filter(|name| !name.is_empty()).unwrap_or(KEY);
    BackupKey::read(name, get(data))
}

/// How many backups are kept. The schema refuses negative numbers.
pub fn retention(settings: Option<&EtcdBackupRetention>) -> Retention {
    let Some(EtcdBackupRetention { last, hourly, daily, weekly, monthly, yearly }) = settings else {
        return Retention::default();
    };
    let number = |given: &Option<i32>| usize::try_from(given.unwrap_or_default()).unwrap_or_default();
    Retention {
        last: number(last),
        hourly: number(hourly),
        daily: number(daily),
        weekly: number(weekly),
        monthly: number(monthly),
        yearly: number(yearly),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_under_the_names_that_the_specification_gives() {
        let data = |texts: &[(&str, &str)]| -> Data {
            let own =
                |(key, value): &(&str, &str)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()));
            texts.iter().map(own).collect()
        };
        let secret =
            data(&[("AWS_ID", "me"), ("AWS_KEY", "hidden"), ("bucket", "b1/etcd"), ("url", "s3.local")]);
        let mut settings = EtcdBackupSecret {
            access_key_id_key: Some("AWS_ID".to_owned()),
            secret_access_key_key: Some("AWS_KEY".to_owned()),
            host_key: Some("url".to_owned()),
            bucket_key: Some(String::new()),
            ..EtcdBackupSecret::default()
        };
        let found = store(&settings, &secret).unwrap();
        assert_eq!((found.endpoint.as_str(), found.bucket.as_str()), ("https://s3.local", "b1"));
        settings.access_key_id_key = None;
        assert!(store(&settings, &secret).unwrap_err().to_string().contains("\"accessKeyID\""));
        let encryption = EtcdBackupEncryption { secret_name: "k".to_owned(), key: None };
        assert!(key(&encryption, &data(&[("key", "short")])).is_err());
        assert!(key(&encryption, &data(&[("key", &"x".repeat(32))])).is_ok());
    }

    /// The crate `etcd` knows nothing of the specification.
    #[test]
    fn the_usual_names_of_a_stores_keys_are_the_same_everywhere() {
        let secret = EtcdBackupSecret::default();
        let names: BTreeMap<_, _> = secret.keys().into_iter().collect();
        assert!(names.iter().all(|(usual, name)| usual == name));
        let mut asked = Vec::new();
        let same = StoreKeys::default().renamed(|usual| {
            asked.push(usual.to_owned());
            None
        });
        assert_eq!(same, StoreKeys::default());
        asked.sort();
        assert_eq!(asked, names.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn without_rules_everything_is_kept() {
        assert!(retention(None).keeps_everything());
        assert!(retention(Some(&EtcdBackupRetention::default())).keeps_everything());
        let some = EtcdBackupRetention { daily: Some(7), last: Some(-1), ..EtcdBackupRetention::default() };
        assert_eq!(retention(Some(&some)), Retention { daily: 7, ..Retention::default() });
    }
}

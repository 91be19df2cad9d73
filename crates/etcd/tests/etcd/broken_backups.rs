//! Backups that cannot be used, and stores that cannot: each says what is wrong.

use hangar_etcd::{
    BackupFault, BackupKey, BackupStore, EncryptionFault, Error, NewBackup, SnapshotFault, StoreConfig,
    StoreRefusalKind,
};

use crate::cluster::Cluster;
use crate::gateway::{Gateway, backup, id, owner};

async fn read(store: &BackupStore, name: &str, key: Option<&BackupKey>) -> Result<(), Error> {
    store.read(&id(name), key).await?.copy_to(&mut tokio::io::sink()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_bucket_and_a_wrong_configuration_are_told_apart() {
    let gateway = Gateway::start().await;
    let store = gateway.store();
    assert_eq!(store.list(10).await.unwrap().total, 0);
    assert_eq!(store.latest_before(jiff::Timestamp::now()).await.unwrap(), None);
    let error = read(&store, "20261118T194500Z", None).await.unwrap_err();
    assert!(matches!(error, Error::Backup { fault: BackupFault::Absent, .. }), "{error}");

    let wrong = async |config: StoreConfig| {
        let error = BackupStore::new(&config, &owner()).unwrap().list(1).await.unwrap_err();
        assert!(error.is_user_fault(), "{error}");
        error.store_refusal().unwrap().kind
    };
    let bucket = StoreConfig { bucket: "other".to_owned(), ..gateway.config() };
    assert_eq!(wrong(bucket).await, StoreRefusalKind::NoSuchBucket);
    let secret = StoreConfig { secret_key: "guessed".to_owned().into(), ..gateway.config() };
    assert_eq!(wrong(secret).await, StoreRefusalKind::WrongCredentials);
    let user = StoreConfig { access_key: "nobody".to_owned(), ..gateway.config() };
    assert_eq!(wrong(user).await, StoreRefusalKind::WrongCredentials);
    let region = StoreConfig { region: "lab-2".to_owned(), ..gateway.config() };
    assert_eq!(wrong(region).await, StoreRefusalKind::WrongPlace);

    let untrusted = StoreConfig { authorities: None, ..gateway.config() };
    let error = BackupStore::new(&untrusted, &owner()).unwrap().list(1).await.unwrap_err();
    assert!(matches!(error, Error::Unreached { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_backup_opens_only_whole_in_its_place_and_with_its_key() {
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    cluster.writer(0).fill(1).await;
    let (member, store) = (cluster.member(0), gateway.store());
    let (key, other) = (BackupKey::generate().unwrap(), BackupKey::generate().unwrap());
    let names = ["20261117T000000Z", "20261118T000000Z"];
    for name in names {
        store.write(backup(&member, &id(name), Some(&key)).await).await.unwrap();
    }
    let fault = async |key| read(&store, names[1], key).await.unwrap_err();
    assert_eq!(fault(None).await, EncryptionFault::KeyNeeded.into());
    assert_eq!(fault(Some(&other)).await, EncryptionFault::WrongKey.into());

    let file = gateway.file(&id(names[1]), ".db");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let error = fault(Some(&key)).await;
    assert!(matches!(error, Error::Backup { fault: BackupFault::Size { .. }, .. }), "{error}");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    assert_eq!(fault(Some(&key)).await, EncryptionFault::Altered.into());

    // An old state under a new name, with a manifest that says so.
    std::fs::copy(gateway.file(&id(names[0]), ".db"), &file).unwrap();
    let manifest = std::fs::read_to_string(gateway.file(&id(names[0]), ".json")).unwrap();
    std::fs::write(gateway.file(&id(names[1]), ".json"), manifest.replace(names[0], names[1])).unwrap();
    assert_eq!(fault(Some(&key)).await, EncryptionFault::Altered.into());

    std::fs::remove_file(&file).unwrap();
    let error = fault(Some(&key)).await;
    assert!(matches!(error, Error::Backup { fault: BackupFault::SnapshotMissing, .. }), "{error}");
    read(&store, names[0], Some(&key)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_backup_is_checked_as_a_snapshot_is() {
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    cluster.writer(0).fill(1).await;
    let (member, store) = (cluster.member(0), gateway.store());
    let (name, key) = ("20261118T000000Z", BackupKey::generate().unwrap());
    let keys = NewBackup { keys: Some(b"keys"), ..backup(&member, &id(name), None).await };
    let error = store.write(keys).await.unwrap_err();
    assert!(matches!(error, Error::Backup { fault: BackupFault::KeysNeedEncryption, .. }), "{error}");
    assert_eq!(gateway.files(), Vec::<std::path::PathBuf>::new());

    store.write(backup(&member, &id(name), None).await).await.unwrap();
    read(&store, name, None).await.unwrap();
    assert_eq!(read(&store, name, Some(&key)).await.unwrap_err(), EncryptionFault::NotEncrypted.into());
    let file = gateway.file(&id(name), ".db");
    let whole = std::fs::read(&file).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    assert_eq!(read(&store, name, None).await.unwrap_err(), SnapshotFault::Damaged.into());
    std::fs::write(&file, vec![b'<'; whole.len()]).unwrap();
    assert_eq!(read(&store, name, None).await.unwrap_err(), SnapshotFault::NotASnapshot.into());
    std::fs::write(&file, b"").unwrap();
    let error = read(&store, name, None).await.unwrap_err();
    assert!(matches!(error, Error::Backup { fault: BackupFault::Size { .. }, .. }), "{error}");
    std::fs::write(gateway.file(&id(name), ".json"), "{}").unwrap();
    let error = read(&store, name, None).await.unwrap_err();
    assert!(matches!(error, Error::Backup { fault: BackupFault::Manifest(_), .. }), "{error}");
}

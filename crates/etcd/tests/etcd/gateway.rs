//! An S3 server over a directory, by HTTPS with an authority of its own.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_etcd::{
    Addressing, BackupId, BackupKey, BackupStore, CallGate, Member, NewBackup, Owner, StoreConfig,
    StoreLimits,
};
use hangar_parts::{Process, Set};

use crate::place::{Place, address, port, until};

pub(crate) struct Gateway {
    pub(crate) place: Place,
    endpoint: String,
    _process: Process,
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        let place = Place::new();
        let pair = place.server_pair("store");
        let root = place.path("root");
        std::fs::create_dir_all(root.join("backups")).unwrap();
        let at = format!("{}:{}", address(), port());
        let arguments = vec![
            "--access=tester".to_owned(),
            "--secret=secret-of-tester".to_owned(),
            "--region=lab-1".to_owned(),
            format!("--port={at}"),
            format!("--cert={}", pair.certificate.display()),
            format!("--key={}", pair.key.display()),
            "posix".to_owned(),
            root.display().to_string(),
        ];
        let process = place.start("versitygw", Set::Versitygw, "versitygw", arguments);
        let gateway = Self { place, endpoint: format!("https://{at}"), _process: process };
        let store = gateway.store();
        until("the S3 server", async || store.list(1).await.ok()).await;
        gateway
    }

    pub(crate) fn config(&self) -> StoreConfig {
        StoreConfig {
            endpoint: self.endpoint.clone(),
            region: "lab-1".to_owned(),
            bucket: "backups".to_owned(),
            prefix: "etcd/böse namen".to_owned(),
            access_key: "tester".to_owned(),
            secret_key: "secret-of-tester".to_owned().into(),
            session_token: None,
            authorities: Some(self.place.authorities()),
            addressing: Addressing::Path,
            limits: StoreLimits::default(),
            addresses: None,
            gates: Vec::new(),
        }
    }

    pub(crate) fn store(&self) -> BackupStore {
        BackupStore::new(&self.config(), &owner()).unwrap()
    }

    pub(crate) fn store_with(&self, gate: Arc<dyn CallGate>) -> BackupStore {
        BackupStore::new(&StoreConfig { gates: vec![gate], ..self.config() }, &owner()).unwrap()
    }

    /// The file behind an object.
    pub(crate) fn file(&self, id: &BackupId, suffix: &str) -> PathBuf {
        self.place.path("root").join(format!("backups/etcd/böse namen/tenants/demo/{id}{suffix}"))
    }

    /// Everything the server keeps: objects, and parts of uploads.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        crate::place::files(&self.place.path("root/backups"))
    }
}

pub(crate) fn owner() -> Owner {
    Owner::new("tenants", "demo").unwrap()
}

pub(crate) fn id(text: &str) -> BackupId {
    text.parse().unwrap()
}

/// A backup of what the member has now.
pub(crate) async fn backup<'a>(member: &Member, id: &BackupId, key: Option<&'a BackupKey>) -> NewBackup<'a> {
    let snapshot = member.snapshot(hangar_etcd::Freshness::Acknowledged).await.unwrap();
    NewBackup { id: id.clone(), snapshot, key, keys: None }
}

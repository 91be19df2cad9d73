//! A real S3 server over a directory, by HTTPS with an authority of its own, and the Secret that leads to it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_parts::{Parts, Process, Set};
use hangar_pki::{Authority, Intent, Usage, issue};
use hangar_testbed::Port;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::tenant::process;
use super::world::{BED, World};

const LIFETIME: Duration = Duration::from_hours(24);
const SECRET_KEY: &str = "secret-of-tester";

/// Dropping it ends it.
pub(super) struct Store {
    process: Process,
    host: String,
    authority: String,
    root: PathBuf,
}

impl Store {
    pub(super) fn start(world: &World) -> Self {
        let directory = BED.logs().parent().unwrap().join(format!("{}-store", world.namespace));
        let root = directory.join("root");
        fs::create_dir_all(root.join("backups")).unwrap();
        let authority =
            Authority::self_signed(&Intent::authority("store-ca", LIFETIME), Timestamp::now()).unwrap();
        let intent = Intent::new("store", Usage::ServerAndClient, LIFETIME)
            .ip_addresses([IpAddr::V4(Ipv4Addr::LOCALHOST)])
            .dns_names(["localhost".to_owned()]);
        let pair = issue(&authority, &intent, Timestamp::now()).unwrap();
        let (certificate, key) = (directory.join("store.crt"), directory.join("store.key"));
        fs::write(&certificate, &pair.certificate).unwrap();
        fs::write(&key, pair.key.expose()).unwrap();
        let port = Port::reserve().unwrap();
        let arguments = vec![
            "--access=tester".to_owned(),
            format!("--secret={SECRET_KEY}"),
            "--region=lab-1".to_owned(),
            format!("--port=127.0.0.1:{}", port.number()),
            format!("--cert={}", certificate.display()),
            format!("--key={}", key.display()),
            "posix".to_owned(),
            root.display().to_string(),
        ];
        let program = Parts::from_env().unwrap().program(Set::Versitygw, "versitygw").unwrap();
        let process = process(world, &directory, "store", program, arguments);
        let host = format!("localhost:{}", port.number());
        Self { process, host, authority: authority.pair().certificate.clone(), root }
    }

    /// The Secret `bucket`, with this in place of what is right.
    pub(super) async fn publish(&self, world: &World, more: Value) {
        let mut data = json!({
            "accessKeyID": "tester", "secretAccessKey": SECRET_KEY, "bucket": "backups/etcd",
            "host": self.host, "region": "lab-1", "certificateAuthority": self.authority,
        });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        write(world, "bucket", &data).await;
    }

    /// All files that the server keeps for backups of this control plane, by their names.
    pub(super) fn objects(&self, world: &World) -> Vec<String> {
        let directory = self.directory(world);
        let found = fs::read_dir(directory).into_iter().flatten();
        let mut names: Vec<String> =
            found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(super) fn directory(&self, world: &World) -> PathBuf {
        self.root.join(format!("backups/etcd/{}/demo", world.namespace))
    }

    /// Parts of uploads that were not completed.
    pub(super) fn parts(&self) -> usize {
        files(&self.root.join("backups/.sgwtmp"))
    }

    /// Sends a signal to the server: it stops in the middle of whatever it does, and goes on.
    pub(super) fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        let status = std::process::Command::new("kill").args([format!("-{name}"), process]).status();
        assert!(status.unwrap().success());
    }
}

fn files(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

/// A Secret with these texts.
pub(super) async fn write(world: &World, name: &str, texts: &Value) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": texts,
    });
    let parameters = PatchParams::apply("test").force();
    world.api::<Secret>().patch(name, &parameters, &Patch::Apply(secret)).await.unwrap();
}

//! Certificates, keys and kubeconfigs of the management cluster, in directories of the host that machines see as
//! /etc/kubernetes: all in the first's, a kubelet's own in each of the others'.
//!
//! Each is kept until it is due for renewal or no longer as wanted; then it is minted again. A crash between
//! certificate and key leaves a pair that does not match, which counts as missing. Authorities are never replaced.
//! [`super::startup`] decides which programs have to start again to use the new files.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_pki::{
    Authority, Certificate, Credentials as UserCredentials, Intent, KeyPairPem, Kubeconfig, PrivateKeyPem,
    ServiceAccountKeys, Trust, Usage, issue,
};
use jiff::Timestamp;

use super::{API_SERVER_PORT, NAME, Node};
use crate::addons::storage::PROVISIONER_USER;
use crate::addresses::KUBERNETES_SERVICE;
use crate::error::{At, Result};
use crate::layout::Layout;

const YEAR: Duration = Duration::from_hours(365 * 24);
const AUTHORITY_LIFETIME: Duration = Duration::from_hours(10 * 365 * 24);

/// What was minted.
#[derive(Debug)]
pub struct Credentials {
    /// How many files were new or changed.
    pub written: usize,
    /// Certificates that were there and had to be replaced, by the names of their files.
    pub renewed: Vec<String>,
    /// The administrator's kubeconfig.
    pub administrator: String,
}

/// Makes what is missing of a cluster with so many nodes. The API server has this address.
pub fn ensure(layout: &Layout, nodes: u8, address: Ipv4Addr, now: Timestamp) -> Result<Credentials> {
    let directory = layout.kubernetes();
    let mut store = Store { directory, now, written: 0, renewed: Vec::new() };
    let kubernetes = store.authority("pki/ca", "kubernetes")?;
    let etcd = store.authority("pki/etcd/ca", "etcd-ca")?;
    let front_proxy = store.authority("pki/front-proxy-ca", "front-proxy-ca")?;
    store.service_account_keys()?;

    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let api_server = Intent::new("kube-apiserver", Usage::Server, YEAR)
        .dns_names(["kubernetes", "kubernetes.default", "kubernetes.default.svc"])
        .dns_names(["kubernetes.default.svc.cluster.local", "localhost", NAME])
        .ip_addresses([IpAddr::V4(KUBERNETES_SERVICE), IpAddr::V4(address), loopback]);
    store.leaf("pki/apiserver", &kubernetes, &api_server)?;
    let kubelet_client = Intent::new("kube-apiserver-kubelet-client", Usage::Client, YEAR);
    store.leaf("pki/apiserver-kubelet-client", &kubernetes, &kubelet_client)?;
    let front = Intent::new("front-proxy-client", Usage::Client, YEAR);
    store.leaf("pki/front-proxy-client", &front_proxy, &front)?;
    for name in ["server", "peer"] {
        let intent = Intent::new(NAME, Usage::ServerAndClient, YEAR)
            .dns_names(["localhost", NAME])
            .ip_addresses([loopback]);
        store.leaf(&format!("pki/etcd/{name}"), &etcd, &intent)?;
    }
    let etcd_client = Intent::new("kube-apiserver-etcd-client", Usage::Client, YEAR);
    store.leaf("pki/apiserver-etcd-client", &etcd, &etcd_client)?;

    for (file, user) in [
        ("controller-manager.conf", "system:kube-controller-manager"),
        ("scheduler.conf", "system:kube-scheduler"),
    ] {
        let text = store.kubeconfig(&kubernetes, address, user, &[])?;
        store.write(file, &text)?;
    }
    let provisioner = store.kubeconfig(&kubernetes, address, PROVISIONER_USER, &[])?;
    for node in Node::some(nodes) {
        let user = format!("system:node:{node}");
        let kubelet = store.kubeconfig(&kubernetes, address, &user, &["system:nodes"])?;
        let directory = layout.node(node).kubernetes();
        // Of keys only its kubelet's and the provisioners'. The first has the authority's certificate already.
        for (file, text) in [
            ("pki/ca.crt", &kubernetes.pair().certificate),
            ("kubelet.conf", &kubelet),
            ("provisioner.conf", &provisioner),
        ] {
            store.write_at(&directory.join(file), text)?;
        }
    }
    let administrator =
        store.kubeconfig(&kubernetes, address, "hangar-administrator", &["system:masters"])?;
    Ok(Credentials { written: store.written, renewed: store.renewed, administrator })
}

struct Store {
    directory: PathBuf,
    now: Timestamp,
    written: usize,
    renewed: Vec<String>,
}

impl Store {
    fn read_pair(&self, name: &str) -> Option<KeyPairPem> {
        let read = |ending: &str| fs::read_to_string(self.directory.join(format!("{name}.{ending}"))).ok();
        Some(KeyPairPem { certificate: read("crt")?, key: PrivateKeyPem::new(read("key")?) })
    }

    fn write_pair(&mut self, name: &str, pair: &KeyPairPem) -> Result<()> {
        self.write(&format!("{name}.key"), pair.key.expose())?;
        self.write(&format!("{name}.crt"), &pair.certificate)
    }

    fn write(&mut self, name: &str, text: &str) -> Result<()> {
        self.write_at(&self.directory.join(name), text)
    }

    fn write_at(&mut self, path: &Path, text: &str) -> Result<()> {
        if write_private(path, text.as_bytes())? {
            self.written += 1;
        }
        Ok(())
    }

    fn authority(&mut self, name: &str, common_name: &str) -> Result<Authority> {
        if let Some(pair) = self.read_pair(name)
            && let Ok(authority) = Authority::from_pem(&pair.certificate, &pair.key)
        {
            return Ok(authority);
        }
        let authority =
            Authority::self_signed(&Intent::authority(common_name, AUTHORITY_LIFETIME), self.now)?;
        self.write_pair(name, authority.pair())?;
        Ok(authority)
    }

    fn leaf(&mut self, name: &str, authority: &Authority, intent: &Intent) -> Result<KeyPairPem> {
        if let Some(pair) = self.read_pair(name) {
            if let Ok(certificate) = Certificate::parse(&pair.certificate)
                && certificate.matches_key(&pair.key)
                && certificate.is_signed_by(authority.certificate())
                && certificate.difference_from(intent).is_none()
                && certificate.is_valid_at(self.now)
                && self.now < certificate.renew_at()
            {
                return Ok(pair);
            }
            let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
            // Both of etcd's would not tell whose they are.
            let owner = if name.contains("/etcd/") { "etcd-" } else { "" };
            self.renewed.push(format!("{owner}{file}"));
        }
        let pair = issue(authority, intent, self.now)?;
        self.write_pair(name, &pair)?;
        Ok(pair)
    }

    fn service_account_keys(&mut self) -> Result<()> {
        let path = self.directory.join("pki/sa.key");
        let stored = fs::read_to_string(&path).ok();
        let keys = stored.and_then(|text| ServiceAccountKeys::from_private(PrivateKeyPem::new(text)).ok());
        let keys = match keys {
            Some(keys) => keys,
            None => ServiceAccountKeys::generate()?,
        };
        self.write("pki/sa.key", keys.private.expose())?;
        self.write("pki/sa.pub", &keys.public)
    }

    fn kubeconfig(
        &mut self,
        authority: &Authority,
        address: Ipv4Addr,
        user: &str,
        groups: &[&str],
    ) -> Result<String> {
        let intent = Intent::new(user, Usage::Client, YEAR).organizations(groups.iter().copied());
        let pair = self.leaf(&format!("pki/users/{}", user.replace(':', "-")), authority, &intent)?;
        let kubeconfig = Kubeconfig {
            cluster: NAME.to_owned(),
            user: user.to_owned(),
            server: format!("https://{address}:{API_SERVER_PORT}"),
            trust: Trust::Embedded(authority.pair().certificate.clone()),
            tls_server_name: None,
            credentials: UserCredentials::Certificate(pair),
            namespace: None,
        };
        Ok(kubeconfig.to_yaml()?)
    }
}

/// Writes a file that only root reads, in one step, if it differs. `true` when it did.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    let parent = path.parent().unwrap_or(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).at("create", parent)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = parent.join(format!(".{name}.new"));
    // One that a killed writer left may have other permissions.
    let _ = fs::remove_file(&temporary);
    let mut file = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)
        .at("create", &temporary)?;
    std::io::Write::write_all(&mut file, content).at("write", &temporary)?;
    file.sync_all().at("write", &temporary)?;
    fs::rename(&temporary, path).at("write", path)?;
    Ok(true)
}

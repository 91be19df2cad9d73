//! The testbed's PKI: one authority for the API server and its clients, one for etcd.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_pki::{
    Authority, Credentials as UserCredentials, Intent, KeyPairPem, Kubeconfig, SecretText,
    ServiceAccountKeys, Trust, Usage, issue,
};
use jiff::Timestamp;

use crate::Error;
use crate::error::At;

/// Longer than any test run, too short to be mistaken for a real one.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Authorities and the directory that holds what the programs read.
#[derive(Debug)]
pub(crate) struct Credentials {
    directory: PathBuf,
    kubernetes: Authority,
}

impl Credentials {
    /// Mints everything and writes the files that etcd, the API server and the controller-manager are given.
    pub(crate) fn create(directory: PathBuf) -> Result<Self, Error> {
        fs::create_dir_all(&directory).at(&directory)?;
        let now = Timestamp::now();
        let kubernetes = Authority::self_signed(&Intent::authority("kubernetes", LIFETIME), now)?;
        let etcd = Authority::self_signed(&Intent::authority("etcd-ca", LIFETIME), now)?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let server = |name: &str| {
            Intent::new(name, Usage::ServerAndClient, LIFETIME)
                .dns_names(["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"])
                .ip_addresses([loopback])
        };
        let files = Self { directory, kubernetes };
        files.write_pair("ca", files.kubernetes.pair())?;
        files.write_pair("etcd-ca", etcd.pair())?;
        files.write_pair("etcd", &issue(&etcd, &server("etcd"), now)?)?;
        let etcd_client = Intent::new("kube-apiserver-etcd-client", Usage::Client, LIFETIME);
        files.write_pair("etcd-client", &issue(&etcd, &etcd_client, now)?)?;
        files.write_pair("apiserver", &issue(&files.kubernetes, &server("kube-apiserver"), now)?)?;
        let accounts = ServiceAccountKeys::generate()?;
        files.write("sa.key", accounts.private.expose())?;
        files.write("sa.pub", &accounts.public)?;
        Ok(files)
    }

    /// The path of one of the files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A kubeconfig for a user with a client certificate.
    pub(crate) fn kubeconfig(&self, server: &str, user: &str, groups: &[&str]) -> Result<String, Error> {
        let intent = Intent::new(user, Usage::Client, LIFETIME).organizations(groups.iter().copied());
        let pair = issue(&self.kubernetes, &intent, Timestamp::now())?;
        self.render(server, user, UserCredentials::Certificate(pair))
    }

    fn render(&self, server: &str, user: &str, credentials: UserCredentials) -> Result<String, Error> {
        let kubeconfig = Kubeconfig {
            cluster: "testbed".to_owned(),
            user: user.to_owned(),
            server: server.to_owned(),
            trust: Trust::Embedded(self.kubernetes.pair().certificate.clone()),
            tls_server_name: None,
            credentials,
            namespace: None,
        };
        Ok(kubeconfig.to_yaml()?)
    }

    /// Writes a kubeconfig file for the holder of a token and returns its path.
    pub(crate) fn write_token_kubeconfig(
        &self,
        server: &str,
        user: &str,
        token: &str,
    ) -> Result<PathBuf, Error> {
        let text = self.render(server, user, UserCredentials::Token(SecretText::new(token)))?;
        let name = format!("{}.kubeconfig", user.replace([':', '/'], "-"));
        self.write(&name, &text)?;
        Ok(self.path(&name))
    }

    /// Writes a kubeconfig file and returns its path.
    pub(crate) fn write_kubeconfig(
        &self,
        server: &str,
        user: &str,
        groups: &[&str],
    ) -> Result<PathBuf, Error> {
        let name = format!("{}.kubeconfig", user.replace(':', "-"));
        self.write(&name, &self.kubeconfig(server, user, groups)?)?;
        Ok(self.path(&name))
    }

    fn write_pair(&self, name: &str, pair: &KeyPairPem) -> Result<(), Error> {
        self.write(&format!("{name}.crt"), &pair.certificate)?;
        self.write(&format!("{name}.key"), pair.key.expose())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path: &Path = &self.path(name);
        fs::write(path, text).at(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).at(path)
    }
}

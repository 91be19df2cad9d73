//! The settings of a manager, as plain types. The command line parses them. Their names and defaults match what
//! existing Deployments set.

use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::telemetry::TelemetrySettings;
use crate::webhook::CertificateDirectory;

/// Where certificates are looked for when `WEBHOOK_CERT_DIR` is not given.
pub const DEFAULT_WEBHOOK_CERT_DIR: &str = "/tmp/k8s-webhook-server/serving-certs";

/// Where Kubernetes tells a pod its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Reconciles that run at once per controller, when nothing is said.
const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerSettings {
    /// `LEADER_ELECTION`: compete for the lease. Off only where one process is certain to be alone.
    pub leader_election: bool,
    /// `CONTROLLER_NAMESPACE`: where the lease and the webhook certificate live.
    pub controller_namespace: String,
    /// `WEBHOOK_CERT_DIR`: where the webhook's certificate comes from.
    pub webhook_certificate: WebhookCertificateSource,
    /// `MAX_CONCURRENT_RECONCILES`, per controller.
    pub max_concurrent_reconciles: NonZeroUsize,
    pub telemetry: TelemetrySettings,
    /// Where `/healthz` and `/readyz` are served.
    pub health_address: SocketAddr,
    /// Where `/metrics` is served.
    pub metrics_address: SocketAddr,
    /// Where the webhooks are served.
    pub webhook_address: SocketAddr,
}

impl ManagerSettings {
    /// Defaults, in a namespace.
    pub fn new(controller_namespace: impl Into<String>) -> Self {
        let any = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        Self {
            leader_election: true,
            controller_namespace: controller_namespace.into(),
            webhook_certificate: WebhookCertificateSource::Issued,
            max_concurrent_reconciles: DEFAULT_CONCURRENCY,
            telemetry: TelemetrySettings::default(),
            health_address: any(8081),
            metrics_address: any(8080),
            webhook_address: any(9443),
        }
    }
}

/// Where the webhook's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookCertificateSource {
    /// We issue it ourselves.
    Issued,
    /// Files that are provided and renewed externally.
    Directory(PathBuf),
}

impl WebhookCertificateSource {
    /// A directory that was named is used, whatever is in it. Otherwise the default one is used if it holds a
    /// certificate, as it does where cert-manager's is mounted; if not, we issue.
    pub fn choose(named: Option<&Path>) -> Self {
        match named {
            Some(path) => Self::Directory(path.to_owned()),
            None => Self::choose_default(Path::new(DEFAULT_WEBHOOK_CERT_DIR)),
        }
    }

    fn choose_default(path: &Path) -> Self {
        if CertificateDirectory::has_certificate(path) {
            Self::Directory(path.to_owned())
        } else {
            Self::Issued
        }
    }
}

/// The namespace this process runs in: as given, or as Kubernetes tells a pod.
pub fn controller_namespace(given: Option<&str>) -> Result<String, MissingNamespace> {
    namespace_or_file(given, Path::new(NAMESPACE_FILE))
}

fn namespace_or_file(given: Option<&str>, file: &Path) -> Result<String, MissingNamespace> {
    let name = match given.map(str::trim) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => std::fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default(),
    };
    if name.is_empty() { Err(MissingNamespace) } else { Ok(name) }
}

/// The namespace of the manager is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CONTROLLER_NAMESPACE is not set, and this is not a pod")]
pub struct MissingNamespace;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_the_given_one_or_the_pods() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("namespace");
        assert_eq!(namespace_or_file(None, &file), Err(MissingNamespace));
        assert_eq!(namespace_or_file(Some(" "), &file), Err(MissingNamespace));
        std::fs::write(&file, "from-pod\n").expect("written");
        assert_eq!(namespace_or_file(None, &file).as_deref(), Ok("from-pod"));
        assert_eq!(namespace_or_file(Some("given"), &file).as_deref(), Ok("given"));
    }

    #[test]
    fn a_named_directory_is_used_and_the_default_one_only_with_a_certificate() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let used = WebhookCertificateSource::Directory(path.to_owned());
        assert_eq!(WebhookCertificateSource::choose(Some(path)), used);
        assert_eq!(WebhookCertificateSource::choose_default(path), WebhookCertificateSource::Issued);
        for name in ["tls.crt", "tls.key"] {
            std::fs::write(path.join(name), "").expect("written");
        }
        assert_eq!(WebhookCertificateSource::choose_default(path), used);
    }
}

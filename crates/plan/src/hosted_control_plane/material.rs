//! Everything of a control plane that holds a key: what it is, and what its Secret must contain.
//!
//! Plans never see keys. They say what is needed ([`Content`]); the edge mints it and notes on the Secret the facts
//! that plans need ([`super::SecretFacts`]). There are three independent roots: a certificate of one authority is not
//! trusted by the others. Each material has its own Secret, so that each pod mounts exactly what it needs, and a
//! renewal changes one Secret.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::time::Duration;

/// Something that holds a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Material {
    /// Signs everything that talks to or serves the Kubernetes API.
    ClusterAuthority,
    /// Signs etcd's members and clients, and nothing else.
    EtcdAuthority,
    /// Signs the API server's client for aggregated APIs, and nothing else.
    FrontProxyAuthority,
    /// Signs and verifies service account tokens. Long-lived: a new one ends all tokens.
    ServiceAccountKeys,
    /// Encrypts Secrets in etcd. Never replaced by itself: what it encrypted would be lost.
    EncryptionConfiguration,
    /// What the API server serves with.
    ApiServer,
    ApiServerKubeletClient,
    ApiServerEtcdClient,
    /// What the API server is to aggregated APIs.
    FrontProxyClient,
    /// What etcd's members serve clients with.
    EtcdServer,
    /// What etcd's members are to each other.
    EtcdPeer,
    /// What the tunnel's server serves agents with.
    KonnectivityServer,
    /// What the tunnel's server is to the API server.
    KonnectivityClient,
    /// What the controller manager is to the API server.
    ControllerManager,
    /// What the scheduler is to the API server.
    Scheduler,
    /// What who collects metrics is to the API server, the controller manager and the scheduler.
    Metrics,
    /// Our own kubeconfig, for what we keep in the tenant.
    OperatorAccess,
    /// What we are to etcd's members.
    OperatorEtcdClient,
    /// The kubeconfig that the contract promises.
    Kubeconfig,
}

impl Material {
    /// All of them, authorities first.
    pub const ALL: [Self; 19] = [
        Self::ClusterAuthority,
        Self::EtcdAuthority,
        Self::FrontProxyAuthority,
        Self::ServiceAccountKeys,
        Self::EncryptionConfiguration,
        Self::ApiServer,
        Self::ApiServerKubeletClient,
        Self::ApiServerEtcdClient,
        Self::FrontProxyClient,
        Self::EtcdServer,
        Self::EtcdPeer,
        Self::KonnectivityServer,
        Self::KonnectivityClient,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Metrics,
        Self::OperatorAccess,
        Self::OperatorEtcdClient,
        Self::Kubeconfig,
    ];

    /// Those that are never minted anew once there is data: what depends on them would be lost.
    pub const IRREPLACEABLE: [Self; 5] = [
        Self::ClusterAuthority,
        Self::EtcdAuthority,
        Self::FrontProxyAuthority,
        Self::ServiceAccountKeys,
        Self::EncryptionConfiguration,
    ];

    /// Whether it is one of [`Self::IRREPLACEABLE`].
    pub fn is_irreplaceable(self) -> bool {
        Self::IRREPLACEABLE.contains(&self)
    }

    /// Whether a new control plane takes it from the backup that it starts from. The other authorities sign only what
    /// Hangar mints anew, and a clone must not be able to talk to the original's etcd.
    pub fn is_backed_up(self) -> bool {
        matches!(self, Self::ClusterAuthority | Self::ServiceAccountKeys | Self::EncryptionConfiguration)
    }

    /// What follows the identity in the name of the Secret; the Cluster's name in those of the contract.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::ClusterAuthority => "ca",
            Self::EtcdAuthority => "etcd",
            Self::FrontProxyAuthority => "proxy",
            Self::ServiceAccountKeys => "sa",
            Self::EncryptionConfiguration => "encryption",
            Self::ApiServer => "apiserver",
            Self::ApiServerKubeletClient => "apiserver-kubelet-client",
            Self::ApiServerEtcdClient => "apiserver-etcd-client",
            Self::FrontProxyClient => "front-proxy-client",
            Self::EtcdServer => "etcd-server",
            Self::EtcdPeer => "etcd-peer",
            Self::KonnectivityServer => "konnectivity-server",
            Self::KonnectivityClient => "konnectivity-client",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
            Self::Metrics => "metrics",
            Self::OperatorAccess => "operator-access",
            Self::OperatorEtcdClient => "operator-etcd-client",
            Self::Kubeconfig => "kubeconfig",
        }
    }

    /// The authority that signs it; nothing for authorities and keys without a certificate.
    pub fn issuer(self) -> Option<Self> {
        match self {
            Self::ClusterAuthority
            | Self::EtcdAuthority
            | Self::FrontProxyAuthority
            | Self::ServiceAccountKeys
            | Self::EncryptionConfiguration => None,
            Self::ApiServerEtcdClient | Self::EtcdServer | Self::EtcdPeer | Self::OperatorEtcdClient => {
                Some(Self::EtcdAuthority)
            }
            Self::FrontProxyClient => Some(Self::FrontProxyAuthority),
            Self::ApiServer
            | Self::ApiServerKubeletClient
            | Self::KonnectivityServer
            | Self::KonnectivityClient
            | Self::ControllerManager
            | Self::Scheduler
            | Self::Metrics
            | Self::OperatorAccess
            | Self::Kubeconfig => Some(Self::ClusterAuthority),
        }
    }

    /// Whether it is an authority.
    pub fn is_authority(self) -> bool {
        matches!(self, Self::ClusterAuthority | Self::EtcdAuthority | Self::FrontProxyAuthority)
    }

    /// Whether its Secret's name is the contract's: others look for it by the Cluster's name.
    pub fn is_of_contract(self) -> bool {
        self.may_be_given() || self == Self::Kubeconfig
    }

    /// Whether people may bring their own before we mint one: the Secrets that the contract names.
    pub fn may_be_given(self) -> bool {
        self.is_authority() || self == Self::ServiceAccountKeys
    }
}

impl fmt::Display for Material {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.suffix())
    }
}

/// Keys of the Secrets' data.
pub mod keys {
    /// Certificate in PEM; of service account keys the public key.
    pub const CERTIFICATE: &str = "tls.crt";
    /// Private key in PEM.
    pub const PRIVATE_KEY: &str = "tls.key";
    pub const KUBECONFIG: &str = hangar_api::names::SECRET_VALUE_KEY;
    /// The configuration of encryption at rest, in YAML or JSON.
    pub const ENCRYPTION: &str = "encryption.yaml";
}

/// What a certificate may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Server,
    /// Authenticating a TLS client.
    Client,
    /// Both, as etcd members need towards each other.
    ServerAndClient,
    Authority,
}

/// A certificate that somebody needs. The key is ECDSA on P-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateIntent {
    /// The common name; the user of client certificates.
    pub common_name: String,
    /// The organizations; the groups of client certificates.
    pub organizations: Vec<String>,
    /// DNS names it is valid for.
    pub dns_names: BTreeSet<String>,
    /// Addresses it is valid for.
    pub ip_addresses: BTreeSet<IpAddr>,
    /// What it may be used for.
    pub usage: Usage,
    /// How long it is valid. Shortened where the authority ends earlier.
    pub lifetime: Duration,
}

/// The authority that signs, as it was seen: if another is there when signing, nothing is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    pub material: Material,
    /// Its Secret, in the control plane's namespace.
    pub secret: String,
    /// Fingerprint of its certificate.
    pub fingerprint: String,
}

/// What a Secret must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A self-signed authority: [`keys::CERTIFICATE`], [`keys::PRIVATE_KEY`].
    Authority(CertificateIntent),
    /// A signed certificate: [`keys::CERTIFICATE`], [`keys::PRIVATE_KEY`].
    Certificate {
        /// What it must be.
        intent: CertificateIntent,
        issuer: Issuer,
    },
    /// An RSA key pair for tokens: the public key under [`keys::CERTIFICATE`] (the contract's name for it), the private
    /// one under [`keys::PRIVATE_KEY`].
    ServiceAccountKeys,
    /// An `EncryptionConfiguration` (apiserver.config.k8s.io/v1) under [`keys::ENCRYPTION`]: for `secrets`, first
    /// `secretbox` with one random key of 32 bytes, then `identity`.
    EncryptionConfiguration,
    /// A kubeconfig under [`keys::KUBECONFIG`] with a client certificate and whom to trust in it.
    Kubeconfig {
        /// What the client certificate must be.
        intent: CertificateIntent,
        issuer: Issuer,
        /// Whom the client trusts: one or more certificates in PEM.
        trust: String,
        /// Name of the cluster entry.
        cluster: String,
        /// Name of the user entry.
        user: String,
        /// URL of the API server.
        server: String,
        /// The serial of the user, where it can be revoked by another; it is part of the common name.
        serial: Option<String>,
    },
    /// What is in a backup, whose Secrets are named after their suffix.
    BackedUp {
        /// Whose backup it is: namespace and name.
        from: String,
        /// The id of the backup.
        backup: String,
    },
    /// What is in another Secret of the same namespace, with the notes on it.
    Copy {
        /// The Secret that is copied.
        of: String,
        /// Its uid.
        uid: String,
    },
}

impl Content {
    /// The certificate that is minted, if there is one.
    pub fn intent(&self) -> Option<&CertificateIntent> {
        match self {
            Self::Authority(intent) | Self::Certificate { intent, .. } | Self::Kubeconfig { intent, .. } => {
                Some(intent)
            }
            Self::ServiceAccountKeys
            | Self::EncryptionConfiguration
            | Self::BackedUp { .. }
            | Self::Copy { .. } => None,
        }
    }

    /// The authority that signs, if there is one.
    pub fn issuer(&self) -> Option<&Issuer> {
        match self {
            Self::Certificate { issuer, .. } | Self::Kubeconfig { issuer, .. } => Some(issuer),
            Self::Authority(_)
            | Self::ServiceAccountKeys
            | Self::EncryptionConfiguration
            | Self::BackedUp { .. }
            | Self::Copy { .. } => None,
        }
    }

    /// The serial of the user, where there is one.
    pub fn serial(&self) -> Option<&String> {
        match self {
            Self::Kubeconfig { serial, .. } => serial.as_ref(),
            _ => None,
        }
    }

    /// A hash of everything that is asked for, authority aside. A Secret that carries another one is out of date.
    pub fn hash(&self) -> String {
        let mut text = match self {
            Self::Authority(_) => "authority".to_owned(),
            Self::Certificate { .. } => "certificate".to_owned(),
            Self::ServiceAccountKeys => "service-account-keys".to_owned(),
            Self::EncryptionConfiguration => "encryption-configuration".to_owned(),
            Self::BackedUp { .. } => "backed-up".to_owned(),
            Self::Copy { of, uid } => format!("copy\0{of}\0{uid}"),
            Self::Kubeconfig { cluster, user, server, trust, .. } => {
                format!("kubeconfig\0{cluster}\0{user}\0{server}\0{trust}")
            }
        };
        if let Some(intent) = self.intent() {
            let CertificateIntent { common_name, organizations, dns_names, ip_addresses, usage, lifetime } =
                intent;
            // The formats of these types are part of the hash: a change would renew every certificate. Writing into a
            // String cannot fail.
            let _ = write!(
                text,
                "\0{common_name}\0{}\0{}\0{}\0{usage:?}\0{}",
                organizations.join(","),
                dns_names.iter().cloned().collect::<Vec<_>>().join(","),
                ip_addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(","),
                lifetime.as_secs(),
            );
        }
        crate::hash::text(&text)
    }
}

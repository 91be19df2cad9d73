//! The intent: what a certificate must be, as data.

use std::net::IpAddr;
use std::time::Duration;

/// A certificate that is needed. The authority and the time are given when it is minted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The subject's common name; Kubernetes reads it as the user name of client certificates.
    pub common_name: String,
    /// The subject's organizations; Kubernetes reads them as groups. At most two, see [`Intent::organizations`].
    pub organizations: Vec<String>,
    /// DNS names the certificate is valid for.
    pub dns_names: Vec<String>,
    /// IP addresses the certificate is valid for.
    pub ip_addresses: Vec<IpAddr>,
    /// What the certificate may be used for.
    pub usage: Usage,
    /// How long it is valid from the moment of minting. Shortened where the authority expires earlier.
    pub lifetime: Duration,
    /// The kind of key that is generated.
    pub algorithm: Algorithm,
}

impl Intent {
    /// An intent without names beyond the common name, on an ECDSA key.
    pub fn new(common_name: impl Into<String>, usage: Usage, lifetime: Duration) -> Self {
        Self {
            common_name: common_name.into(),
            organizations: Vec::new(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            usage,
            lifetime,
            algorithm: Algorithm::default(),
        }
    }

    /// A self-signed authority's intent.
    pub fn authority(common_name: impl Into<String>, lifetime: Duration) -> Self {
        Self::new(common_name, Usage::Authority, lifetime)
    }

    /// Adds organizations. The signing library keeps one value per attribute type and we found room for a
    /// second; minting refuses more.
    #[must_use]
    pub fn organizations(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.organizations.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds DNS names.
    #[must_use]
    pub fn dns_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.dns_names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds IP addresses.
    #[must_use]
    pub fn ip_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.ip_addresses.extend(addresses);
        self
    }

    /// Sets the kind of key.
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }
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

impl Usage {
    /// True for usages that include serving TLS.
    pub fn serves(self) -> bool {
        matches!(self, Self::Server | Self::ServerAndClient)
    }

    /// True for usages that include authenticating as a client.
    pub fn authenticates(self) -> bool {
        matches!(self, Self::Client | Self::ServerAndClient)
    }
}

/// The kind of key of a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256: small and fast.
    #[default]
    EcdsaP256,
    /// RSA with 2048 bits, for what cannot read ECDSA.
    Rsa2048,
}

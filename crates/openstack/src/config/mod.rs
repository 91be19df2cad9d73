//! One cloud of a clouds.yaml, as it comes in a Secret.
//!
//! Users' files are sloppy, and other tools accept them: keys given twice (the last counts), unknown keys, numbers
//! where text is meant, `tenant_name`, an `auth_url` without `/v3`, a `cacert` path of another machine. All that is
//! accepted here. Paths are never opened: the certificate authority is passed in beside the file, or is PEM in it.
//! Nothing is taken from the environment.
//!
//! Errors name keys and lines, never values.

mod credentials;
mod read;

use std::fmt;

use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

pub(crate) use credentials::{Credentials, Scope};

/// Who may reach an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interface {
    #[default]
    Public,
    /// The cloud's own network.
    Internal,
    Admin,
}

impl Interface {
    /// As in the catalogue.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}

/// Why a clouds.yaml cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not YAML, or not of the expected shape.
    #[error("clouds.yaml: cannot be parsed at line {line}, column {column}")]
    NotYaml {
        /// Line of the trouble, from 1; 0 when unknown.
        line: u64,
        /// Column of the trouble, from 1; 0 when unknown.
        column: u64,
    },
    /// It has no cloud of that name.
    #[error("clouds.yaml: no cloud {wanted:?}; it has {known}")]
    NoCloud {
        /// The name asked for.
        wanted: String,
        /// The names in the file.
        known: String,
    },
    /// A key is missing.
    #[error("clouds.yaml: {0} is missing")]
    Missing(&'static str),
    /// A key has a value that means nothing.
    #[error("clouds.yaml: {key}: {why}")]
    Invalid {
        key: &'static str,
        /// What would be accepted.
        why: &'static str,
    },
    /// The kind of login is not supported.
    #[error("clouds.yaml: auth_type {0:?} is not supported; password, token and v3applicationcredential are")]
    AuthType(String),
    /// The certificate authority is not PEM.
    #[error("cacert contains no certificate")]
    NoCertificate,
}

/// Equal when two configurations lead to the same session: the key of a session cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A hash over a weak password is not for logs.
        formatter.write_str("Fingerprint(..)")
    }
}

/// Where a cloud is and how to log in.
#[derive(Clone)]
pub struct CloudConfig {
    pub(crate) auth_url: String,
    pub(crate) credentials: Credentials,
    pub(crate) scope: Scope,
    pub(crate) region: Option<String>,
    pub(crate) interface: Interface,
    pub(crate) is_verified: bool,
    pub(crate) cacert: Option<Vec<u8>>,
}

impl CloudConfig {
    /// Reads the cloud of that name from a clouds.yaml.
    pub fn from_yaml(clouds_yaml: &[u8], cloud_name: &str) -> Result<Self, ConfigError> {
        read::cloud(clouds_yaml, cloud_name)?.into_config()
    }

    /// Trusts these certificate authorities (PEM) besides the system's; they win over a `cacert` in the file.
    pub fn with_cacert(mut self, pem: impl Into<Vec<u8>>) -> Result<Self, ConfigError> {
        let pem = pem.into();
        credentials::check_pem(&pem)?;
        self.cacert = Some(pem);
        Ok(self)
    }

    /// In this region instead of the file's.
    #[must_use]
    pub fn with_region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// Where to log in, with `/v3`.
    pub fn auth_url(&self) -> &str {
        &self.auth_url
    }

    /// The region, if one is named.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// Over everything: credentials, region, interface, authorities.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        let body = credentials::login(&self.credentials, &self.scope).to_string();
        let settings = format!("{:?} {:?} {}", self.region, self.interface, self.is_verified);
        for part in [
            self.auth_url.as_bytes(),
            body.as_bytes(),
            settings.as_bytes(),
            self.cacert.as_deref().unwrap_or_default(),
        ] {
            // Lengths keep two neighbours from being read as two others.
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        Fingerprint(hash.finalize().into())
    }

    /// What must never be shown.
    pub(crate) fn secret(&self) -> &SecretString {
        self.credentials.secret()
    }

    /// The body of a login.
    pub(crate) fn login(&self) -> serde_json::Value {
        credentials::login(&self.credentials, &self.scope)
    }
}

impl fmt::Debug for CloudConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CloudConfig")
            .field("auth_url", &self.auth_url)
            .field("credentials", &self.credentials)
            .field("scope", &self.scope)
            .field("region", &self.region)
            .field("interface", &self.interface)
            .field("is_verified", &self.is_verified)
            .field("has_cacert", &self.cacert.is_some())
            .finish()
    }
}

/// `https://keystone:5000` and `https://cloud/identity/v3/` both mean the same as with `/v3`.
fn versioned(auth_url: &str) -> Result<String, ConfigError> {
    let invalid = ConfigError::Invalid { key: "auth_url", why: "an http or https address is needed" };
    let trimmed = auth_url.trim().trim_end_matches('/');
    let parsed: http::Uri = trimmed.parse().map_err(|_| invalid.clone())?;
    let has_credentials = parsed.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none() || has_credentials {
        return Err(invalid);
    }
    let base = trimmed.strip_suffix("/v3").or_else(|| trimmed.strip_suffix("/v2.0")).unwrap_or(trimmed);
    Ok(format!("{}/v3", base.trim_end_matches('/')))
}

#[cfg(test)]
mod tests;

//! Text that must not reach a log: private keys, tokens.
//!
//! The types have no `Display` and their `Debug` is a placeholder, so that a struct which derives `Debug` around
//! them stays safe. Reading the content is an explicit call that is easy to find in a review.

use std::fmt;

use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

use crate::Error;

/// A private key in PEM: PKCS#8, PKCS#1 (`RSA PRIVATE KEY`) or SEC1 (`EC PRIVATE KEY`).
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKeyPem(String);

impl PrivateKeyPem {
    /// Takes PEM text as it is; whether it is a usable key shows when it is used.
    pub fn new(pem: impl Into<String>) -> Self {
        Self(pem.into())
    }

    /// The PEM text, to be written where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Reads the first private key of the text; other sections (`EC PARAMETERS`) are skipped.
    pub(crate) fn key_pair(&self) -> Result<rcgen::KeyPair, Error> {
        let der = PrivateKeyDer::from_pem_slice(self.0.as_bytes())
            .map_err(|error| Error::UnusableKey(error.to_string()))?;
        rcgen::KeyPair::try_from(&der).map_err(|error| Error::UnusableKey(error.to_string()))
    }

    /// The public half as `PUBLIC KEY` PEM (SPKI).
    pub fn public_key_pem(&self) -> Result<String, Error> {
        Ok(self.key_pair()?.public_key_pem())
    }
}

impl fmt::Debug for PrivateKeyPem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PrivateKeyPem(hidden)")
    }
}

/// Any other secret text, such as a bearer token.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to be written where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretText(hidden)")
    }
}

/// A certificate and its private key, as they go into a Secret of type `kubernetes.io/tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPairPem {
    /// The certificate, without the authority's.
    pub certificate: String,
    pub key: PrivateKeyPem,
}

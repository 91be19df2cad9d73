//! The key pair that signs and verifies service account tokens.

use crate::{Algorithm, Error, PrivateKeyPem, mint};

/// RSA keys for service account tokens: the controller manager signs with the private one, API servers verify
/// with one or several public ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountKeys {
    /// PKCS#8 private key.
    pub private: PrivateKeyPem,
    /// SPKI public key (`PUBLIC KEY`).
    pub public: String,
}

impl ServiceAccountKeys {
    /// Generates a new pair. RSA because every client library that verifies tokens on its own can do RS256.
    pub fn generate() -> Result<Self, Error> {
        let key = mint::generate_key(Algorithm::Rsa2048)?;
        Ok(Self { public: key.public_key_pem(), private: PrivateKeyPem::new(key.serialize_pem()) })
    }

    /// Completes a stored private key with its public half.
    pub fn from_private(private: PrivateKeyPem) -> Result<Self, Error> {
        Ok(Self { public: private.public_key_pem()?, private })
    }
}

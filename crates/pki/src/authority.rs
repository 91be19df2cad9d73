//! A certificate authority: its certificate, its key, and the checks that make it one.

use std::fmt;

use jiff::Timestamp;
use rcgen::{Issuer, KeyPair};
use rustls_pki_types::CertificateDer;

use crate::{Certificate, Error, Intent, KeyPairPem, PrivateKeyPem, Usage, mint};

/// A certificate authority that can sign.
pub struct Authority {
    certificate: Certificate,
    pair: KeyPairPem,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new self-signed authority.
    pub fn self_signed(intent: &Intent, now: Timestamp) -> Result<Self, Error> {
        if intent.usage != Usage::Authority {
            return Err(Error::NotAnAuthority(intent.common_name.clone()));
        }
        let pair = mint::self_signed(intent, now)?;
        Self::from_pem(&pair.certificate, &pair.key)
    }

    /// Loads an authority. `certificates` may be a bundle of several generations: the one that belongs to the
    /// key is taken.
    pub fn from_pem(certificates: &str, key: &PrivateKeyPem) -> Result<Self, Error> {
        let certificate = Certificate::parse_bundle(certificates)?
            .into_iter()
            .find(|candidate| candidate.matches_key(key))
            .ok_or(Error::KeyMismatch)?;
        if !certificate.is_authority() {
            return Err(Error::NotAnAuthority(certificate.subject().common_name.clone()));
        }
        // The signing library keeps one value per attribute type: leaves of an authority with a repeated
        // attribute would name an issuer that does not exist.
        if certificate.has_repeated_subject_attribute() {
            return Err(Error::ImpossibleIntent {
                common_name: certificate.subject().common_name.clone(),
                reason: "its subject repeats an attribute, which the signing library cannot write as issuer"
                    .into(),
            });
        }
        let issuer = Issuer::from_ca_cert_der(&CertificateDer::from(certificate.der()), key.key_pair()?)
            .map_err(Error::Signing)?;
        let pair = KeyPairPem { certificate: certificate.to_pem(), key: key.clone() };
        Ok(Self { certificate, pair, issuer })
    }

    /// The authority's certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Certificate and key as PEM, to be stored.
    pub fn pair(&self) -> &KeyPairPem {
        &self.pair
    }

    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

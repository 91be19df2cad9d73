//! Mints: makes a key and a certificate from an intent, an authority and a time.
//!
//! The signing library's own defaults are all wrong for us: validity from 1975 to 4096, a serial derived from the key,
//! no authority key identifier, a common name of its own. So every field is set here.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, RsaKeySize, SanType, SerialNumber,
};
use time::OffsetDateTime;

use crate::{Algorithm, Authority, Error, Intent, KeyPairPem, PrivateKeyPem, Usage};

/// Validity starts this much before the time of minting, so that a peer whose clock is late accepts it at once.
/// Short-lived certificates are backdated by less.
const BACKDATE: Duration = Duration::from_mins(5);

/// Short-lived certificates are backdated by this fraction of their lifetime at most: otherwise two thirds of the
/// validity could lie in the past and the certificate would be due for renewal when it is born.
const LARGEST_BACKDATED_FRACTION: u32 = 10;

/// X.500 `organizationName`, spelled as a custom attribute: the library keeps one value per attribute type, and
/// the custom spelling counts as another type with the same encoding.
const ORGANIZATION_OID: [u64; 4] = [2, 5, 4, 10];

/// Mints a certificate signed by `authority`, with a new key.
pub fn issue(authority: &Authority, intent: &Intent, now: Timestamp) -> Result<KeyPairPem, Error> {
    let authority_end = authority.certificate().not_after();
    if authority_end <= now {
        return Err(Error::AuthorityExpired {
            name: authority.certificate().subject().common_name.clone(),
            expired_at: authority_end,
        });
    }
    let key = generate_key(intent.algorithm)?;
    let parameters = parameters(intent, now, Some(authority_end))?;
    #[allow(clippy::disallowed_methods, reason = "this is the one place that signs")]
    let certificate = parameters.signed_by(&key, authority.issuer()).map_err(Error::Signing)?;
    Ok(KeyPairPem { certificate: certificate.pem(), key: PrivateKeyPem::new(key.serialize_pem()) })
}

/// Mints a self-signed certificate with a new key.
pub(crate) fn self_signed(intent: &Intent, now: Timestamp) -> Result<KeyPairPem, Error> {
    let key = generate_key(intent.algorithm)?;
    let parameters = parameters(intent, now, None)?;
    #[allow(clippy::disallowed_methods, reason = "this is the one place that signs")]
    let certificate = parameters.self_signed(&key).map_err(Error::Signing)?;
    Ok(KeyPairPem { certificate: certificate.pem(), key: PrivateKeyPem::new(key.serialize_pem()) })
}

pub(crate) fn generate_key(algorithm: Algorithm) -> Result<KeyPair, Error> {
    match algorithm {
        Algorithm::EcdsaP256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        Algorithm::Rsa2048 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
    }
    .map_err(Error::Signing)
}

fn parameters(
    intent: &Intent,
    now: Timestamp,
    latest_end: Option<Timestamp>,
) -> Result<CertificateParams, Error> {
    let impossible = |reason: &str| Error::ImpossibleIntent {
        common_name: intent.common_name.clone(),
        reason: reason.to_owned(),
    };
    if intent.common_name.is_empty() {
        return Err(impossible("the common name is empty"));
    }
    if intent.lifetime < Duration::from_secs(1) {
        return Err(impossible("the lifetime is shorter than a second"));
    }

    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = distinguished_name(intent).ok_or_else(|| {
        impossible("more than two organizations, or one twice: the signing library cannot write them")
    })?;
    for name in &intent.dns_names {
        let name = name.clone().try_into().map_err(|_| impossible(&format!("{name:?} is not a DNS name")))?;
        parameters.subject_alt_names.push(SanType::DnsName(name));
    }
    parameters.subject_alt_names.extend(intent.ip_addresses.iter().copied().map(SanType::IpAddress));

    let backdate = BACKDATE.min(intent.lifetime / LARGEST_BACKDATED_FRACTION);
    let outside = |_| impossible("its validity lies outside of what a certificate can say");
    let begin = now.checked_sub(backdate).map_err(outside)?;
    let lifetime = SignedDuration::try_from(intent.lifetime).map_err(outside)?;
    let mut end = now.checked_add(lifetime).map_err(outside)?;
    if let Some(latest_end) = latest_end {
        end = end.min(latest_end);
    }
    let date = |timestamp: Timestamp| {
        OffsetDateTime::from_unix_timestamp(timestamp.as_second())
            .map_err(|_| impossible("its validity lies outside of what a certificate can say"))
    };
    parameters.not_before = date(begin)?;
    parameters.not_after = date(end)?;
    parameters.serial_number = Some(random_serial());
    parameters.use_authority_key_identifier_extension = true;
    set_usages(&mut parameters, intent);
    Ok(parameters)
}

fn distinguished_name(intent: &Intent) -> Option<DistinguishedName> {
    let mut name = DistinguishedName::new();
    let kinds = [DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION_OID.to_vec())];
    if intent.organizations.len() > kinds.len() {
        return None;
    }
    if let [first, second] = intent.organizations.as_slice()
        && first == second
    {
        return None;
    }
    for (kind, organization) in kinds.into_iter().zip(&intent.organizations) {
        name.push(kind, organization.clone());
    }
    name.push(DnType::CommonName, intent.common_name.clone());
    Some(name)
}

/// 127 random bits. The first bit stays clear so that the number is positive, the second is set so that its
/// length never varies.
fn random_serial() -> SerialNumber {
    let mut bytes: [u8; 16] = rand::random();
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    SerialNumber::from_slice(&bytes)
}

fn set_usages(parameters: &mut CertificateParams, intent: &Intent) {
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    if intent.usage == Usage::Authority {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages.extend([KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign]);
        return;
    }
    // Says "not an authority" in so many words, and carries the subject key identifier with it.
    parameters.is_ca = IsCa::ExplicitNoCa;
    if intent.algorithm == Algorithm::Rsa2048 {
        // Only RSA keys can encipher; TLS 1.2 key exchange with RSA needs the bit.
        parameters.key_usages.push(KeyUsagePurpose::KeyEncipherment);
    }
    if intent.usage.serves() {
        parameters.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    }
    if intent.usage.authenticates() {
        parameters.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    }
}

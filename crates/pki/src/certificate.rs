//! Reading certificates: what plans, renewals and metrics need to know about one.
//!
//! Facts are copied out once, at parse time, so that a [`Certificate`] can be kept and compared without
//! lifetimes. Nothing here trusts a certificate: whether a peer accepts it is decided by its TLS stack.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use jiff::{SignedDuration, Timestamp};
use rcgen::PublicKeyData;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

use crate::{Algorithm, Error, Intent, PrivateKeyPem, Usage};

/// PEM bodies are broken after this many characters (RFC 7468).
const PEM_LINE_LENGTH: usize = 64;

/// A certificate is renewed in this last part of its validity: the last third.
const RENEWED_IN_LAST: i32 = 3;

/// Who a certificate speaks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The common name; empty if there is none.
    pub common_name: String,
    /// All organizations, in the order of the certificate.
    pub organizations: Vec<String>,
}

/// A certificate that was read. Equality is equality of the encoded bytes.
#[derive(Clone)]
pub struct Certificate {
    der: Vec<u8>,
    subject: Subject,
    has_repeated_subject_attribute: bool,
    dns_names: BTreeSet<String>,
    ip_addresses: BTreeSet<IpAddr>,
    not_before: Timestamp,
    not_after: Timestamp,
    usage: Option<Usage>,
    algorithm: Option<Algorithm>,
    public_key_info: Vec<u8>,
    serial: String,
}

impl Certificate {
    /// Reads the first certificate of a PEM text.
    pub fn parse(pem: &str) -> Result<Self, Error> {
        Self::parse_bundle(pem)?
            .into_iter()
            .next()
            .ok_or_else(|| Error::UnreadableCertificate("the text is empty".to_owned()))
    }

    /// Reads all certificates of a PEM text; a text without any is an error.
    pub fn parse_bundle(pem: &str) -> Result<Vec<Self>, Error> {
        let certificates = CertificateDer::pem_slice_iter(pem.as_bytes())
            .map(|section| {
                section
                    .map_err(|error| Error::UnreadableCertificate(error.to_string()))
                    .and_then(|der| Self::from_der(&der))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if certificates.is_empty() {
            return Err(Error::UnreadableCertificate("no CERTIFICATE section in the text".to_owned()));
        }
        Ok(certificates)
    }

    /// Reads one certificate from its DER bytes.
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        let unreadable = |reason: &dyn fmt::Display| Error::UnreadableCertificate(reason.to_string());
        let (rest, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| unreadable(&error))?;
        if !rest.is_empty() {
            return Err(unreadable(&"bytes follow after the certificate"));
        }
        let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().map(str::to_owned);
        let name = parsed.subject();
        let attribute_types: Vec<_> =
            name.iter_attributes().map(|attribute| attribute.attr_type().to_id_string()).collect();
        let subject = Subject {
            common_name: name
                .iter_common_name()
                .next()
                .map(text)
                .transpose()
                .map_err(|error| unreadable(&error))?
                .unwrap_or_default(),
            organizations: name
                .iter_organization()
                .map(text)
                .collect::<Result<_, _>>()
                .map_err(|error| unreadable(&error))?,
        };
        let (dns_names, ip_addresses) = alternative_names(&parsed).map_err(|error| unreadable(&error))?;
        let moment = |time: x509_parser::time::ASN1Time| {
            Timestamp::from_second(time.timestamp()).map_err(|error| unreadable(&error))
        };
        Ok(Self {
            der: der.to_vec(),
            subject,
            has_repeated_subject_attribute: attribute_types.iter().collect::<BTreeSet<_>>().len()
                != attribute_types.len(),
            dns_names,
            ip_addresses,
            not_before: moment(parsed.validity().not_before)?,
            not_after: moment(parsed.validity().not_after)?,
            usage: usage(&parsed).map_err(|error| unreadable(&error))?,
            algorithm: algorithm(&parsed),
            public_key_info: parsed.public_key().raw.to_vec(),
            serial: hexadecimal(parsed.raw_serial()),
        })
    }

    /// The encoded certificate.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The certificate as PEM.
    pub fn to_pem(&self) -> String {
        let body = base64::engine::general_purpose::STANDARD.encode(&self.der);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        let mut rest = body.as_str();
        while !rest.is_empty() {
            let (line, tail) = rest.split_at(rest.len().min(PEM_LINE_LENGTH));
            pem.push_str(line);
            pem.push('\n');
            rest = tail;
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        pem
    }

    /// Who it speaks for.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// DNS names it is valid for.
    pub fn dns_names(&self) -> &BTreeSet<String> {
        &self.dns_names
    }

    /// IP addresses it is valid for.
    pub fn ip_addresses(&self) -> &BTreeSet<IpAddr> {
        &self.ip_addresses
    }

    /// Start of its validity.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// End of its validity.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Its serial number, in hexadecimal.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// What it may be used for; nothing when it is none of the combinations we mint.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// True if it may sign other certificates.
    pub fn is_authority(&self) -> bool {
        self.usage == Some(Usage::Authority)
    }

    /// True within its validity.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    /// When it should be replaced: after two thirds of its validity, which leaves the last third for retries.
    pub fn renew_at(&self) -> Timestamp {
        let validity = self.not_before.duration_until(self.not_after);
        // The end is representable and the renewal lies before it.
        self.not_after.checked_sub(validity / RENEWED_IN_LAST).unwrap_or(self.not_before)
    }

    /// Time left until it expires; negative after that.
    pub fn remaining(&self, now: Timestamp) -> SignedDuration {
        now.duration_until(self.not_after)
    }

    /// True if `authority` signed it: names match, the authority may sign, and the signature holds.
    pub fn is_signed_by(&self, authority: &Self) -> bool {
        let (Ok((_, this)), Ok((_, signer))) = (
            x509_parser::parse_x509_certificate(&self.der),
            x509_parser::parse_x509_certificate(&authority.der),
        ) else {
            return false;
        };
        authority.is_authority()
            && this.issuer().as_raw() == signer.subject().as_raw()
            && this.verify_signature(Some(signer.public_key())).is_ok()
    }

    /// True if `key` is the private half of its public key.
    pub fn matches_key(&self, key: &PrivateKeyPem) -> bool {
        key.key_pair().is_ok_and(|key| key.subject_public_key_info() == self.public_key_info)
    }

    /// SHA-256 of the encoded certificate, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        hexadecimal(&Sha256::digest(&self.der))
    }

    /// SHA-256 of the public key as `kubeadm join --discovery-token-ca-cert-hash` expects it: `sha256:` and 64
    /// hexadecimal digits.
    pub fn public_key_hash(&self) -> String {
        format!("sha256:{}", hexadecimal(&Sha256::digest(&self.public_key_info)))
    }

    /// What keeps this certificate from being what `intent` asks for, or nothing. Validity is not compared: see
    /// [`Certificate::renew_at`].
    pub fn difference_from(&self, intent: &Intent) -> Option<&'static str> {
        if self.subject.common_name != intent.common_name {
            Some("common name")
        } else if self.subject.organizations != intent.organizations {
            Some("organizations")
        } else if self.dns_names != intent.dns_names.iter().cloned().collect() {
            Some("DNS names")
        } else if self.ip_addresses != intent.ip_addresses.iter().copied().collect() {
            Some("IP addresses")
        } else if self.usage != Some(intent.usage) {
            Some("usage")
        } else if self.algorithm != Some(intent.algorithm) {
            Some("key algorithm")
        } else {
            None
        }
    }

    pub(crate) fn has_repeated_subject_attribute(&self) -> bool {
        self.has_repeated_subject_attribute
    }
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Certificate {}

impl fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Certificate")
            .field("subject", &self.subject)
            .field("serial", &self.serial)
            .field("not_before", &self.not_before)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

type AlternativeNames = (BTreeSet<String>, BTreeSet<IpAddr>);

fn alternative_names(parsed: &X509Certificate<'_>) -> Result<AlternativeNames, String> {
    let mut dns_names = BTreeSet::new();
    let mut ip_addresses = BTreeSet::new();
    let extension = parsed.subject_alternative_name().map_err(|error| error.to_string())?;
    for name in extension.iter().flat_map(|extension| &extension.value.general_names) {
        match name {
            GeneralName::DNSName(name) => {
                dns_names.insert((*name).to_owned());
            }
            GeneralName::IPAddress(bytes) => {
                let address = <[u8; 4]>::try_from(*bytes)
                    .map(IpAddr::from)
                    .or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from))
                    .map_err(|_| format!("an IP address of {} bytes", bytes.len()))?;
                ip_addresses.insert(address);
            }
            _ => {}
        }
    }
    Ok((dns_names, ip_addresses))
}

fn usage(parsed: &X509Certificate<'_>) -> Result<Option<Usage>, x509_parser::error::X509Error> {
    if parsed.is_ca() {
        // RFC 5280: without a key usage extension every use is allowed.
        let may_sign = parsed.key_usage()?.is_none_or(|extension| extension.value.key_cert_sign());
        return Ok(may_sign.then_some(Usage::Authority));
    }
    Ok(parsed.extended_key_usage()?.and_then(|extension| {
        match (extension.value.server_auth, extension.value.client_auth) {
            (true, true) => Some(Usage::ServerAndClient),
            (true, false) => Some(Usage::Server),
            (false, true) => Some(Usage::Client),
            (false, false) => None,
        }
    }))
}

fn algorithm(parsed: &X509Certificate<'_>) -> Option<Algorithm> {
    use x509_parser::public_key::PublicKey;
    match parsed.public_key().parsed().ok()? {
        PublicKey::EC(point) if point.key_size() == 256 => Some(Algorithm::EcdsaP256),
        PublicKey::RSA(key) if key.key_size() == 2048 => Some(Algorithm::Rsa2048),
        _ => None,
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

//! The content of the certificate Secret, and the next step of its renewal. It is pure, except for minting.
//!
//! The Secret holds one serving certificate with its key, the newest authority with its key, and the certificates of
//! all authorities that are trusted at the moment. The state of a change of authority is read from that alone:
//!
//! ```text
//! trusted authorities   serving certificate signed by   next
//! one                   that one                        nothing, until something is due
//! old and new           the old one                     wait until both are trusted everywhere, then sign with the new one
//! old and new           the new one                     nothing, until something is due
//! ```
//!
//! The old authority stays trusted until the next change, so that no replica can be too late to load the new
//! certificate. Its key is overwritten with the new one, so nothing can be signed with it any more.
//!
//! The tokens of the webhooks' paths (`path`) are beside it and change in the same steps: a new one comes with a new
//! authority, API servers are told of it once that authority has signed, and the old one is accepted until the next change.

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_pki::{Authority, Certificate, Intent, KeyPairPem, PrivateKeyPem, issue};
use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::Error;
use super::path::PathToken;

const DAY: Duration = Duration::from_hours(24);

const SERVING_CERTIFICATE: &str = "tls.crt";
const SERVING_KEY: &str = "tls.key";
const TRUSTED_AUTHORITIES: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
/// One token in each line, the newest first.
const PATH_TOKENS: &str = "path-tokens";

/// How long things last. Renewal is due after two thirds of a lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalPolicy {
    pub authority_lifetime: Duration,
    /// Lifetime of a serving certificate.
    pub serving_lifetime: Duration,
    /// How long after writing a new authority into the last object every API server knows it.
    pub trust_propagation: Duration,
}

impl Default for RenewalPolicy {
    fn default() -> Self {
        Self {
            authority_lifetime: 730 * DAY,
            serving_lifetime: 90 * DAY,
            trust_propagation: Duration::from_mins(1),
        }
    }
}

/// The content of the Secret, read and checked.
#[derive(Clone, Debug)]
pub(super) struct WebhookCertificates {
    /// Newest first; the first one belongs to `authority`.
    trusted: Vec<Certificate>,
    authority: KeyPairPem,
    serving: KeyPairPem,
    serving_certificate: Certificate,
    /// Newest first, at least one; all are accepted.
    tokens: Vec<PathToken>,
}

/// Authorities and tokens that may still be in use somewhere.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    trusted: Vec<Certificate>,
    tokens: Vec<PathToken>,
}

/// What to do about the certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RenewalStep {
    /// Nothing before that moment.
    WaitUntil(Timestamp),
    /// Go on when the trusted authorities have arrived everywhere.
    AwaitTrust,
    /// Make a new authority and trust it beside the old.
    AddAuthority,
    /// Sign a new serving certificate with the newest authority.
    SignServing,
}

impl WebhookCertificates {
    /// Everything new, except that a token that is in use stays: replicas accept it already.
    pub(super) fn create(
        intent: &Intent,
        policy: &RenewalPolicy,
        salvage: Salvage,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let authority = new_authority(policy, now)?;
        let serving = issue(&authority, intent, now)?;
        let serving_certificate = Certificate::parse(&serving.certificate)?;
        let trusted = std::iter::once(authority.certificate().clone()).chain(salvage.trusted).collect();
        let mut tokens = salvage.tokens;
        if tokens.is_empty() {
            tokens.push(PathToken::random());
        }
        Ok(Self { trusted, authority: authority.pair().clone(), serving, serving_certificate, tokens })
    }

    /// Reads the Secret's data; the error says what is wrong with it.
    pub(super) fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, String> {
        let text = |key: &str| {
            let bytes = data.get(key).ok_or_else(|| format!("{key} is missing"))?;
            String::from_utf8(bytes.0.clone()).map_err(|_| format!("{key} is not text"))
        };
        let key = PrivateKeyPem::new(text(AUTHORITY_KEY)?);
        let bundle = text(TRUSTED_AUTHORITIES)?;
        let authority = Authority::from_pem(&bundle, &key).map_err(|error| error.to_string())?;
        let newest = authority.certificate().clone();
        let others = Certificate::parse_bundle(&bundle).map_err(|error| error.to_string())?;
        let trusted: Vec<_> = std::iter::once(newest.clone())
            .chain(others.into_iter().filter(|other| *other != newest))
            .collect();

        let serving = KeyPairPem {
            certificate: text(SERVING_CERTIFICATE)?,
            key: PrivateKeyPem::new(text(SERVING_KEY)?),
        };
        let serving_certificate =
            Certificate::parse(&serving.certificate).map_err(|error| error.to_string())?;
        if !serving_certificate.matches_key(&serving.key) {
            return Err(format!("{SERVING_KEY} does not belong to {SERVING_CERTIFICATE}"));
        }
        if !trusted.iter().any(|authority| serving_certificate.is_signed_by(authority)) {
            return Err(format!("{SERVING_CERTIFICATE} is signed by no authority in {TRUSTED_AUTHORITIES}"));
        }
        let tokens = tokens(&text(PATH_TOKENS)?);
        if tokens.is_empty() {
            return Err(format!("{PATH_TOKENS} holds no token"));
        }
        Ok(Self { trusted, authority: authority.pair().clone(), serving, serving_certificate, tokens })
    }

    /// What can still be read from data which is otherwise broken.
    pub(super) fn salvage(data: &BTreeMap<String, ByteString>) -> Salvage {
        let text = |key: &str| data.get(key).and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
        let trusted = text(TRUSTED_AUTHORITIES)
            .and_then(|bundle| Certificate::parse_bundle(bundle).ok())
            .unwrap_or_default();
        Salvage {
            trusted: trusted.into_iter().filter(Certificate::is_authority).collect(),
            tokens: tokens(text(PATH_TOKENS).unwrap_or_default()),
        }
    }

    /// The Secret's data.
    pub(super) fn write(&self) -> BTreeMap<String, ByteString> {
        [
            (SERVING_CERTIFICATE, self.serving.certificate.clone()),
            (SERVING_KEY, self.serving.key.expose().to_owned()),
            (TRUSTED_AUTHORITIES, self.bundle()),
            (AUTHORITY_KEY, self.authority.key.expose().to_owned()),
            (PATH_TOKENS, self.tokens.iter().map(PathToken::text).collect::<Vec<_>>().join("\n")),
        ]
        .into_iter()
        .map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes())))
        .collect()
    }

    /// What API servers must trust.
    pub(super) fn bundle(&self) -> String {
        self.trusted.iter().map(Certificate::to_pem).collect()
    }

    /// What the server serves with.
    pub(super) fn serving(&self) -> &KeyPairPem {
        &self.serving
    }

    pub(super) fn serving_certificate(&self) -> &Certificate {
        &self.serving_certificate
    }

    /// The tokens that are accepted.
    pub(super) fn tokens(&self) -> &[PathToken] {
        &self.tokens
    }

    /// The token that API servers are told: the newest one, once its authority has signed. By then all replicas accept it.
    pub(super) fn announced(&self) -> Option<&PathToken> {
        let has_signed = self.newest().is_some_and(|newest| self.serving_certificate.is_signed_by(newest));
        self.tokens.get(1).filter(|_| !has_signed).or(self.tokens.first())
    }

    /// When the newest authority expires.
    pub(super) fn authority_end(&self) -> Timestamp {
        self.newest().map_or(Timestamp::MIN, Certificate::not_after)
    }

    /// What comes next. `trusted` says that the authorities have arrived everywhere.
    pub(super) fn next(&self, intent: &Intent, now: Timestamp, trusted: bool) -> RenewalStep {
        let Some(newest) = self.newest() else {
            return RenewalStep::AddAuthority;
        };
        let serving = &self.serving_certificate;
        let serving_is_useless = !serving.is_valid_at(now) || serving.difference_from(intent).is_some();
        if !serving.is_signed_by(newest) {
            // A certificate that nobody accepts has nothing to lose by an early change.
            return if trusted || serving_is_useless {
                RenewalStep::SignServing
            } else {
                RenewalStep::AwaitTrust
            };
        }
        if newest.renew_at() <= now {
            return RenewalStep::AddAuthority;
        }
        if serving_is_useless || serving.renew_at() <= now {
            return RenewalStep::SignServing;
        }
        RenewalStep::WaitUntil(newest.renew_at().min(serving.renew_at()))
    }

    /// The certificates after a step; waiting changes nothing.
    pub(super) fn after(
        &self,
        step: RenewalStep,
        intent: &Intent,
        policy: &RenewalPolicy,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut next = self.clone();
        match step {
            RenewalStep::WaitUntil(_) | RenewalStep::AwaitTrust => {}
            RenewalStep::AddAuthority => {
                let authority = new_authority(policy, now)?;
                next.trusted.retain(|old| old.is_valid_at(now) && self.serving_certificate.is_signed_by(old));
                next.trusted.insert(0, authority.certificate().clone());
                next.authority = authority.pair().clone();
                next.tokens = std::iter::once(PathToken::random()).chain(self.announced().cloned()).collect();
            }
            RenewalStep::SignServing => {
                let authority = Authority::from_pem(&self.authority.certificate, &self.authority.key)?;
                next.serving = issue(&authority, intent, now)?;
                next.serving_certificate = Certificate::parse(&next.serving.certificate)?;
            }
        }
        Ok(next)
    }

    fn newest(&self) -> Option<&Certificate> {
        self.trusted.first()
    }
}

fn tokens(text: &str) -> Vec<PathToken> {
    text.lines().filter_map(PathToken::parse).collect()
}

fn new_authority(policy: &RenewalPolicy, now: Timestamp) -> Result<Authority, Error> {
    Ok(Authority::self_signed(&Intent::authority("hangar-webhook-ca", policy.authority_lifetime), now)?)
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;

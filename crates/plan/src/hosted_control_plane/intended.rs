//! Describes, for previews, what minting would write to a Secret, without making a key.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::material::{CertificateIntent, Content, Issuer, Material, keys};
use super::observed::SecretFacts;
use super::step::Mint;

impl Mint {
    /// The data of the Secret as intents, and the facts that minting would note.
    pub fn intended(&self, now: Timestamp) -> (BTreeMap<&'static str, String>, SecretFacts) {
        let name = self.secret.metadata.name.as_deref().unwrap_or_default();
        let what = format!("<to be minted: {}>", self.content.words());
        let data = match &self.content {
            Content::Authority(_) | Content::Certificate { .. } | Content::ServiceAccountKeys => {
                [keys::CERTIFICATE, keys::PRIVATE_KEY].map(|key| (key, what.clone())).into()
            }
            Content::BackedUp { .. } if self.material != Material::EncryptionConfiguration => {
                [keys::CERTIFICATE, keys::PRIVATE_KEY].map(|key| (key, what.clone())).into()
            }
            Content::EncryptionConfiguration | Content::BackedUp { .. } => [(keys::ENCRYPTION, what)].into(),
            Content::Kubeconfig { .. } => [(keys::KUBECONFIG, what)].into(),
            Content::Copy { .. } => BTreeMap::new(),
        };
        let is_authority = self.material.is_authority() && !matches!(self.content, Content::Copy { .. });
        let facts = SecretFacts {
            intent: Some(self.intent.clone()),
            fingerprint: format!("<to be minted: {name}>"),
            issuer: self.content.issuer().map(|issuer| issuer.fingerprint.clone()),
            serial: self.content.serial().cloned(),
            certificate: is_authority.then(|| format!("<to be minted: certificate of {name}>\n")),
            ..SecretFacts::minted(now, self.content.intent().map(|intent| intent.lifetime))
        };
        (data, facts)
    }
}

impl Content {
    /// What it is, in one line.
    fn words(&self) -> String {
        let life = |intent: &CertificateIntent| match intent.lifetime.as_secs() / (60 * 60) {
            hours @ 0..48 => format!("{hours} hours"),
            hours => format!("{} days", hours / 24),
        };
        let by = |issuer: &Issuer| format!("signed by {}", issuer.secret);
        match self {
            Self::Authority(intent) => format!("authority {:?}, {}", intent.common_name, life(intent)),
            Self::Certificate { intent, issuer } => {
                let names = match intent.dns_names.len() + intent.ip_addresses.len() {
                    0 => String::new(),
                    1 => " for 1 name".to_owned(),
                    names => format!(" for {names} names"),
                };
                format!("certificate {:?}{names}, {}, {}", intent.common_name, life(intent), by(issuer))
            }
            Self::ServiceAccountKeys => "RSA key pair for service account tokens".to_owned(),
            Self::EncryptionConfiguration => "random key that encrypts Secrets in etcd".to_owned(),
            Self::BackedUp { from, backup } => format!("what is in backup {backup} of {from}"),
            Self::Copy { of, .. } => format!("what is in {of}"),
            Self::Kubeconfig { intent, issuer, server, .. } => {
                let name = &intent.common_name;
                format!("kubeconfig of {name:?} for {server}, {}, {}", life(intent), by(issuer))
            }
        }
    }
}

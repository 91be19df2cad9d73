//! Mints the keys and certificates that a plan asks for, and writes each to its Secret.
//!
//! A Secret is created by POST, so an existing Secret of that name stays, whoever made it. A Secret is replaced only if
//! it still has the uid and the version that were read just before. So a key is never overwritten unread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_kit::error::status_code;
use hangar_pki::{
    Authority, Certificate, Credentials, Intent, KeyPairPem, Kubeconfig, ServiceAccountKeys, Trust,
    encryption_key, fingerprint, issue,
};
use hangar_plan::flow::Outcome;
use hangar_plan::hosted_control_plane::material::keys;
use hangar_plan::hosted_control_plane::{
    CertificateIntent, Content, Issuer, Mint, MintReason, SecretFacts, Usage,
};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ObjectMeta, PartialObjectMetaExt as _};
use serde_json::json;

use super::{ControlPlanes, FIELD_MANAGER, material, restore};
use crate::context::Context;
use crate::reconcile::{Case, RunOwn, answer};

/// What goes into a Secret, and what is noted on it.
struct Minted {
    data: BTreeMap<String, ByteString>,
    facts: SecretFacts,
}

/// Keys of authorities, by fingerprint: held for one pass and no longer.
#[derive(Default)]
pub(super) struct Authorities(Mutex<BTreeMap<String, Arc<Authority>>>);

impl Authorities {
    fn get(&self, fingerprint: &str) -> Option<Arc<Authority>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(fingerprint).cloned()
    }

    fn put(&self, authority: Authority) -> Arc<Authority> {
        let (fingerprint, authority) = (authority.certificate().fingerprint(), Arc::new(authority));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(fingerprint, Arc::clone(&authority));
        authority
    }
}

impl RunOwn<ControlPlanes> for Mint {
    /// Mints into a Secret. Answers with the metadata of what is there then, which holds all facts about it.
    async fn run(&self, case: &Case<'_, ControlPlanes>) -> Outcome {
        let minting = Minting { context: case.context, root: &case.seen().value, authorities: &case.scratch };
        match minting.minted(self).await {
            Ok(metadata) => Outcome::Created(serde_json::to_string(&metadata).unwrap_or_default()),
            Err(outcome) => outcome,
        }
    }

    /// Puts intents into the Secret, in place of keys.
    async fn rehearse(&self, case: &Case<'_, ControlPlanes>) -> Outcome {
        let minting = Minting { context: case.context, root: &case.seen().value, authorities: &case.scratch };
        let (data, facts) = self.intended(case.context.ambient.now());
        let data = data.into_iter().map(|(key, intent)| (key.to_owned(), bytes(&intent)));
        let put = async {
            let present = minting.present(self).await?;
            minting.put(self, present, Minted { data: data.collect(), facts }).await
        };
        match put.await {
            Ok(metadata) => Outcome::Created(serde_json::to_string(&metadata).unwrap_or_default()),
            Err(outcome) => outcome,
        }
    }
}

struct Minting<'a> {
    context: &'a Context,
    root: &'a HostedControlPlane,
    authorities: &'a Authorities,
}

impl Minting<'_> {
    async fn minted(&self, mint: &Mint) -> Result<ObjectMeta, Outcome> {
        let present = self.present(mint).await?;
        if let Content::Copy { of, uid } = &mint.content {
            let minted = self.copied(mint, of, uid).await?;
            return self.put(mint, present, minted).await;
        }
        if let Content::BackedUp { from, backup } = &mint.content {
            let minted = self.backed_up(mint, (from, backup)).await?;
            return self.put(mint, present, minted).await;
        }
        let issuer = match mint.content.issuer() {
            Some(issuer) => Some(self.authority(&self.api(mint), issuer).await?),
            None => None,
        };
        let (content, intent) = (mint.content.clone(), mint.intent.clone());
        // An RSA key takes a good part of a second.
        let made =
            tokio::task::spawn_blocking(move || make(&content, intent, issuer.as_deref(), Timestamp::now()));
        let minted = made.await.map_err(|error| Outcome::failed("MintingEnded", error.to_string()))?;
        let minted = minted.map_err(|error| Outcome::failed("MintingFailed", error.to_string()))?;
        self.put(mint, present, minted).await
    }

    /// What is in another Secret, if it is still the one that the plan saw.
    async fn copied(&self, mint: &Mint, name: &str, uid: &str) -> Result<Minted, Outcome> {
        let secret = self.ours(mint, name).await?;
        if secret.metadata.uid.as_deref() != Some(uid) {
            return Err(Outcome::Stale);
        }
        let facts = SecretFacts::of(&secret.metadata).unwrap_or_default();
        Ok(Minted { data: secret.data.unwrap_or_default(), facts })
    }

    /// What is in a backup. It was encrypted with the control plane's key, and is checked as what people bring.
    async fn backed_up(&self, mint: &Mint, backup: (&str, &str)) -> Result<Minted, Outcome> {
        let unusable = |why: String| {
            Outcome::failed(
                "UnusableBackup",
                format!("backup {} of {}: {}: {why}", backup.1, backup.0, mint.material),
            )
        };
        let found = restore::keys(self.context, self.root, backup).await?;
        let files =
            found.get(mint.material.suffix()).ok_or_else(|| unusable("it is not in it".to_owned()))?;
        let data: BTreeMap<String, ByteString> =
            files.iter().map(|(name, content)| (name.clone(), ByteString(content.clone()))).collect();
        let secret = Secret { data: Some(data.clone()), ..Secret::default() };
        let facts = material::backed_up(mint.material, &secret).map_err(unusable)?;
        Ok(Minted { data, facts: SecretFacts { is_ours: true, intent: Some(mint.intent.clone()), ..facts } })
    }

    /// The Secret that will be replaced, read before anything is minted: only that version of it may be.
    async fn present(&self, mint: &Mint) -> Result<Option<Secret>, Outcome> {
        let name = mint.secret.metadata.name.as_deref().unwrap_or_default();
        match mint.why {
            MintReason::Missing | MintReason::Deleted | MintReason::Copied => Ok(None),
            _ => self.ours(mint, name).await.map(Some),
        }
    }

    /// Creates the Secret, or replaces the one that is there.
    async fn put(&self, mint: &Mint, present: Option<Secret>, minted: Minted) -> Result<ObjectMeta, Outcome> {
        let (api, name) = (self.api(mint), mint.secret.metadata.name.clone().unwrap_or_default());
        let written = match present {
            None => self.create(&api, mint, &minted, &name).await?,
            Some(present) => replace(&api, &present, &minted, &name).await?,
        };
        let ObjectMeta { uid, annotations, finalizers, .. } = written.metadata.clone();
        self.context.watches.secrets().written(written.metadata.into_response_partial());
        Ok(ObjectMeta { uid, annotations, finalizers, ..ObjectMeta::default() })
    }

    fn api(&self, mint: &Mint) -> Api<Secret> {
        let namespace = mint.secret.metadata.namespace.clone().unwrap_or_default();
        Api::namespaced(self.context.client(), &namespace)
    }

    async fn create(
        &self,
        api: &Api<Secret>,
        mint: &Mint,
        minted: &Minted,
        name: &str,
    ) -> Result<Secret, Outcome> {
        let mut secret = mint.secret.clone();
        secret.metadata.annotations.get_or_insert_default().extend(minted.facts.annotations());
        secret.data = Some(minted.data.clone());
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match api.create(&parameters, &secret).await {
            Err(error) if status_code(&error) == Some(409) => {
                // It is there after all: ours from an earlier life, or somebody else's.
                let present = self.ours(mint, name).await?;
                let present = if lacks_labels(&present.metadata, mint) {
                    label(api, &present, mint, name).await?
                } else {
                    present
                };
                self.context.watches.secrets().written(present.metadata.into_response_partial());
                Err(Outcome::Stale)
            }
            result => result.map_err(answer::kubernetes),
        }
    }

    /// A Secret that we made, as it is now.
    async fn ours(&self, mint: &Mint, name: &str) -> Result<Secret, Outcome> {
        let read = self.api(mint).get(name).await.map_err(answer::kubernetes)?;
        // One that lost its annotations still has its owner.
        if SecretFacts::of(&read.metadata).is_none() && !is_owned(&read.metadata, mint) {
            return Err(Outcome::refused(format!(
                "Secret {name} exists and was not made by Hangar: delete it, or give it the label {} to have it \
                 used where that is possible",
                hangar_api::names::CLUSTER_NAME_LABEL
            )));
        }
        Ok(read)
    }

    /// The authority that is to sign, if it is still the one the plan saw.
    async fn authority(&self, api: &Api<Secret>, issuer: &Issuer) -> Result<Arc<Authority>, Outcome> {
        if let Some(known) = self.authorities.get(&issuer.fingerprint) {
            return Ok(known);
        }
        let name = &issuer.secret;
        let secret = api.get(name).await.map_err(answer::kubernetes)?;
        let unusable = |text: String| Outcome::failed("UnusableAuthority", format!("Secret {name}: {text}"));
        let authority = material::authority(&secret).map_err(unusable)?;
        if authority.certificate().fingerprint() != issuer.fingerprint {
            // Not stale: it may stay so, and what needs no signature goes on.
            return Err(unusable("its certificate is not the one that is noted on it".to_owned()));
        }
        Ok(self.authorities.put(authority))
    }
}

/// Whether the control plane that this is minted for is its controller.
fn is_owned(metadata: &ObjectMeta, mint: &Mint) -> bool {
    controller(metadata).is_some() && controller(metadata) == controller(&mint.secret.metadata)
}

/// Whether it is ours and lost labels, without which no watch shows it.
fn lacks_labels(metadata: &ObjectMeta, mint: &Mint) -> bool {
    let has = |name: &String| metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(name));
    is_owned(metadata, mint) && !mint.secret.metadata.labels.iter().flatten().all(|(name, _)| has(name))
}

async fn label(api: &Api<Secret>, present: &Secret, mint: &Mint, name: &str) -> Result<Secret, Outcome> {
    let patch = json!({
        "metadata": {
            "uid": present.metadata.uid,
            "resourceVersion": present.metadata.resource_version,
            "labels": mint.secret.metadata.labels,
        },
    });
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(name, &parameters, &Patch::Merge(&patch)).await.map_err(answer::kubernetes)
}

/// The uid of the controller.
fn controller(metadata: &ObjectMeta) -> Option<&str> {
    let owners = metadata.owner_references.iter().flatten();
    owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str()).next()
}

async fn replace(
    api: &Api<Secret>,
    present: &Secret,
    minted: &Minted,
    name: &str,
) -> Result<Secret, Outcome> {
    let patch = json!({
        "metadata": {
            "uid": present.metadata.uid,
            "resourceVersion": present.metadata.resource_version,
            "annotations": minted.facts.annotations(),
        },
        "data": minted.data,
    });
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patched = api.patch(name, &parameters, &Patch::Merge(&patch)).await;
    patched.map_err(answer::kubernetes)
}

fn make(
    content: &Content,
    intent: String,
    issuer: Option<&Authority>,
    now: Timestamp,
) -> Result<Minted, hangar_pki::Error> {
    let signed = |asked: &CertificateIntent| match issuer {
        Some(issuer) => issue(issuer, &certificate_intent(asked), now),
        None => Err(hangar_pki::Error::NotAnAuthority("nobody".to_owned())),
    };
    let by = issuer.map(|issuer| issuer.certificate().fingerprint());
    let note = |fingerprint| SecretFacts {
        is_ours: true,
        intent: Some(intent),
        fingerprint,
        ..SecretFacts::default()
    };
    match content {
        Content::Authority(asked) => {
            let authority = Authority::self_signed(&certificate_intent(asked), now)?;
            let facts = dated(note(String::new()), authority.certificate());
            let facts = SecretFacts { certificate: Some(authority.pair().certificate.clone()), ..facts };
            Ok(Minted { data: pair(authority.pair()), facts })
        }
        Content::Certificate { intent: asked, .. } => {
            let made = signed(asked)?;
            let facts = dated(note(String::new()), &Certificate::parse(&made.certificate)?);
            Ok(Minted { data: pair(&made), facts: SecretFacts { issuer: by, ..facts } })
        }
        Content::Kubeconfig { intent: asked, trust, cluster, user, server, serial, .. } => {
            let made = signed(asked)?;
            let facts = dated(note(String::new()), &Certificate::parse(&made.certificate)?);
            let kubeconfig = Kubeconfig {
                cluster: cluster.clone(),
                user: user.clone(),
                server: server.clone(),
                trust: Trust::Embedded(trust.clone()),
                tls_server_name: None,
                credentials: Credentials::Certificate(made),
                namespace: None,
            };
            let data = BTreeMap::from([(keys::KUBECONFIG.to_owned(), bytes(&kubeconfig.to_yaml()?))]);
            Ok(Minted { data, facts: SecretFacts { issuer: by, serial: serial.clone(), ..facts } })
        }
        Content::ServiceAccountKeys => {
            let made = ServiceAccountKeys::generate()?;
            let data = BTreeMap::from([
                (keys::CERTIFICATE.to_owned(), bytes(&made.public)),
                (keys::PRIVATE_KEY.to_owned(), bytes(made.private.expose())),
            ]);
            Ok(Minted { data, facts: note(fingerprint(&made.public)) })
        }
        Content::Copy { .. } | Content::BackedUp { .. } => {
            Ok(Minted { data: BTreeMap::new(), facts: note(String::new()) })
        }
        Content::EncryptionConfiguration => {
            let configuration = encryption_configuration();
            let data = BTreeMap::from([(keys::ENCRYPTION.to_owned(), bytes(&configuration))]);
            Ok(Minted { facts: note(fingerprint(&configuration)), data })
        }
    }
}

/// Secrets are encrypted with a random key; what was written before is still read.
fn encryption_configuration() -> String {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{
            "resources": ["secrets"],
            "providers": [
                { "secretbox": { "keys": [{ "name": "key1", "secret": encryption_key().expose() }] } },
                { "identity": {} },
            ],
        }],
    })
    .to_string()
}

fn dated(facts: SecretFacts, certificate: &Certificate) -> SecretFacts {
    SecretFacts {
        fingerprint: certificate.fingerprint(),
        not_before: Some(certificate.not_before()),
        not_after: Some(certificate.not_after()),
        ..facts
    }
}

fn pair(pair: &KeyPairPem) -> BTreeMap<String, ByteString> {
    BTreeMap::from([
        (keys::CERTIFICATE.to_owned(), bytes(&pair.certificate)),
        (keys::PRIVATE_KEY.to_owned(), bytes(pair.key.expose())),
    ])
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

fn certificate_intent(asked: &CertificateIntent) -> Intent {
    let usage = match asked.usage {
        Usage::Server => hangar_pki::Usage::Server,
        Usage::Client => hangar_pki::Usage::Client,
        Usage::ServerAndClient => hangar_pki::Usage::ServerAndClient,
        Usage::Authority => hangar_pki::Usage::Authority,
    };
    Intent::new(&asked.common_name, usage, asked.lifetime)
        .organizations(asked.organizations.iter().cloned())
        .dns_names(asked.dns_names.iter().cloned())
        .ip_addresses(asked.ip_addresses.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use hangar_pki::PrivateKeyPem;
    use hangar_plan::hosted_control_plane::Material;

    use super::*;

    const YEAR: Duration = Duration::from_hours(8760);

    fn asked(usage: Usage) -> CertificateIntent {
        CertificateIntent {
            common_name: "somebody".to_owned(),
            organizations: vec!["group".to_owned()],
            dns_names: BTreeSet::from(["api.example.com".to_owned()]),
            ip_addresses: BTreeSet::from([[192, 0, 2, 1].into()]),
            usage,
            lifetime: YEAR,
        }
    }

    fn made(content: &Content, issuer: Option<&Authority>) -> (BTreeMap<String, String>, SecretFacts) {
        let minted = make(content, "hash".to_owned(), issuer, Timestamp::now()).unwrap();
        let text = |bytes: ByteString| String::from_utf8(bytes.0).unwrap();
        (minted.data.into_iter().map(|(key, bytes)| (key, text(bytes))).collect(), minted.facts)
    }

    fn authority() -> (Authority, Issuer) {
        let (data, facts) = made(&Content::Authority(asked(Usage::Authority)), None);
        let key = PrivateKeyPem::new(&data[keys::PRIVATE_KEY]);
        let authority = Authority::from_pem(&data[keys::CERTIFICATE], &key).unwrap();
        let issuer = Issuer {
            material: Material::ClusterAuthority,
            secret: "demo-ca".to_owned(),
            fingerprint: facts.fingerprint,
        };
        (authority, issuer)
    }

    #[test]
    fn notes_say_what_is_in_the_secret_and_nothing_secret() {
        let (data, facts) = made(&Content::Authority(asked(Usage::Authority)), None);
        let certificate = Certificate::parse(&data[keys::CERTIFICATE]).unwrap();
        assert_eq!(facts.fingerprint, certificate.fingerprint());
        assert_eq!(facts.certificate.as_deref(), Some(data[keys::CERTIFICATE].as_str()));
        assert_eq!((facts.not_after, facts.intent.as_deref()), (Some(certificate.not_after()), Some("hash")));
        assert!(facts.annotations().values().all(|note| !note.contains("PRIVATE")));
    }

    /// Plans cannot import the crate of certificates, so the rule is written in both.
    #[test]
    fn plans_renew_when_certificates_say_that_renewal_is_due() {
        let (data, facts) = made(&Content::Authority(asked(Usage::Authority)), None);
        let certificate = Certificate::parse(&data[keys::CERTIFICATE]).unwrap();
        assert_eq!(facts.renew_at(), Some(certificate.renew_at()));
    }

    #[test]
    fn a_certificate_is_what_was_asked_for_and_names_its_issuer() {
        let (authority, issuer) = authority();
        let content = Content::Certificate { intent: asked(Usage::Server), issuer: issuer.clone() };
        let (data, facts) = made(&content, Some(&authority));
        let certificate = Certificate::parse(&data[keys::CERTIFICATE]).unwrap();
        assert_eq!(certificate.difference_from(&certificate_intent(&asked(Usage::Server))), None);
        assert!(certificate.is_signed_by(authority.certificate()));
        assert_eq!((facts.issuer, facts.certificate), (Some(issuer.fingerprint), None));
        assert!(make(&content, String::new(), None, Timestamp::now()).is_err(), "nobody signs");
    }

    #[test]
    fn a_kubeconfig_trusts_whom_it_is_told_and_holds_its_own_key() {
        let (authority, issuer) = authority();
        let trust = "one\ntwo\n".to_owned();
        let content = Content::Kubeconfig {
            intent: asked(Usage::Client),
            issuer,
            trust,
            cluster: "demo".to_owned(),
            user: "admin".to_owned(),
            server: "https://api.example.com:6443".to_owned(),
            serial: Some("7".to_owned()),
        };
        let (data, facts) = made(&content, Some(&authority));
        let parsed = kube::config::Kubeconfig::from_yaml(&data[keys::KUBECONFIG]).unwrap();
        let cluster = parsed.clusters[0].cluster.clone().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://api.example.com:6443"));
        // Signing and trusting are two things: a bundle may hold more than who signs.
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("b25lCnR3bwo="));
        assert!(parsed.auth_infos[0].auth_info.as_ref().unwrap().client_key_data.is_some());
        assert!(facts.not_after.is_some());
        assert_eq!(facts.annotations()["hangar.cluster.x-k8s.io/serial"], "7");
    }

    #[test]
    fn keys_without_certificates_differ_each_time_and_never_end() {
        for content in [Content::ServiceAccountKeys, Content::EncryptionConfiguration] {
            let ((_, one), (_, two)) = (made(&content, None), made(&content, None));
            assert_ne!(one.fingerprint, two.fingerprint);
            assert_eq!((one.not_after, one.issuer), (None, None));
        }
        let (data, _) = made(&Content::EncryptionConfiguration, None);
        let document: serde_json::Value = serde_json::from_str(&data[keys::ENCRYPTION]).unwrap();
        assert_eq!(document["resources"][0]["resources"], json!(["secrets"]));
        assert!(document["resources"][0]["providers"][0]["secretbox"].is_object(), "the first one encrypts");
    }
}

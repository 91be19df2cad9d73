//! Reads facts about the Secrets that hold keys.
//!
//! When Hangar mints a key it notes the facts as annotations, so a watch of metadata is enough. A Secret without these
//! annotations was provided by a user; it is read as a whole, once per version. So are Hangar's own kubeconfigs, because
//! their content decides where Hangar connects to, and the keys that cannot be replaced, because nothing may be signed
//! with what somebody put in their place.
//!
//! Annotations can be stripped. A Secret whose controller is the control plane stays ours: the encryption key is known by
//! its content, for it must never be made twice, and what can be replaced is minted again, with its annotations.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_kit::ObjectKey;
use hangar_kit::error::{Error, Result, status_code};
use hangar_kit::watch::Kept;
use hangar_pki::{
    Authority, Certificate, Credentials, KeyPairPem, PrivateKeyPem, ServiceAccountKeys, fingerprint,
};
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::material::keys;
use hangar_plan::hosted_control_plane::names::KEPT_FINALIZER;
use hangar_plan::hosted_control_plane::{Material, Names, SecretFacts};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::ControlPlanes;
use crate::context::{Context, SecretFacts as Noted, kubeconfig_facts, read_kubeconfig};

/// What was read of Secrets as a whole, by uid, with the version that was read.
#[derive(Default)]
pub(super) struct Given(Mutex<BTreeMap<String, (String, SecretFacts)>>);

impl Given {
    fn get(&self, uid: &str, version: &str) -> Option<SecretFacts> {
        let read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.get(uid).filter(|(seen, _)| seen == version).map(|(_, facts)| facts.clone())
    }

    fn put(&self, uid: &str, version: &str, facts: &SecretFacts) {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(uid.to_owned(), (version.to_owned(), facts.clone()));
    }
}

impl ControlPlanes {
    /// Every Secret by what it holds. One that was made for another control plane is not ours, whatever stands on it.
    pub(super) async fn secrets(
        &self,
        context: &Context,
        names: &Names,
        uid: &str,
    ) -> BTreeMap<Material, Read<SecretFacts>> {
        let mut found = BTreeMap::new();
        for material in Material::ALL {
            let key = ObjectKey::namespaced(names.namespace(), names.secret(material));
            let read = match context.watches.secrets().get(&key) {
                Read::One(kept) => {
                    let facts = match SecretFacts::of(&metadata(&kept)) {
                        Some(facts) => {
                            let is_theirs =
                                kept.owners.iter().any(|owner| owner.is_controller && owner.uid != uid);
                            let facts = SecretFacts { is_ours: !is_theirs, ..facts };
                            self.minted(context, material, &kept, facts).await
                        }
                        None if !material.may_be_given() && is_owned(&kept, uid) => {
                            self.stripped(context, material, &kept).await
                        }
                        None => self.brought(context, material, &kept).await,
                    };
                    // One that cannot be read stops only what needs it.
                    facts.map_or_else(|error| Read::unknown(error.to_string()), Read::One)
                }
                Read::Absent | Read::Many(_) => Read::Absent,
                Read::Unknown(unknown) => Read::Unknown(unknown),
            };
            found.insert(material, read);
        }
        found
    }

    /// Facts of a Secret that we made. A kubeconfig is read as a whole: somebody may have changed where it leads.
    async fn minted(
        &self,
        context: &Context,
        material: Material,
        kept: &Kept<Noted>,
        facts: SecretFacts,
    ) -> Result<SecretFacts> {
        let is_kubeconfig = matches!(material, Material::OperatorAccess | Material::Kubeconfig);
        let is_read = is_kubeconfig || material.is_irreplaceable();
        if !is_read || !facts.is_ours || facts.is_deleting || self.is_rehearsed {
            return Ok(facts);
        }
        if let Some(facts) = self.given.get(&kept.uid, &kept.resource_version) {
            return Ok(facts);
        }
        let secret = whole(context, kept).await?;
        // Notes and content are compared of one version; the store is about to show the other.
        if secret.metadata.resource_version.as_ref() != Some(&kept.resource_version) {
            return Ok(facts);
        }
        if material.is_irreplaceable() {
            let is_noted =
                content_fingerprint(material, &secret).is_ok_and(|found| found == facts.fingerprint);
            let problem = "its content was changed: it has to be what it was, which the annotation \
                           hangar.cluster.x-k8s.io/fingerprint tells";
            let facts = SecretFacts { problem: (!is_noted).then(|| problem.to_owned()), ..facts };
            self.given.put(&kept.uid, &kept.resource_version, &facts);
            return Ok(facts);
        }
        let kubeconfig = read_kubeconfig(&secret).and_then(|kubeconfig| match &kubeconfig.credentials {
            Credentials::Certificate(pair) if !is_pair(pair) => {
                Err("users[].user.client-key-data is not the key of the certificate".to_owned())
            }
            _ => Ok(kubeconfig_facts(&kubeconfig)),
        });
        let facts = SecretFacts { kubeconfig: Some(kubeconfig), ..facts };
        self.given.put(&kept.uid, &kept.resource_version, &facts);
        Ok(facts)
    }

    /// Facts of a Secret that we made and that lost its annotations. Without an intent it counts as another than is
    /// wanted, and is minted again if it can be.
    async fn stripped(
        &self,
        context: &Context,
        material: Material,
        kept: &Kept<Noted>,
    ) -> Result<SecretFacts> {
        let facts = SecretFacts {
            uid: Some(kept.uid.clone()),
            is_ours: true,
            is_deleting: kept.is_terminating,
            finalizers: kept.finalizers.clone(),
            ..SecretFacts::default()
        };
        if material != Material::EncryptionConfiguration {
            return Ok(facts);
        }
        if let Some(facts) = self.given.get(&kept.uid, &kept.resource_version) {
            return Ok(facts);
        }
        let secret = whole(context, kept).await?;
        let facts = match text(&secret, keys::ENCRYPTION) {
            Ok(configuration) => SecretFacts { fingerprint: fingerprint(&configuration), ..facts },
            Err(problem) => SecretFacts { problem: Some(problem), ..facts },
        };
        self.given.put(&kept.uid, &kept.resource_version, &facts);
        Ok(facts)
    }

    /// Facts of a Secret that somebody else made.
    async fn brought(
        &self,
        context: &Context,
        material: Material,
        kept: &Kept<Noted>,
    ) -> Result<SecretFacts> {
        let nothing_known = SecretFacts {
            uid: Some(kept.uid.clone()),
            is_deleting: kept.is_terminating,
            finalizers: kept.finalizers.clone(),
            ..SecretFacts::default()
        };
        if !material.may_be_given() {
            return Ok(nothing_known);
        }
        if let Some(facts) = self.given.get(&kept.uid, &kept.resource_version) {
            return Ok(facts);
        }
        let secret = whole(context, kept).await?;
        // One that is of no use is a fact about it: whoever brought it is told, and it stops no deletion.
        let facts = described(material, &secret, nothing_known.clone())
            .unwrap_or_else(|problem| SecretFacts { problem: Some(problem), ..nothing_known });
        self.given.put(&kept.uid, &kept.resource_version, &facts);
        Ok(facts)
    }
}

fn is_owned(kept: &Kept<Noted>, uid: &str) -> bool {
    kept.owners.iter().any(|owner| owner.is_controller && owner.uid == uid)
}

/// The copies that this control plane has of Secrets that were deleted. One of another owner is not seen.
pub(super) fn copies(context: &Context, names: &Names, uid: &str) -> BTreeMap<Material, Read<SecretFacts>> {
    let copy = |material: Material| {
        let key = ObjectKey::namespaced(names.namespace(), names.copy(material));
        let found = context.watches.secrets().get(&key);
        let found = found
            .filter(|kept| is_owned(kept, uid))
            .map(|kept| SecretFacts::of(&metadata(&kept)).unwrap_or_default());
        (material, found)
    };
    Material::IRREPLACEABLE.into_iter().map(copy).collect()
}

/// Takes our finalizer from Secrets that are being deleted after their control plane: nobody else ever would.
pub(super) async fn let_go(context: &Context, control_plane: &ObjectKey) -> Result<()> {
    let is_held = |kept: &Kept<Noted>| {
        kept.is_terminating && kept.controller::<HostedControlPlane>().as_ref() == Some(control_plane)
    };
    let near = context.watches.secrets().in_namespace(&control_plane.namespace, |_| true);
    let api: Api<Secret> = Api::namespaced(context.client(), control_plane.namespace_or_empty());
    for kept in near.iter().filter(|kept| is_held(kept)) {
        let mut finalizers = kept.finalizers.clone();
        finalizers.retain(|finalizer| finalizer != KEPT_FINALIZER);
        if finalizers == kept.finalizers {
            continue;
        }
        let patch = json!({"metadata": {
            "uid": kept.uid, "resourceVersion": kept.resource_version, "finalizers": finalizers,
        }});
        match api.patch_metadata(&kept.key.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            // Gone, or changed: then it comes again.
            Err(error) if matches!(status_code(&error), Some(404 | 409 | 422)) => {}
            patched => {
                patched.map_err(|source| Error::api(format!("let go of Secret {}", kept.key), source))?;
            }
        }
    }
    Ok(())
}

async fn whole(context: &Context, kept: &Kept<Noted>) -> Result<Secret> {
    let api: Api<Secret> = Api::namespaced(context.client(), kept.key.namespace_or_empty());
    let read = api.get(&kept.key.name).await;
    read.map_err(|source| Error::api(format!("read Secret {}", kept.key), source))
}

fn is_pair(pair: &KeyPairPem) -> bool {
    Certificate::parse(&pair.certificate).is_ok_and(|certificate| certificate.matches_key(&pair.key))
}

/// The metadata as the plan reads it.
fn metadata(kept: &Kept<Noted>) -> ObjectMeta {
    ObjectMeta {
        uid: Some(kept.uid.clone()),
        annotations: Some(kept.annotations.clone()),
        finalizers: Some(kept.finalizers.clone()),
        // Only whether there is one matters.
        deletion_timestamp: kept.is_terminating.then_some(Time(Timestamp::UNIX_EPOCH)),
        ..ObjectMeta::default()
    }
}

/// One text of a Secret's data.
pub(super) fn text(secret: &Secret, key: &str) -> Result<String, String> {
    let data = secret.data.as_ref().and_then(|data| data.get(key));
    let bytes = data.ok_or_else(|| format!("it has no key {key:?}"))?;
    String::from_utf8(bytes.0.clone()).map_err(|error| error.to_string())
}

/// The authority in a Secret.
pub(super) fn authority(secret: &Secret) -> Result<Authority, String> {
    let certificate = text(secret, keys::CERTIFICATE)?;
    let key = PrivateKeyPem::new(text(secret, keys::PRIVATE_KEY)?);
    Authority::from_pem(&certificate, &key).map_err(|error| error.to_string())
}

/// The fingerprint of what is in a Secret that cannot be replaced, as minting notes it.
fn content_fingerprint(material: Material, secret: &Secret) -> Result<String, String> {
    match material {
        Material::EncryptionConfiguration => Ok(fingerprint(&text(secret, keys::ENCRYPTION)?)),
        Material::ServiceAccountKeys => {
            let key = PrivateKeyPem::new(text(secret, keys::PRIVATE_KEY)?);
            let pair = ServiceAccountKeys::from_private(key).map_err(|error| error.to_string())?;
            Ok(fingerprint(&pair.public))
        }
        _ => Ok(authority(secret)?.certificate().fingerprint()),
    }
}

/// The facts of what is in a backup, if it is what it is called.
pub(super) fn backed_up(material: Material, secret: &Secret) -> Result<SecretFacts, String> {
    if material == Material::EncryptionConfiguration {
        let fingerprint = content_fingerprint(material, secret)?;
        return Ok(SecretFacts { fingerprint, ..SecretFacts::default() });
    }
    described(material, secret, SecretFacts::default())
}

/// What a Secret that people brought holds.
fn described(material: Material, secret: &Secret, base: SecretFacts) -> Result<SecretFacts, String> {
    let key = PrivateKeyPem::new(text(secret, keys::PRIVATE_KEY)?);
    if material == Material::ServiceAccountKeys {
        let pair = ServiceAccountKeys::from_private(key).map_err(|error| error.to_string())?;
        return Ok(SecretFacts { fingerprint: fingerprint(&pair.public), ..base });
    }
    let pem = text(secret, keys::CERTIFICATE)?;
    let certificate = Certificate::parse(&pem).map_err(|error| error.to_string())?;
    if material == Material::ClusterAuthority && pem.matches("-----BEGIN CERTIFICATE-----").count() > 1 {
        return Err(format!(
            "{:?} has several certificates: the controller manager signs with one",
            keys::CERTIFICATE
        ));
    }
    if !certificate.is_authority() {
        return Err(format!("the certificate in {:?} is no authority", keys::CERTIFICATE));
    }
    if !certificate.matches_key(&key) {
        let (key, certificate) = (keys::PRIVATE_KEY, keys::CERTIFICATE);
        return Err(format!("{key:?} is not the key of the first certificate in {certificate:?}"));
    }
    Ok(SecretFacts {
        fingerprint: certificate.fingerprint(),
        not_before: Some(certificate.not_before()),
        not_after: Some(certificate.not_after()),
        certificate: Some(pem),
        ..base
    })
}

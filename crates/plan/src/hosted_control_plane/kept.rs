//! Keeps the keys that cannot be replaced: authorities, token keys, the encryption key.
//!
//! Once etcd has data none of them is minted: with another one stored data cannot be read, or nodes and users are not
//! recognised. A finalizer holds each Secret that Hangar made. A deletion cannot be taken back, so a Secret that was
//! deleted is copied, let go, and made again from the copy; each stage follows from what is there, so that a crash
//! between two of them changes nothing. Secrets of users carry no finalizer of ours. The fingerprints are recorded, so
//! that another key in the place of one that was lost is told apart.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use k8s_openapi::api::core::v1::Secret;

use super::certificates::{Judgement, secret_type};
use super::material::{Content, Material};
use super::names::{Component, KEPT_FINALIZER, KEYS_ANNOTATION};
use super::observed::{ObjectIdentity, SecretFacts};
use super::step::{self, Mint, MintReason};
use super::validate::Validated;
use super::{Draft, Names};
use crate::admission::FieldError;
use crate::flow::{Read, Unknown};

/// The fingerprints that are recorded. Something that cannot be read is an error and not nothing.
pub(super) fn recorded(
    control_plane: &HostedControlPlane,
) -> Result<Option<BTreeMap<Material, String>>, FieldError> {
    let annotations = control_plane.metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|annotations| annotations.get(KEYS_ANNOTATION)) else {
        return Ok(None);
    };
    let named = |(suffix, fingerprint): (String, String)| {
        let material = Material::IRREPLACEABLE.into_iter().find(|material| material.suffix() == suffix)?;
        Some((material, fingerprint))
    };
    let read: Option<BTreeMap<String, String>> = serde_json::from_str(text).ok();
    let read = read.and_then(|read| read.into_iter().map(named).collect::<Option<BTreeMap<_, _>>>());
    read.filter(|read| read.len() == Material::IRREPLACEABLE.len()).map(Some).ok_or_else(|| {
        let why = "it is Hangar's record of keys that cannot be replaced and must be as it was written";
        FieldError::invalid(format!("metadata.annotations[{KEYS_ANNOTATION}]"), text.as_str(), why)
    })
}

/// Records the keys that there are when etcd begins to have data.
pub(super) fn record(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    if validated.bootstrapped.is_none() || validated.keys.is_some() {
        return;
    }
    let fingerprint = |material: Material| match draft.observed.secret(material) {
        Read::One(facts)
            if !facts.is_deleting && facts.problem.is_none() && !facts.fingerprint.is_empty() =>
        {
            Some((material.suffix(), facts.fingerprint.clone()))
        }
        _ => None,
    };
    let keys: Option<BTreeMap<_, _>> = Material::IRREPLACEABLE.into_iter().map(fingerprint).collect();
    if let Some(keys) = keys {
        draft.report.decide("record the keys that cannot be replaced", "etcd has data");
        draft.step(step::record(KEYS_ANNOTATION, &serde_json::json!(keys).to_string()));
    }
}

/// Whether the recorded key is another one.
pub(super) fn is_another(validated: &Validated<'_>, material: Material, facts: &SecretFacts) -> bool {
    let recorded = validated.keys.as_ref().and_then(|keys| keys.get(&material));
    recorded.is_some_and(|recorded| *recorded != facts.fingerprint)
}

/// What has to be done so that a key that cannot be replaced stays; whether it is as it should be, so that nothing but
/// its validity is left to judge. Without data there is nothing to lose, and it is minted as any other.
pub(super) fn judge(
    draft: &mut Draft<'_>,
    validated: &Validated<'_>,
    material: Material,
    judged: &mut Judgement,
) -> bool {
    let observed = draft.observed;
    let names = &validated.names;
    let (name, copy_name) = (names.secret(material), names.copy(material));
    let unread = Read::unknown("it was not read");
    let copy = match observed.copies.get(&material).unwrap_or(&unread) {
        Read::Unknown(unknown) => {
            judged.unread.push((copy_name, unknown.clone()));
            return false;
        }
        read => read.iter().next(),
    };
    let has_data = validated.bootstrapped.is_some();
    match (observed.secret(material), copy) {
        (Read::Unknown(unknown), _) => judged.unread.push((name, unknown)),
        (Read::Many(_), _) => judged.unread.push((name, Unknown::new("a name leads to several Secrets"))),
        (Read::Absent, Some(copy)) => {
            draft.report.decide(format!("make {name} again from {copy_name}"), "it was deleted and copied");
            copied(draft, validated, material, (&copy_name, copy, MintReason::Copied));
            judged.restoring.push(name);
        }
        (Read::Absent, None) if has_data => judged.lost.push(format!("Secret {name} does not exist")),
        (Read::One(facts), None) if facts.is_deleting && !facts.is_held() => {
            if has_data {
                judged.lost.push(format!("Secret {name} is being deleted"));
            } else {
                judged.minting.push(name);
            }
        }
        (Read::One(facts), _) if facts.is_deleting && !facts.is_ours && !has_data => {
            // Of a control plane that had this name before.
            if let Some(step) = step::let_go(&name, facts) {
                draft.step(step);
            }
            judged.minting.push(name);
        }
        (Read::One(facts), Some(copy)) if copy.fingerprint != facts.fingerprint => {
            judged.unusable.push(format!("{copy_name}: it is no copy of {name}, and has to be deleted"));
        }
        (Read::One(facts), copy) if facts.is_deleting => {
            if copy.is_some() {
                draft.report.decide(format!("let {name} go"), format!("{copy_name} has what is in it"));
                // Once it is let go, others may still hold it for a moment.
                let step = step::let_go(&name, facts).filter(|_| facts.is_held());
                if let Some(step) = step {
                    draft.step(step);
                }
            } else {
                draft
                    .report
                    .decide(format!("copy {name} to {copy_name}"), "it was deleted and cannot be replaced");
                copied(draft, validated, material, (&name, facts, MintReason::Deleted));
            }
            judged.restoring.push(name);
        }
        (Read::One(facts), _) if is_another(validated, material, facts) => {
            judged.lost.push(format!("Secret {name} has another key than the recorded one"));
        }
        (Read::One(facts), copy) => {
            if facts.is_ours
                && !facts.is_held()
                && let Some(step) = step::hold(&name, facts)
            {
                draft.step(step);
            }
            if let Some(copy) = copy {
                forget(draft, names, &copy_name, copy);
            }
            return true;
        }
        (Read::Absent, None) => return true,
    }
    false
}

/// A copy is of no use once the Secret is there again.
fn forget(draft: &mut Draft<'_>, names: &Names, name: &str, copy: &SecretFacts) {
    if copy.is_deleting {
        let step = step::let_go(name, copy).filter(|_| copy.is_held());
        if let Some(step) = step {
            draft.step(step);
        }
        return;
    }
    let object = ObjectIdentity {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: names.namespace().to_owned(),
        name: name.to_owned(),
    };
    copy.uid.iter().for_each(|uid| draft.step(step::delete(&object, uid)));
}

fn copied(
    draft: &mut Draft<'_>,
    validated: &Validated<'_>,
    material: Material,
    (of, facts, why): (&str, &SecretFacts, MintReason),
) {
    let names = &validated.names;
    let Some(uid) = facts.uid.clone() else { return };
    let target = if why == MintReason::Deleted { names.copy(material) } else { names.secret(material) };
    let content = Content::Copy { of: of.to_owned(), uid };
    let secret = secret(validated, material, target, &content);
    draft.step(Mint { material, secret, intent: content.hash(), content, why });
}

/// The Secret of a material without its data; held, where it cannot be replaced.
pub(super) fn secret(
    validated: &Validated<'_>,
    material: Material,
    name: String,
    content: &Content,
) -> Secret {
    let mut metadata = validated.metadata(name, Component::Credentials);
    metadata.finalizers = material.is_irreplaceable().then(|| vec![KEPT_FINALIZER.to_owned()]);
    Secret { metadata, type_: Some(secret_type(material, content).to_owned()), ..Secret::default() }
}

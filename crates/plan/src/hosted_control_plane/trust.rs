//! Plans bundles: the certificates that are trusted, apart from the key that signs.
//!
//! An authority's Secret contains one certificate and its key, for signers only. Everything else (pods, kubeconfigs,
//! the configuration of nodes) reads the authority's bundle, of one or more certificates. So a rotation can add a
//! certificate to the bundle, then change the signer, then remove the old certificate.
//!
//! Bundles are public and made from facts, so they are plain objects: one ConfigMap for each authority, because each
//! authority may be known before the others.

use k8s_openapi::api::core::v1::ConfigMap;

use super::kept;
use super::material::Material;
use super::names::Component;
use super::observed::Observed;
use super::validate::Validated;
use crate::flow::Read;

/// The key of the ConfigMaps.
pub(super) const BUNDLE: &str = "ca.crt";

/// The certificates of an authority that are to be trusted, in PEM; nothing while they were not seen.
pub(super) fn bundle(observed: &Observed, validated: &Validated<'_>, authority: Material) -> Option<String> {
    match observed.secret(authority) {
        Read::One(facts) if facts.problem.is_none() && !kept::is_another(validated, authority, facts) => {
            facts.certificate.clone()
        }
        _ => None,
    }
}

/// The ConfigMaps of what was seen. One that was not stays as it is.
pub(super) fn objects(observed: &Observed, validated: &Validated<'_>) -> Vec<ConfigMap> {
    let authorities = Material::ALL.into_iter().filter(|material| material.is_authority());
    let object = |authority| {
        let data = [(BUNDLE.to_owned(), bundle(observed, validated, authority)?)].into();
        Some(validated.config_map(validated.names.trust(authority), Component::Credentials, data))
    };
    authorities.filter_map(object).collect()
}

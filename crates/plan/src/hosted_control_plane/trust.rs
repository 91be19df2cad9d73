//! Whom to trust, apart from who signs.
//!
//! An authority's Secret holds one certificate and its key, for signers only. Everybody else (pods, kubeconfigs, what
//! nodes are told) reads the authority's bundle: one or more certificates. A rotation adds a certificate to the bundle,
//! then changes the signer, then takes the former one out, and no file ever has to be both.
//!
//! Bundles are public and are made from facts, so they are plain objects: one ConfigMap for each authority, because each
//! is known, or not, by itself.

use k8s_openapi::api::core::v1::ConfigMap;

use super::material::Material;
use super::names::Component;
use super::observed::Observed;
use super::validate::Validated;
use crate::flow::Read;

/// The key of the ConfigMaps.
pub(super) const BUNDLE: &str = "ca.crt";

/// The certificates of an authority that are to be trusted, in PEM; nothing while they were not seen.
pub(super) fn bundle(observed: &Observed, authority: Material) -> Option<String> {
    match observed.secret(authority) {
        Read::One(facts) if facts.problem.is_none() => facts.certificate.clone(),
        _ => None,
    }
}

/// The ConfigMaps of what was seen. One that was not stays as it is.
pub(super) fn objects(observed: &Observed, validated: &Validated<'_>) -> Vec<ConfigMap> {
    let authorities = Material::ALL.into_iter().filter(|material| material.is_authority());
    let object = |authority| {
        let data = [(BUNDLE.to_owned(), bundle(observed, authority)?)].into();
        Some(validated.config_map(validated.names.trust(authority), Component::Credentials, data))
    };
    authorities.filter_map(object).collect()
}

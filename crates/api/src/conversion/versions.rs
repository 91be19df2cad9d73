//! Which API version of a referenced kind to name.
//!
//! References in the hub name only group and kind; the older version also names an API version. It is found the way
//! the contract says: on the kind's CRD, label `cluster.x-k8s.io/<contract>` lists the versions that implement a
//! contract, and the highest version of the newest contract counts. The conversion webhook fills [`ContractVersions`]
//! from the CRDs it watches, and must have listed them once before it serves: what it does not know yet looks like a
//! CRD that is missing, and readers of the older version would see `v1beta1` in its place.

use super::api_version;
use std::collections::BTreeMap;

/// The contracts that are understood, preferred first.
const CONTRACT_LABELS: [&str; 2] = ["cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"];

/// Answers which version of a kind implements the newest contract; `None` when no such kind is known.
pub trait VersionLookup {
    /// The version (without group), such as `v1beta1`.
    fn version(&self, group: &str, kind: &str) -> Option<String>;
}

/// Knows no kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoVersions;

impl VersionLookup for NoVersions {
    fn version(&self, _group: &str, _kind: &str) -> Option<String> {
        None
    }
}

/// Versions by group and kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContractVersions(BTreeMap<(String, String), String>);

impl ContractVersions {
    /// Knows no kind yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one CRD by its group, kind and labels; a CRD without contract label is forgotten.
    pub fn observe(&mut self, group: &str, kind: &str, labels: &BTreeMap<String, String>) {
        let key = (group.to_owned(), kind.to_owned());
        match contract_version(labels) {
            Some(version) => self.0.insert(key, version.to_owned()),
            None => self.0.remove(&key),
        };
    }

    /// Forgets a CRD that is gone.
    pub fn forget(&mut self, group: &str, kind: &str) {
        self.0.remove(&(group.to_owned(), kind.to_owned()));
    }
}

impl VersionLookup for ContractVersions {
    fn version(&self, group: &str, kind: &str) -> Option<String> {
        self.0.get(&(group.to_owned(), kind.to_owned())).cloned()
    }
}

/// The version to use of a kind, from the labels of its CRD.
pub fn contract_version(labels: &BTreeMap<String, String>) -> Option<&str> {
    CONTRACT_LABELS.iter().find_map(|label| api_version::highest_listed(labels.get(*label)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_newest_contract_wins_and_in_it_the_highest_version() {
        let both = labels(&[
            ("cluster.x-k8s.io/v1beta1", "v1beta7"),
            ("cluster.x-k8s.io/v1beta2", "v1alpha2_v1alpha10_v1alpha9"),
        ]);
        assert_eq!(contract_version(&both), Some("v1alpha10"));
        let old =
            labels(&[("cluster.x-k8s.io/v1beta1", "v1beta1"), ("cluster.x-k8s.io/v1alpha4", "v1alpha7")]);
        assert_eq!(contract_version(&old), Some("v1beta1"));
        let empty = labels(&[("cluster.x-k8s.io/v1beta1", "v1beta1"), ("cluster.x-k8s.io/v1beta2", "")]);
        assert_eq!(contract_version(&empty), Some("v1beta1"));
        assert_eq!(contract_version(&labels(&[("app", "x")])), None);
    }

    #[test]
    fn observed_kinds_are_known_until_they_lose_their_label() {
        let mut versions = ContractVersions::new();
        versions.observe("g", "K", &labels(&[("cluster.x-k8s.io/v1beta2", "v1")]));
        assert_eq!(versions.version("g", "K").as_deref(), Some("v1"));
        assert_eq!(versions.version("g", "L"), None);
        versions.observe("g", "K", &labels(&[]));
        assert_eq!(versions.version("g", "K"), None);
        versions.observe("g", "K", &labels(&[("cluster.x-k8s.io/v1beta2", "v1")]));
        versions.forget("g", "K");
        assert_eq!(versions, ContractVersions::new());
    }
}

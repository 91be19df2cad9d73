//! Derives names from other names.
//!
//! These names identify objects: the same input always gives the same name, and a test pins examples.

use sha2::{Digest, Sha256};

/// The limit of a label value.
const LABEL_VALUE_LIMIT: usize = 63;

/// An object's name as a label value: the name itself where it is short enough, else its beginning and a hash of all of
/// it, so that two long names stay different.
pub fn label_value(name: &str) -> String {
    if name.len() <= LABEL_VALUE_LIMIT {
        return name.to_owned();
    }
    let [first, second, third, fourth, ..] = <[u8; 32]>::from(Sha256::digest(name.as_bytes()));
    let digest = u32::from_be_bytes([first, second, third, fourth]);
    let beginning: String = name.chars().take(LABEL_VALUE_LIMIT - "-01234567".len()).collect();
    format!("{}-{digest:08x}", beginning.trim_end_matches(['-', '.', '_']))
}

/// The name of the CRD of a kind: the contract asks for the regular English plural, so that it is found without asking.
pub fn custom_resource(group: &str, kind: &str) -> String {
    let singular = kind.to_lowercase();
    let ends_with = |endings: &[&str]| endings.iter().any(|ending| singular.ends_with(ending));
    let plural = if ends_with(&["s", "x", "ch", "sh"]) {
        format!("{singular}es")
    } else if singular.ends_with('y') && !ends_with(&["ay", "ey", "oy", "uy"]) {
        format!("{}ies", singular.trim_end_matches('y'))
    } else {
        format!("{singular}s")
    };
    format!("{plural}.{group}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_its_own_label_value() {
        assert_eq!(label_value("demo"), "demo");
        assert_eq!(label_value(&"a".repeat(63)), "a".repeat(63));
    }

    #[test]
    fn long_names_stay_different_and_pinned() {
        let value = label_value(&"a".repeat(64));
        assert_eq!(value, format!("{}-ffe054fe", "a".repeat(54)));
        assert_ne!(value, label_value(&format!("{}b", "a".repeat(63))));
        assert_eq!(value.len(), 63);
    }

    #[test]
    fn definitions_are_found_by_the_regular_plural() {
        let name = |kind| custom_resource("example.com", kind);
        assert_eq!(name("OpenStackCluster"), "openstackclusters.example.com");
        assert_eq!(name("ClusterClass"), "clusterclasses.example.com");
        assert_eq!(name("Policy"), "policies.example.com");
        assert_eq!(name("Gateway"), "gateways.example.com");
        assert_eq!(name("HAProxy"), "haproxies.example.com");
    }
}

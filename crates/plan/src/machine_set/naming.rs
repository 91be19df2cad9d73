//! Names Machines from the set's uid and a slot, and from nothing else.
//!
//! The next slot is one above the highest in use. A store that lags misses the latest Machines, which have the highest
//! slots, so a plan made from it chooses names that exist, and the API server refuses them. A name is used again only
//! when the Machine with the highest slot is gone, with everything that carried its name.

use std::collections::BTreeSet;

use hangar_api::cluster::v1beta2::{Machine, MachineSet};
use sha2::{Digest as _, Sha256};

/// On Machines: the slot they were named from.
pub const SLOT_ANNOTATION: &str = "hangar.cluster.x-k8s.io/slot";

/// Names of Machines become host names and label values.
const NAME_LIMIT: usize = 63;
const SUFFIX_LENGTH: usize = 5;
/// Without vowels and look-alikes, as generated names have it everywhere in Kubernetes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Slots whose names are taken are stepped over; this many in a row do not happen.
const ATTEMPTS: u32 = 64;

/// A naming template that this version cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamingError {
    /// It asks for something else than the three known values.
    #[error(
        "spec.machineNaming.template uses {{{{ {0} }}}}; known are .cluster.name, .machineSet.name and .random"
    )]
    UnknownValue(String),
    /// Two Machines would have the same name.
    #[error("spec.machineNaming.template does not use {{{{ .random }}}}")]
    NotUnique,
}

/// Five characters from what an identity consists of.
pub(crate) fn suffix(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest: [u8; 32] = hasher.finalize().into();
    digest.iter().take(SUFFIX_LENGTH).map(|byte| char::from(ALPHABET[usize::from(*byte) % 27])).collect()
}

/// A name of at most the limit that ends in the suffix.
pub(crate) fn with_suffix(base: &str, suffix: &str) -> String {
    let room = NAME_LIMIT - suffix.len() - 1;
    let base: String = base.chars().take(room).collect();
    format!("{}-{suffix}", base.trim_end_matches(['-', '.']))
}

fn slot(machine: &Machine) -> Option<u32> {
    machine.metadata.annotations.as_ref()?.get(SLOT_ANNOTATION)?.parse().ok()
}

/// The slot of a Machine that we named.
pub(super) fn slot_of(machine: &Machine) -> Option<u32> {
    slot(machine)
}

pub(super) fn next_slot(members: &[&Machine]) -> u32 {
    members.iter().filter_map(|machine| slot(machine)).max().map_or(0, |highest| highest.wrapping_add(1))
}

/// The first free slot from one on, with its name.
pub(super) fn free(
    set: &MachineSet,
    first: u32,
    taken: &BTreeSet<String>,
) -> Result<Option<(u32, String)>, NamingError> {
    // Slots are annotations, which anybody can write: after the last one comes the first.
    let attempts = u32::try_from(taken.len()).unwrap_or(u32::MAX).saturating_add(ATTEMPTS);
    for slot in (0..attempts).map(|number| first.wrapping_add(number)) {
        let name = machine_name(set, slot)?;
        if !taken.contains(&name) {
            return Ok(Some((slot, name)));
        }
    }
    Ok(None)
}

pub fn machine_name(set: &MachineSet, slot: u32) -> Result<String, NamingError> {
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let random = suffix(&[uid, &slot.to_string()]);
    let template = set.spec.machine_naming.as_ref().and_then(|naming| naming.template.as_deref());
    match template {
        None => Ok(with_suffix(name, &random)),
        Some(template) => rendered(template, &set.spec.cluster_name, name, &random),
    }
}

/// The three values of a naming template; its other abilities are not known here.
fn rendered(template: &str, cluster: &str, set: &str, random: &str) -> Result<String, NamingError> {
    let mut rest = template;
    let mut name = String::new();
    let mut is_unique = false;
    while let Some((before, after)) = rest.split_once("{{") {
        name.push_str(before);
        let (value, after) =
            after.split_once("}}").ok_or_else(|| NamingError::UnknownValue(after.trim().to_owned()))?;
        name.push_str(match value.trim().trim_matches('-').trim() {
            ".cluster.name" => cluster,
            ".machineSet.name" => set,
            ".random" => {
                is_unique = true;
                random
            }
            other => return Err(NamingError::UnknownValue(other.to_owned())),
        });
        rest = after;
    }
    name.push_str(rest);
    if !is_unique {
        return Err(NamingError::NotUnique);
    }
    if name.len() <= NAME_LIMIT {
        return Ok(name);
    }
    // As everywhere: what is too long keeps its beginning and stays unique by its end.
    Ok(with_suffix(&name, random))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, template: Option<&str>) -> MachineSet {
        let mut set = MachineSet::default();
        set.metadata.name = Some(name.to_owned());
        set.metadata.uid = Some("11111111-2222-3333-4444-555555555555".to_owned());
        set.spec.cluster_name = "demo".to_owned();
        set.spec.machine_naming = template.map(|template| hangar_api::cluster::rollout::MachineNaming {
            template: Some(template.to_owned()),
        });
        set
    }

    #[test]
    fn names_are_pinned() {
        let names: Vec<_> = (0..4).map(|slot| machine_name(&set("workers-x", None), slot).unwrap()).collect();
        insta::assert_snapshot!(names.join("\n"));
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let name = machine_name(&set(&"a".repeat(100), None), 0).unwrap();
        assert_eq!(name.len(), 63);
        let templated = set(&"a".repeat(100), Some("{{ .machineSet.name }}-{{ .random }}"));
        assert_eq!(machine_name(&templated, 0).unwrap(), name);
    }

    #[test]
    fn a_naming_template_is_followed_or_refused() {
        let name = |template: &str| machine_name(&set("workers", Some(template)), 0);
        let random = suffix(&["11111111-2222-3333-4444-555555555555", "0"]);
        assert_eq!(name("{{.cluster.name}}-{{ .random }}").unwrap(), format!("demo-{random}"));
        assert_eq!(name("{{ .machineSet.name }}-x"), Err(NamingError::NotUnique));
        assert_eq!(
            name("{{ .cluster.uid }}-{{ .random }}"),
            Err(NamingError::UnknownValue(".cluster.uid".to_owned()))
        );
    }

    #[test]
    fn taken_names_are_stepped_over() {
        let set = set("workers", None);
        let taken = BTreeSet::from([machine_name(&set, 3).unwrap(), machine_name(&set, 4).unwrap()]);
        let slot = |first| free(&set, first, &taken).unwrap().unwrap().0;
        assert_eq!((slot(2), slot(3), slot(5)), (2, 5, 5));
    }

    #[test]
    fn after_the_last_slot_comes_the_first_free_one() {
        let set = set("workers", None);
        let mut machine: Machine = serde_json::from_value(serde_json::json!({
            "metadata": { "annotations": { SLOT_ANNOTATION: u32::MAX.to_string() } },
            "spec": {
                "clusterName": "demo", "bootstrap": { "dataSecretName": "a" },
                "infrastructureRef": { "apiGroup": "a", "kind": "b", "name": "c" },
            },
        }))
        .unwrap();
        let first = next_slot(&[&machine]);
        let taken = (0..100).map(|slot| machine_name(&set, slot).unwrap()).collect();
        assert_eq!(free(&set, first, &taken).unwrap().unwrap().0, 100);
        machine.metadata.annotations = None;
        assert_eq!(next_slot(&[&machine]), 0);
    }
}

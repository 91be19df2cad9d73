//! Names Machines from the set's uid and a slot, and from nothing else.
//!
//! The next slot is above every one that is in use or was recorded as used. A store that lags misses the latest Machines,
//! which have the highest slots, so a plan made from it chooses names that exist, and the API server refuses them. A
//! slot is recorded once its Machine is seen and before anything is made for it, so a name comes back only if nothing
//! but the Machine ever carried it.

use std::collections::BTreeSet;

use hangar_api::cluster::v1beta2::{Machine, MachineSet};
use sha2::{Digest as _, Sha256};

/// On Machines: the slot they were named from.
pub const SLOT_ANNOTATION: &str = "hangar.cluster.x-k8s.io/slot";
/// On MachineSets: slots below this one were used, whether their Machines still exist or not.
pub const NEXT_SLOT_ANNOTATION: &str = "hangar.cluster.x-k8s.io/next-slot";

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
    /// Nobody can tell which names were used.
    #[error("the annotation {NEXT_SLOT_ANNOTATION} is {0:?}, and not the number that Hangar wrote")]
    Record(String),
    /// Every name was used.
    #[error("no slot is left after {NEXT_SLOT_ANNOTATION}")]
    Exhausted,
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

/// The slot of a Machine that we named.
pub(super) fn slot(machine: &Machine) -> Option<u32> {
    machine.metadata.annotations.as_ref()?.get(SLOT_ANNOTATION)?.parse().ok()
}

/// The first slot that no Machine of the set ever had, as far as that is recorded.
pub(super) fn recorded(set: &MachineSet) -> Result<u32, NamingError> {
    let annotations = set.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(NEXT_SLOT_ANNOTATION));
    text.map_or(Ok(0), |text| text.parse().map_err(|_| NamingError::Record(text.clone())))
}

/// The slot whose name a Machine has. Annotations can be written by anybody; one that does not fit the name says
/// nothing.
pub(super) fn used_slot(set: &MachineSet, machine: &Machine) -> Option<u32> {
    let slot = slot(machine)?;
    let name = machine.metadata.name.as_deref()?;
    name.contains(&random(set, slot)).then_some(slot)
}

/// The first slot after all that Machines have; none when no Machine has one.
pub(super) fn after(set: &MachineSet, members: &[&Machine]) -> Option<u32> {
    let used = members.iter().filter_map(|machine| used_slot(set, machine)).max();
    used.map(|highest| highest.saturating_add(1))
}

/// The slot and the name of the next Machine. Names that are taken are stepped over.
pub(super) fn next(
    set: &MachineSet,
    members: &[&Machine],
    taken: &BTreeSet<String>,
) -> Result<(u32, String), NamingError> {
    let first = recorded(set)?.max(after(set, members).unwrap_or_default());
    let attempts = u32::try_from(taken.len()).unwrap_or(u32::MAX).saturating_add(ATTEMPTS);
    for slot in (first..u32::MAX).take(usize::try_from(attempts).unwrap_or(usize::MAX)) {
        let name = machine_name(set, slot)?;
        if !taken.contains(&name) {
            return Ok((slot, name));
        }
    }
    Err(NamingError::Exhausted)
}

fn random(set: &MachineSet, slot: u32) -> String {
    suffix(&[set.metadata.uid.as_deref().unwrap_or_default(), &slot.to_string()])
}

pub fn machine_name(set: &MachineSet, slot: u32) -> Result<String, NamingError> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let random = random(set, slot);
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

    fn machine(set: &MachineSet, slot: u32) -> Machine {
        serde_json::from_value(serde_json::json!({
            "metadata": {
                "name": machine_name(set, slot).unwrap(), "annotations": { SLOT_ANNOTATION: slot.to_string() },
            },
            "spec": {
                "clusterName": "demo", "bootstrap": { "dataSecretName": "a" },
                "infrastructureRef": { "apiGroup": "a", "kind": "b", "name": "c" },
            },
        }))
        .unwrap()
    }

    fn recording(next: &str) -> MachineSet {
        let mut set = set("workers", None);
        set.metadata.annotations = Some([(NEXT_SLOT_ANNOTATION.to_owned(), next.to_owned())].into());
        set
    }

    #[test]
    fn taken_names_are_stepped_over() {
        let set = set("workers", None);
        let taken = BTreeSet::from([machine_name(&set, 3).unwrap(), machine_name(&set, 4).unwrap()]);
        let slot = |first: u32| next(&recording(&first.to_string()), &[], &taken).unwrap().0;
        assert_eq!((slot(2), slot(3), slot(5)), (2, 5, 5));
    }

    #[test]
    fn what_was_recorded_counts_as_much_as_what_exists() {
        let slot = |set: &MachineSet, members: &[&Machine]| next(set, members, &BTreeSet::new()).unwrap().0;
        let (set, of_seven) = (set("workers", None), machine(&set("workers", None), 7));
        assert_eq!((slot(&set, &[]), slot(&set, &[&of_seven])), (0, 8));
        assert_eq!((slot(&recording("9"), &[&of_seven]), slot(&recording("3"), &[&of_seven])), (9, 8));
    }

    /// Trap: annotations can be written by anybody, and after the last number there is none.
    #[test]
    fn no_annotation_makes_names_come_back() {
        let set = set("workers", None);
        let mut forged = machine(&set, 1);
        forged
            .metadata
            .annotations
            .as_mut()
            .unwrap()
            .insert(SLOT_ANNOTATION.to_owned(), u32::MAX.to_string());
        let none = BTreeSet::new();
        assert_eq!(next(&recording("2"), &[&forged], &none).unwrap().0, 2);
        assert_eq!(next(&set, &[&machine(&set, u32::MAX)], &none), Err(NamingError::Exhausted));
        for text in ["", "-1", "4294967296", "many"] {
            assert_eq!(next(&recording(text), &[], &none), Err(NamingError::Record(text.to_owned())));
        }
    }
}

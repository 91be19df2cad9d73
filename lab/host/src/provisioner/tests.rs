//! Tests of decisions as tables, and of the directories. `tests/host/provisioner.rs` tests it on a real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeSpec, PersistentVolumeStatus};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;

use super::claim::{self, VolumeClaim, VolumeClaimAction, VolumeClaimIdentity};
use super::directory::Directories;
use super::{FINALIZER, NODE_LABEL, Options, PROVISIONER, volume};

const IDENTITY: VolumeClaimIdentity<'static> =
    VolumeClaimIdentity { namespace: "default", name: "data", uid: "8a5c7a0e-0000-4000-8000-000000000001" };

fn options() -> Options {
    Options { node: "m".to_owned(), directory: PathBuf::from("/var/lib/volumes"), unassigned: true }
}

fn class(mode: &str) -> StorageClass {
    StorageClass {
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some(mode.to_owned()),
        ..StorageClass::default()
    }
}

fn wanting() -> VolumeClaim {
    VolumeClaim {
        class: Some("directory".to_owned()),
        asked: Some(PROVISIONER.to_owned()),
        access_modes: vec!["ReadWriteOnce".to_owned()],
        size: Some(Quantity("2Gi".to_owned())),
        ..VolumeClaim::default()
    }
}

fn decide(claim: &VolumeClaim, mode: &str) -> VolumeClaimAction {
    claim::decide(claim, IDENTITY, &class(mode), &options())
}

#[test]
fn a_claim_gets_a_volume_named_after_its_uid() {
    let VolumeClaimAction::Provision(volume) = decide(&wanting(), "Immediate") else {
        panic!("nothing provisioned")
    };
    insta::assert_yaml_snapshot!(volume);
}

#[test]
fn a_claim_is_served_only_when_asked_and_here() {
    let selected = |node: &str| VolumeClaim { selected_node: Some(node.to_owned()), ..wanting() };
    let not_ours = [
        VolumeClaim { asked: None, ..wanting() },
        VolumeClaim { asked: Some("other".to_owned()), ..wanting() },
        VolumeClaim { is_bound: true, ..wanting() },
        selected("other"),
    ];
    for claim in not_ours {
        assert_eq!(decide(&claim, "Immediate"), VolumeClaimAction::Nothing, "{claim:?}");
    }
    assert_eq!(decide(&wanting(), "WaitForFirstConsumer"), VolumeClaimAction::Nothing);
    assert!(matches!(decide(&selected("m"), "WaitForFirstConsumer"), VolumeClaimAction::Provision(_)));
    let elsewhere = Options { unassigned: false, ..options() };
    let decide_there = |claim: &VolumeClaim| claim::decide(claim, IDENTITY, &class("Immediate"), &elsewhere);
    assert_eq!(decide_there(&wanting()), VolumeClaimAction::Nothing, "another node serves it");
    assert!(matches!(decide_there(&selected("m")), VolumeClaimAction::Provision(_)));
    let foreign = StorageClass { provisioner: "other".to_owned(), ..class("Immediate") };
    assert_eq!(claim::decide(&wanting(), IDENTITY, &foreign, &options()), VolumeClaimAction::Nothing);
}

#[test]
fn what_a_directory_cannot_be_is_refused() {
    let impossible = [
        VolumeClaim { volume_mode: Some("Block".to_owned()), ..wanting() },
        VolumeClaim { has_source: true, ..wanting() },
        VolumeClaim { has_selector: true, ..wanting() },
    ];
    for claim in impossible {
        assert!(matches!(decide(&claim, "Immediate"), VolumeClaimAction::Refuse(_)), "{claim:?}");
    }
}

fn existing(phase: &str, policy: &str, is_terminating: bool) -> PersistentVolume {
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(claim::volume_name(IDENTITY.uid)),
            labels: Some(BTreeMap::from([(NODE_LABEL.to_owned(), "m".to_owned())])),
            finalizers: Some(vec!["kubernetes.io/pv-protection".to_owned(), FINALIZER.to_owned()]),
            deletion_timestamp: is_terminating.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            persistent_volume_reclaim_policy: Some(policy.to_owned()),
            ..PersistentVolumeSpec::default()
        }),
        status: Some(PersistentVolumeStatus {
            phase: Some(phase.to_owned()),
            ..PersistentVolumeStatus::default()
        }),
    }
}

#[test]
fn a_directory_goes_only_when_its_claim_is_gone() {
    use volume::VolumeAction::{Finish, LetGo, Nothing, Reclaim};
    let cases = [
        ("Pending", "Delete", false, Nothing),
        ("Available", "Delete", false, Nothing),
        ("Bound", "Delete", false, Nothing),
        ("Bound", "Delete", true, Nothing),
        ("Released", "Delete", false, Reclaim),
        ("Released", "Delete", true, Finish),
        ("Available", "Delete", true, Finish),
        ("Released", "Retain", false, Nothing),
        ("Released", "Retain", true, LetGo),
        ("Bound", "Retain", true, Nothing),
        ("Failed", "Delete", false, Nothing),
    ];
    for (phase, policy, is_terminating, expected) in cases {
        let volume = existing(phase, policy, is_terminating);
        assert_eq!(volume::decide(&volume, "m"), expected, "{phase} {policy} {is_terminating}");
        assert_eq!(volume::decide(&volume, "elsewhere"), Nothing);
    }
    let mut foreign = existing("Released", "Delete", false);
    foreign.metadata.finalizers = None;
    assert_eq!(volume::decide(&foreign, "m"), Nothing);
}

#[test]
fn directories_are_made_and_removed_as_often_as_asked() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("volumes");
    let outside = place.path().join("outside");
    std::fs::write(&outside, "kept").unwrap();
    let directories = Directories::open(&root).unwrap();
    assert_eq!(std::fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
    for _ in 0..2 {
        directories.make("pvc-a").unwrap();
    }
    assert_eq!(std::fs::metadata(directories.path("pvc-a")).unwrap().permissions().mode() & 0o777, 0o777);
    symlink(&outside, directories.path("pvc-a").join("link")).unwrap();
    for _ in 0..2 {
        directories.remove("pvc-a").unwrap();
    }
    assert!(outside.exists() && !directories.path("pvc-a").exists());
}

#[test]
fn only_empty_unknown_directories_are_swept() {
    let place = tempfile::tempdir().unwrap();
    let directories = Directories::open(place.path()).unwrap();
    for name in ["pvc-known", "pvc-empty", "pvc-full", "lost+found"] {
        std::fs::create_dir(directories.path(name)).unwrap();
    }
    std::fs::write(directories.path("pvc-full").join("data"), "").unwrap();
    let known = BTreeSet::from(["pvc-known".to_owned()]);
    assert_eq!(directories.remove_leftovers(&known).unwrap(), ["pvc-empty"]);
    assert_eq!(directories.remove_leftovers(&known).unwrap(), Vec::<String>::new());
    for name in ["pvc-known", "pvc-full", "lost+found"] {
        assert!(directories.path(name).exists(), "{name}");
    }
}

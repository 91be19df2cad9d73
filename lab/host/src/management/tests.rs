use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use hangar_parts::Set;
use jiff::{Timestamp, ToSpan};

use super::control_plane::Component;
use super::*;
use crate::addresses::NODE_POD_RANGE;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(100, 72, 0, 10);

#[test]
fn static_pods() {
    let components = || Component::FIRST.into_iter().chain(Component::SECOND);
    let seals = components().map(|component| (component, format!("seal of {}", component.name()))).collect();
    let options =
        control_plane::Options { address: ADDRESS, kubernetes: Set::Kubernetes134, etcd: Set::Etcd36, seals };
    for component in components() {
        insta::assert_yaml_snapshot!(component.name(), component.manifest(&options));
    }
}

#[test]
fn kubelet_configuration() {
    insta::assert_yaml_snapshot!("kubelet", kubelet::configuration());
    insta::assert_yaml_snapshot!("network", kubelet::network(NODE_POD_RANGE));
}

#[test]
fn credentials_are_made_once_and_renewed_when_due() {
    let directory = tempfile::tempdir().unwrap();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let first = credentials::ensure(directory.path(), ADDRESS, now).unwrap();
    assert!(first.written > 20);
    let second = credentials::ensure(directory.path(), ADDRESS, now).unwrap();
    assert_eq!(second.written, 0);
    assert_eq!(first.administrator, second.administrator);

    // A key that does not fit its certificate is what a crash between the two leaves.
    assert!(first.renewed.is_empty() && second.renewed.is_empty());
    let authority = fs::read_to_string(directory.path().join("pki/ca.crt")).unwrap();
    let other = fs::read(directory.path().join("pki/etcd/server.key")).unwrap();
    fs::write(directory.path().join("pki/apiserver.key"), other).unwrap();
    let repaired = credentials::ensure(directory.path(), ADDRESS, now).unwrap();
    assert_eq!((repaired.written, repaired.renewed), (2, vec!["apiserver".to_owned()]));

    // Another address is another certificate, and other kubeconfigs.
    let moved = credentials::ensure(directory.path(), Ipv4Addr::new(100, 72, 16, 10), now).unwrap();
    assert_eq!(moved.written, 2 + 4);

    let later = now.saturating_add(8400.hours()).unwrap();
    let renewed = credentials::ensure(directory.path(), ADDRESS, later).unwrap();
    assert_eq!((renewed.renewed.len(), renewed.written), (11, 11 * 2 + 4));
    assert!(renewed.renewed.contains(&"etcd-server".to_owned()), "{:?}", renewed.renewed);
    // What was made while the clock was wrong is not valid yet.
    assert_eq!(credentials::ensure(directory.path(), ADDRESS, now).unwrap().renewed.len(), 11);
    assert_eq!(fs::read_to_string(directory.path().join("pki/ca.crt")).unwrap(), authority);
    let mode = fs::metadata(directory.path().join("pki/ca.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

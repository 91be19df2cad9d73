use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use hangar_parts::Set;
use jiff::{Timestamp, ToSpan};

use super::*;
use crate::addresses::NODE_POD_RANGE;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(100, 72, 0, 10);

#[test]
fn static_pods() {
    let options =
        control_plane::Options { address: ADDRESS, kubernetes: Set::Kubernetes134, etcd: Set::Etcd36 };
    let (first, second) =
        (control_plane::first_manifests(&options), control_plane::second_manifests(&options));
    for (name, manifest) in first.into_iter().chain(second) {
        insta::assert_yaml_snapshot!(name.trim_end_matches(".yaml"), manifest);
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
    let authority = fs::read_to_string(directory.path().join("pki/ca.crt")).unwrap();
    let other = fs::read(directory.path().join("pki/etcd/server.key")).unwrap();
    fs::write(directory.path().join("pki/apiserver.key"), other).unwrap();
    assert_eq!(credentials::ensure(directory.path(), ADDRESS, now).unwrap().written, 2);

    // Another address is another certificate, and other kubeconfigs.
    let moved = credentials::ensure(directory.path(), Ipv4Addr::new(100, 72, 16, 10), now).unwrap();
    assert_eq!(moved.written, 2 + 4);

    let later = now.saturating_add(8400.hours()).unwrap();
    assert!(credentials::ensure(directory.path(), ADDRESS, later).unwrap().written > 20);
    assert_eq!(fs::read_to_string(directory.path().join("pki/ca.crt")).unwrap(), authority);
    let mode = fs::metadata(directory.path().join("pki/ca.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

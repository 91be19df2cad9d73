use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use hangar_parts::Set;
use jiff::{Timestamp, ToSpan};

use super::control_plane::Component;
use super::*;
use crate::layout::Layout;

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
    insta::assert_yaml_snapshot!("network", kubelet::network(Node::FIRST.pod_range()));
    insta::assert_snapshot!("masquerade", kubelet::masquerade(Node::FIRST.pod_range()));
}

#[test]
fn credentials_are_made_once_and_renewed_when_due() {
    let environment = tempfile::tempdir().unwrap();
    let layout = Layout::new(environment.path());
    let directory = layout.kubernetes();
    let ensure = |address, now| credentials::ensure(&layout, 1, address, now).unwrap();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let first = ensure(ADDRESS, now);
    assert!(first.written > 20);
    let second = ensure(ADDRESS, now);
    assert_eq!(second.written, 0);
    assert_eq!(first.administrator, second.administrator);

    // A key that does not fit its certificate is what a crash between the two leaves.
    assert!(first.renewed.is_empty() && second.renewed.is_empty());
    let authority = fs::read_to_string(directory.join("pki/ca.crt")).unwrap();
    let other = fs::read(directory.join("pki/etcd/server.key")).unwrap();
    fs::write(directory.join("pki/apiserver.key"), other).unwrap();
    let repaired = ensure(ADDRESS, now);
    assert_eq!((repaired.written, repaired.renewed), (2, vec!["apiserver".to_owned()]));

    // Another address is another certificate, and other kubeconfigs.
    let moved = ensure(Ipv4Addr::new(100, 72, 16, 10), now);
    assert_eq!(moved.written, 2 + 4);

    let later = now.saturating_add(8400.hours()).unwrap();
    let renewed = ensure(ADDRESS, later);
    assert_eq!((renewed.renewed.len(), renewed.written), (11, 11 * 2 + 4));
    assert!(renewed.renewed.contains(&"etcd-server".to_owned()), "{:?}", renewed.renewed);
    // What was made while the clock was wrong is not valid yet.
    assert_eq!(ensure(ADDRESS, now).renewed.len(), 11);
    assert_eq!(fs::read_to_string(directory.join("pki/ca.crt")).unwrap(), authority);
    let mode = fs::metadata(directory.join("pki/ca.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_further_node_gets_what_its_kubelet_needs_and_no_other_key() {
    let environment = tempfile::tempdir().unwrap();
    let layout = Layout::new(environment.path());
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    credentials::ensure(&layout, 1, ADDRESS, now).unwrap();
    let more = credentials::ensure(&layout, 2, ADDRESS, now).unwrap();
    assert_eq!((more.written, more.renewed.len()), (2 + 3, 0), "a pair, and three files in the node");
    let second = layout.node(Node::some(2).last().unwrap()).kubernetes();
    let mut files: Vec<String> = Vec::new();
    for directory in [second.clone(), second.join("pki")] {
        let entries = fs::read_dir(directory).unwrap().flatten().filter(|entry| entry.path().is_file());
        files.extend(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    }
    files.sort();
    assert_eq!(files, ["ca.crt", "kubelet.conf", "provisioner.conf"]);
    let kubelet = fs::read_to_string(second.join("kubelet.conf")).unwrap();
    assert!(kubelet.contains("system:node:management-2"), "{kubelet}");
}

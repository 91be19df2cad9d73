//! Tests that the programs in the cache are the real ones and report their true version. Builds what is missing.

#![allow(clippy::unwrap_used, reason = "a test's helper functions are tests too")]

use std::path::Path;
use std::process::Command;

use hangar_parts::{Parts, Set};

/// What the program prints, or nothing if an override stands for it: overrides are used as they are.
fn output_of(set: Set, program: &str, arguments: &[&str]) -> Option<String> {
    let parts = Parts::from_env().unwrap();
    parts.ensure_programs(&[(set, program)]).unwrap();
    let path = parts.program(set, program).unwrap();
    if !path.starts_with(parts.cache().root()) {
        return None;
    }
    let output = Command::new(&path).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", path.display());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn etcd_says_its_version() {
    for (program, arguments, expected) in [
        ("etcd", &["--version"][..], "etcd Version: 3.6.16"),
        ("etcdctl", &["version"], "etcdctl version: 3.6.16"),
        ("etcdutl", &["version"], "etcdutl version: 3.6.16"),
    ] {
        let text = output_of(Set::Etcd36, program, arguments);
        assert!(text.as_ref().is_none_or(|text| text.contains(expected)), "{text:?}");
    }
}

#[test]
fn kubernetes_says_its_version() {
    let version = Set::Kubernetes134.version();
    for program in ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"] {
        let text = output_of(Set::Kubernetes134, program, &["--version"]);
        assert!(text.as_ref().is_none_or(|text| text.trim() == format!("Kubernetes {version}")), "{text:?}");
    }
    let text = output_of(Set::Kubernetes134, "kubeadm", &["version", "-o", "short"]);
    assert!(text.as_ref().is_none_or(|text| text.trim() == version), "{text:?}");
}

#[test]
fn kubectl_says_its_version() {
    if let Some(text) = output_of(Set::Kubernetes134, "kubectl", &["version", "--client", "-o", "json"]) {
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        let client = &answer["clientVersion"];
        assert_eq!(client["gitVersion"], Set::Kubernetes134.version());
        assert_eq!((&client["major"], &client["minor"]), (&"1".into(), &"34".into()));
        assert_eq!(client["gitTreeState"], "clean");
    }
}

#[test]
fn upstream_schemas_are_there() {
    let parts = Parts::from_env().unwrap();
    parts.ensure(&[Set::UpstreamCrds]).unwrap();
    let files = parts.files(Set::UpstreamCrds).unwrap();
    for name in [
        "cluster-api/core/cluster.x-k8s.io_clusters.yaml",
        "cluster-api/bootstrap-kubeadm/bootstrap.cluster.x-k8s.io_kubeadmconfigs.yaml",
        "cluster-api/control-plane-kubeadm/controlplane.cluster.x-k8s.io_kubeadmcontrolplanes.yaml",
        "cluster-api-provider-openstack/infrastructure.cluster.x-k8s.io_openstackclusters.yaml",
        "openstack-resource-controller/openstack.k-orc.cloud_images.yaml",
    ] {
        assert!(Path::new(&files).join(name).is_file(), "{name}");
    }
}

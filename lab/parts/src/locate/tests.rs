use std::fs;

use super::*;

fn put(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

#[test]
fn the_first_override_wins_and_a_set_directory_wins_over_a_flat_one() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    put(&first.join("etcd"));
    put(&second.join("etcd"));
    put(&second.join("kube-apiserver"));
    put(&second.join("kubernetes-1.33/kube-apiserver"));
    let parts = Parts::new(Cache::new(directory.path().join("cache")))
        .with_overrides(vec![first.clone(), second.clone()]);
    assert_eq!(parts.program(Set::Etcd36, "etcd").unwrap(), first.join("etcd"));
    assert_eq!(parts.program(Set::Kubernetes134, "kube-apiserver").unwrap(), second.join("kube-apiserver"));
    let older = parts.program(Set::Kubernetes133, "kube-apiserver").unwrap();
    assert_eq!(older, second.join("kubernetes-1.33/kube-apiserver"));
}

#[test]
fn a_flat_override_never_stands_for_another_minor() {
    let directory = tempfile::tempdir().unwrap();
    put(&directory.path().join("kube-apiserver"));
    let parts = Parts::new(Cache::new(directory.path().join("cache")))
        .with_overrides(vec![directory.path().to_owned()]);
    let error = parts.program(Set::Kubernetes133, "kube-apiserver").unwrap_err();
    assert!(error.to_string().contains("cargo xtask tools kubernetes-1.33"), "{error}");
}

#[test]
fn overridden_programs_are_not_built() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["etcd", "kube-apiserver", "kubectl"] {
        put(&directory.path().join("assets").join(name));
    }
    let parts = Parts::new(Cache::new(directory.path().join("cache")))
        .with_overrides(vec![directory.path().join("assets")])
        .with_go(directory.path().join("no-go-here"));
    let wanted = [(Set::Etcd36, "etcd"), (Set::Kubernetes134, "kube-apiserver")];
    assert_eq!(parts.ensure_programs(&wanted).unwrap(), []);
    assert!(!parts.is_overridden(Set::Etcd36), "etcdctl is not there");
    assert!(matches!(parts.ensure(&[Set::Etcd36]), Err(Error::GoMissing { .. })));
    assert!(matches!(parts.ensure_programs(&[(Set::Etcd36, "etcdctl")]), Err(Error::GoMissing { .. })));
}

#[test]
fn unknown_programs_and_missing_files_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let parts = Parts::new(Cache::new(directory.path()));
    assert!(matches!(parts.program(Set::Etcd36, "kubelet"), Err(Error::UnknownProgram { .. })));
    assert!(matches!(parts.files(Set::UpstreamCrds), Err(Error::NotBuilt { .. })));
}

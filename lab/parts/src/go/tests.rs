use super::*;
use crate::fake_go;

#[test]
fn versions_compare_as_numbers() {
    assert!(numbers("1.9.1") < numbers("1.24"));
    assert!(numbers("1.26.10") > numbers("1.26.9"));
    assert_eq!(numbers("1.27rc1"), (1, 27, 0));
    assert_eq!(numbers("1.26.8 X:nodwarf5"), (1, 26, 8));
    assert_eq!(numbers("devel"), (0, 0, 0));
}

#[test]
fn no_go_is_one_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = Go::find(&directory.path().join("go"), &[Set::Kubernetes134, Set::Etcd36]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(Set::Etcd36.recipe().minimum_go()), "the highest minimum of the sets: {text}");
    assert!(text.contains("no `go` is on the PATH"), "{text}");
}

#[test]
fn an_old_go_is_one_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let go = fake_go::write(directory.path(), "echo go1.19.8");
    let text = Go::find(&go, &[Set::Etcd36]).unwrap_err().to_string();
    assert!(text.contains(Set::Etcd36.recipe().minimum_go()) && text.contains("go1.19.8"), "{text}");
}

#[test]
fn a_missing_c_compiler_is_told_before_any_build() {
    let directory = tempfile::tempdir().unwrap();
    let go = fake_go::write(directory.path(), "echo go1.99.1; echo /no/such/cc -m64");
    let text = Go::find(&go, &[Set::Etcd36, Set::Flannel]).unwrap_err().to_string();
    assert!(text.contains("flannel needs a C compiler, but no `/no/such/cc`"), "{text}");
    assert!(Go::find(&go, &[Set::Etcd36]).is_ok());
}

#[test]
fn a_new_go_and_one_that_makes_no_sense() {
    let directory = tempfile::tempdir().unwrap();
    let go = fake_go::write(directory.path(), "echo go1.99.1");
    assert_eq!(Go::find(&go, &[Set::Etcd36]).unwrap().version, "go1.99.1");
    let go = fake_go::write(directory.path(), "echo what >&2; exit 1");
    assert!(matches!(Go::find(&go, &[Set::Etcd36]), Err(Error::GoAnswer { .. })));
}

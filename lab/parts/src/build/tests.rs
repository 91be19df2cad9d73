use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::cache::State;
use crate::error::Error;
use crate::fake_go;

fn ensure(cache: &Cache, go: &Path, sets: &[Set]) -> Result<Vec<BuildResult>> {
    super::ensure(cache, go, sets, &mut Audience::Everybody)
}

/// A `go` that answers for its version and does what the script says when asked to build.
fn builder(directory: &Path, build: &str) -> PathBuf {
    let arguments = "while [ \"$1\" != -o ]; do shift; done; out=$2";
    fake_go::write(
        directory,
        &format!("case \"$1\" in\nenv) echo go1.99.0;;\nbuild) {arguments}\n{build}\n;;\nesac"),
    )
}

const GOOD: &str = "echo kept > \"$GOCACHE.seen\"; for name in server etcdctl etcdutl; do echo program > \"$out/$name\"; done";

#[test]
fn a_build_is_committed_renamed_and_not_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let results = ensure(&cache, &builder(directory.path(), GOOD), &[Set::Etcd36]).unwrap();
    assert!(matches!(&results[..], [BuildResult::Built(Set::Etcd36, stamp)] if stamp.go == "go1.99.0"));
    let recipe = Set::Etcd36.recipe();
    assert!(cache.program(recipe, "etcd").is_file());
    assert!(!cache.program(recipe, "server").exists());
    assert!(!cache.go_directory(recipe).exists());
    // The second run needs no Go at all.
    let results = ensure(&cache, &directory.path().join("absent"), &[Set::Etcd36]).unwrap();
    assert_eq!(results, [BuildResult::Present(Set::Etcd36)]);
}

/// Tests are built one by one, and under their own names.
#[test]
fn tests_are_programs_too() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let recipe = Set::Conformance134.recipe();
    let sum = recipe.pinned_sum(recipe.module, recipe.version).unwrap();
    let source = directory.path().join("source");
    for files in recipe.files {
        let path = source.join(files.source);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content").unwrap();
    }
    let find = "while [ \"$1\" != -o ]; do shift; done; out=$2";
    let go = fake_go::write(
        directory.path(),
        &format!(
            "case \"$1 $2\" in\n'env GOVERSION') echo go1.99.0;;\n\
             'build -v') {find}; shift 2; for package; do echo main > \"$out/${{package##*/}}\"; done;;\n\
             'test -c') {find}; echo tests > \"$out\";;\n\
             'mod download') echo '{{\"Dir\": \"{}\", \"Sum\": \"{sum}\"}}';;\nesac",
            source.display()
        ),
    );
    ensure(&cache, &go, &[Set::Conformance134]).unwrap();
    let read = |name: &str| fs::read_to_string(cache.program(recipe, name)).unwrap();
    assert_eq!(
        (read("e2e.test").trim(), read("agnhost").trim(), read("nnp").trim()),
        ("tests", "main", "main")
    );
    assert!(cache.set_directory(recipe).join("files/localhost.crt").is_file());
}

#[test]
fn a_failed_build_is_told_kept_and_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let script = "mkdir -p \"$GOCACHE\"; echo some/package >&2; echo 'main.go:1:1: broken' >&2; touch \"$out/server\"; exit 2";
    let text = ensure(&cache, &builder(directory.path(), script), &[Set::Etcd36]).unwrap_err().to_string();
    assert!(text.contains("main.go:1:1: broken") && !text.contains("some/package"), "{text}");
    assert_eq!(cache.state(Set::Etcd36), State::Unfinished);
    let recipe = Set::Etcd36.recipe();
    assert!(cache.go_directory(recipe).join("build").is_dir(), "Go's caches are kept for the next run");
    ensure(&cache, &builder(directory.path(), GOOD), &[Set::Etcd36]).unwrap();
    assert!(matches!(cache.state(Set::Etcd36), State::Complete(_)));
}

#[test]
fn a_killed_build_never_looks_done() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    // All programs are written, and then `go` dies before it says that it is done.
    let script = format!("{GOOD}; kill -9 $$");
    let error = ensure(&cache, &builder(directory.path(), &script), &[Set::Etcd36]).unwrap_err();
    assert!(matches!(error, Error::GoFailed { .. }));
    assert_eq!(cache.state(Set::Etcd36), State::Unfinished);
    assert!(!cache.set_directory(Set::Etcd36.recipe()).exists());
}

#[test]
fn a_listener_hears_every_set_and_which_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let go = builder(directory.path(), GOOD);
    let mut said = Vec::new();
    let mut tell = |text: &str| said.push(text.to_owned());
    let sets = [Set::Etcd36, Set::Etcd37];
    super::ensure(&cache, &go, &sets, &mut Audience::Listener(&mut tell)).unwrap();
    assert!(said[0].starts_with("etcd-3.6 v3.6.16 (1 of 2) [0:0"), "{said:?}");
    assert!(said[0].ends_with("] building") && said[1].contains("] done in 0:0"), "{said:?}");
    assert!(said[2].starts_with("etcd-3.7 v3.7.3 (2 of 2) "), "{said:?}");
    said.clear();
    let mut tell = |text: &str| said.push(text.to_owned());
    super::ensure(&cache, &go, &sets, &mut Audience::Listener(&mut tell)).unwrap();
    assert_eq!(said, Vec::<String>::new());
}

/// `go` may outlive a builder that was killed, and writes into the staging directory until it ends.
#[test]
fn a_go_that_outlives_its_builder_keeps_others_away() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let end = directory.path().join("end");
    // Not its standard input itself, which a shell takes away from what runs in the background.
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", end.display());
    let script = format!("exec 3<&0\n({wait}) >/dev/null 2>&1 &\nexit 1");
    ensure(&cache, &builder(directory.path(), &script), &[Set::Etcd36]).unwrap_err();
    let mut waits = 0;
    let lock = cache.lock(Set::Etcd36.recipe(), || {
        waits += 1;
        fs::write(&end, "").unwrap();
    });
    lock.unwrap();
    assert!(waits > 0, "the lock went with the builder");
}

#[test]
fn what_a_builder_left_after_its_commit_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let recipe = Set::Etcd36.recipe();
    let go = builder(directory.path(), GOOD);
    ensure(&cache, &go, &[Set::Etcd36]).unwrap();
    let leave = || fs::create_dir_all(cache.go_directory(recipe).join("build")).unwrap();
    leave();
    let lock = cache.lock(recipe, || {}).unwrap();
    ensure(&cache, &go, &[Set::Etcd36]).unwrap();
    assert!(cache.go_directory(recipe).exists(), "somebody is at work");
    drop(lock);
    assert_eq!(ensure(&cache, &go, &[Set::Etcd36]).unwrap(), [BuildResult::Present(Set::Etcd36)]);
    assert!(!cache.go_directory(recipe).exists());
}

#[test]
fn directories_and_files_are_copied_writable() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    fs::create_dir_all(source.join("nested")).unwrap();
    fs::write(source.join("nested/one.yaml"), "one").unwrap();
    fs::set_permissions(source.join("nested/one.yaml"), fs::Permissions::from_mode(0o444)).unwrap();
    let target = directory.path().join("target");
    copy(&source, &target).unwrap();
    copy(&source.join("nested/one.yaml"), &target.join("deep/two.yaml")).unwrap();
    for name in ["nested/one.yaml", "deep/two.yaml"] {
        assert_eq!(fs::read_to_string(target.join(name)).unwrap(), "one");
        assert!(!fs::metadata(target.join(name)).unwrap().permissions().readonly());
    }
}

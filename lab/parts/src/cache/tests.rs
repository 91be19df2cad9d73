use super::*;

fn stamp() -> Stamp {
    Stamp { set: "etcd-3.6".into(), version: "v3.6.16".into(), go: "go1.26.8".into(), seconds: 25, bytes: 1 }
}

/// What a build does, without Go.
fn fill(cache: &Cache, recipe: &Recipe, lock: &SetLock) {
    let staging = cache.begin(recipe, lock).unwrap();
    fs::create_dir_all(staging.join("bin")).unwrap();
    fs::create_dir_all(cache.go_directory(recipe)).unwrap();
    for program in recipe.programs {
        fs::write(staging.join("bin").join(program.name), "").unwrap();
    }
}

fn variables<'a>(given: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<PathBuf> + 'a {
    |name| given.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
}

#[test]
fn the_directory_is_the_named_one_then_the_users() {
    let root = |given: &[(&str, &str)]| Cache::from_variables(variables(given)).map(|cache| cache.root);
    let home = ("HOME", "/home/someone");
    let xdg = ("XDG_CACHE_HOME", "/xdg");
    assert_eq!(root(&[("HANGAR_CACHE", "/named"), xdg, home]).unwrap(), Path::new("/named"));
    assert_eq!(root(&[("HANGAR_CACHE", ""), xdg, home]).unwrap(), Path::new("/xdg/hangar"));
    assert_eq!(
        root(&[("XDG_CACHE_HOME", "relative"), home]).unwrap(),
        Path::new("/home/someone/.cache/hangar")
    );
    assert!(root(&[("HANGAR_CACHE", "relative")]).unwrap().is_absolute());
    assert!(matches!(root(&[]), Err(Error::NoCacheDirectory)));
}

#[test]
fn a_set_counts_only_once_it_is_committed() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path());
    let recipe = Set::Etcd36.recipe();
    assert_eq!(cache.state(Set::Etcd36), State::Absent);
    let lock = cache.lock(recipe, || {}).unwrap();
    fill(&cache, recipe, &lock);
    assert_eq!(cache.state(Set::Etcd36), State::Unfinished);
    cache.commit(recipe, &stamp(), &lock).unwrap();
    assert_eq!(cache.state(Set::Etcd36), State::Complete(stamp()));
    assert!(cache.program(recipe, "etcd").is_file());
    assert!(!cache.go_directory(recipe).exists(), "Go's caches are dropped");
}

#[test]
fn a_set_with_a_missing_program_is_built_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path());
    let recipe = Set::Etcd36.recipe();
    let lock = cache.lock(recipe, || {}).unwrap();
    fill(&cache, recipe, &lock);
    cache.commit(recipe, &stamp(), &lock).unwrap();
    fs::remove_file(cache.program(recipe, "etcdutl")).unwrap();
    assert_eq!(cache.state(Set::Etcd36), State::Absent);
    fill(&cache, recipe, &lock);
    cache.commit(recipe, &stamp(), &lock).unwrap();
    assert_eq!(cache.state(Set::Etcd36), State::Complete(stamp()));
}

#[test]
fn a_commit_removes_older_builds_of_the_same_set_only() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path());
    let tools = directory.path().join("tools");
    let other_sets = ["kube-vip-cloud-provider-v0.0.12-0123456789ab", "kubernetes-1.33-v1.33.0-0123456789ab"];
    let older = ["kube-vip-v0.9.1-0123456789ab", "kube-vip-v0.9.0-0123456789ab"];
    for name in other_sets.iter().chain(&older) {
        fs::create_dir_all(tools.join(name)).unwrap();
    }
    let recipe = Set::KubeVip.recipe();
    let lock = cache.lock(recipe, || {}).unwrap();
    fill(&cache, recipe, &lock);
    cache.commit(recipe, &stamp(), &lock).unwrap();
    assert!(other_sets.iter().all(|name| tools.join(name).is_dir()));
    assert!(older.iter().all(|name| !tools.join(name).exists()));
}

#[test]
fn an_older_build_stays_as_long_as_somebody_links_its_programs() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let older = cache.tools().join("kube-vip-v0.9.0-0123456789ab");
    fs::create_dir_all(older.join("bin")).unwrap();
    fs::write(older.join("bin/kube-vip"), "").unwrap();
    let link = directory.path().join("environment");
    fs::hard_link(older.join("bin/kube-vip"), &link).unwrap();
    let recipe = Set::KubeVip.recipe();
    let lock = cache.lock(recipe, || {}).unwrap();
    let commit = || {
        fill(&cache, recipe, &lock);
        cache.commit(recipe, &stamp(), &lock).unwrap();
    };
    commit();
    assert!(older.is_dir());
    fs::remove_file(&link).unwrap();
    commit();
    assert!(!older.exists());
}

#[test]
fn a_second_builder_waits_for_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path());
    let recipe = Set::Etcd36.recipe();
    let first = cache.lock(recipe, || panic!("nobody holds it")).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let second = std::thread::spawn({
        let cache = cache.clone();
        move || cache.lock(recipe, || sender.send(()).unwrap()).map(drop)
    });
    receiver.recv().unwrap();
    assert!(!second.is_finished());
    drop(first);
    second.join().unwrap().unwrap();
}

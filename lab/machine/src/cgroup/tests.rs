//! Tests of the v2 layout on a real cgroup2 mount, as far as a host with its controllers on v1 can show it.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use super::*;

const PLACE: &str = "HANGAR_TEST_CGROUP";

fn unified(place: &Path) -> Group {
    let hierarchy = Hierarchy { version: Version::Two, mount: place.to_owned(), controllers: Vec::new() };
    Group::new(Hierarchies { all: vec![hierarchy] }, "machine")
}

/// What the first process of a machine does, in a process of its own. Not a test by itself.
#[test]
fn first_process_of_a_unified_group() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let group = unified(Path::new(&place));
    group.enter().unwrap();
    group.settle().unwrap();
    group.visit().unwrap();
    println!("\nsettled in {}", fs::read_to_string("/proc/self/cgroup").unwrap().replace('\n', " "));
    std::thread::sleep(Duration::from_mins(10));
}

#[test]
fn unified_groups_keep_processes_in_a_leaf() {
    let found = Hierarchies::discover().unwrap();
    let two = found.all.iter().find(|one| one.version == Version::Two);
    let mount = &two.expect("this test needs a mounted cgroup2").mount;
    // Below a group of our own, so that the host's controllers are not handed down for a test.
    let place = mount.join(format!("hangar-test-{}", std::process::id()));
    fs::create_dir(&place).expect("this test needs root");
    let group = unified(&place);
    group.create().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cgroup::tests::first_process_of_a_unified_group", "--nocapture"])
        .env(PLACE, &place)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.into_iter().find(|line| line.starts_with("settled")).unwrap_or_default();
    assert!(line.contains("/machine/supervisor "), "{line:?}");
    assert_eq!(group.processes().unwrap(), BTreeSet::from([child.id().cast_signed()]));
    assert!(group.holds(child.id().cast_signed()));
    assert!(!group.holds(std::process::id().cast_signed()));
    // As kubelet does: groups beside the leaf.
    fs::create_dir_all(place.join("machine/kubepods/pod")).unwrap();
    group.kill_all(Duration::from_secs(10)).unwrap();
    assert!(!child.wait().unwrap().success());
    group.remove(Duration::from_secs(10)).unwrap();
    assert!(!group.exists());
    fs::remove_dir(&place).unwrap();
}

/// A host with systemd: its root group hands down some controllers, and what is handed down already is left alone.
#[test]
fn only_what_is_missing_is_handed_down() {
    let available = "cpuset cpu io memory hugetlb pids rdma misc\n";
    assert_eq!(to_hand_down(available, "cpu io memory pids\n"), ["cpuset", "hugetlb"]);
    assert_eq!(
        to_hand_down(available, ""),
        ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"],
        "neither rdma nor misc is anything to kubelet"
    );
    assert_eq!(to_hand_down("cpu", "cpu"), [""; 0]);
    assert_eq!(to_hand_down("", ""), [""; 0]);
}

/// The files of a group are made by the kernel; where they are missing nothing is taken for done.
#[test]
fn a_controller_that_cannot_be_handed_down_is_named() {
    let place = tempfile::tempdir().unwrap();
    assert!(hand_down(place.path()).unwrap_err().to_string().contains("cgroup.controllers"));
    fs::write(place.path().join("cgroup.controllers"), "cpu pids").unwrap();
    fs::write(place.path().join("cgroup.subtree_control"), "cpu").unwrap();
    hand_down(place.path()).unwrap();
    assert_eq!(fs::read_to_string(place.path().join("cgroup.subtree_control")).unwrap(), "+pids");
    let words = cannot_enable("cpu", place.path());
    assert!(words.contains("the cpu controller") && words.contains("container"), "{words}");
}

/// A path that is no directory stands for one that cannot be listed.
#[test]
fn a_group_that_cannot_be_listed_is_not_empty() {
    let place = tempfile::tempdir().unwrap();
    let group = unified(place.path());
    assert!(group.processes().unwrap().is_empty(), "one that does not exist has none");
    fs::write(place.path().join("machine"), "").unwrap();
    assert!(group.processes().is_err());
    assert!(group.kill_all(Duration::ZERO).is_err());
    assert!(group.remove(Duration::ZERO).is_err());
}

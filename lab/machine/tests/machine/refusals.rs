//! What cannot work is refused with one clear line, and nothing is left of it.

use std::{os::unix::process::CommandExt, process::Command};

use hangar_machine::{Environment, Error, MachineSpec, SupervisorCommand, net::Attachment};

use crate::support::{PROGRAM, bench, fabric, machine, name, sh, spec};

#[test]
fn a_name_can_be_used_once() {
    let bench = bench();
    let environment = bench.environment("taken");
    let fabric = fabric(&environment, 51);
    let first = machine(&environment, "w1", &fabric, 10);
    let error = environment.create_machine(spec("w1", &fabric, 11)).unwrap_err();
    assert_eq!(error.to_string(), "machine \"w1\" exists already in environment taken: start or delete it");
    assert_eq!(sh(&first, "hostname"), "w1", "the refused one harmed the first");
    first.delete().unwrap();
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

#[test]
fn failed_creates_leave_nothing() {
    let bench = bench();
    let environment = bench.environment("failing");
    let mut no_network = MachineSpec::new(name("w1"));
    no_network.nics.push(hangar_machine::net::Nic {
        name: "eth0".to_owned(),
        attachment: Attachment { netns: "/run/no/such/netns".into(), bridge: "br0".to_owned() },
        addresses: vec!["100.120.52.10/24".parse().unwrap()],
        routes: Vec::new(),
        mac: None,
        mtu: None,
    });
    assert!(environment.create_machine(no_network).unwrap_err().to_string().contains("is not up"));

    // Fails in the middle of building the root: a file is in the way of a directory.
    let mut blocked = MachineSpec::new(name("w2"));
    blocked.files.push(hangar_machine::FileContent {
        path: "/etc/hostname/below".into(),
        content: String::new(),
        mode: 0o644,
        only_if_missing: false,
    });
    let error = environment.create_machine(blocked).unwrap_err();
    assert!(matches!(error, Error::Boot { .. }), "{error}");
    assert!(error.to_string().contains("/etc/hostname"), "{error}");

    for (program, part) in [("/bin/false", "without a message"), ("/no/such/program", "/no/such/program")] {
        let supervisor = SupervisorCommand { program: program.into(), arguments: Vec::new() };
        let broken = Environment::new(bench.state.path(), name("broken"), supervisor).unwrap();
        let error = broken.create_machine(MachineSpec::new(name("w1"))).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(environment.machines().unwrap().len(), 0);
    bench.finish();
}

#[test]
fn needs_root() {
    let bench = bench();
    // Where a user without privileges may read.
    let copy = tempfile::Builder::new().prefix("hangar-").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(copy.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = copy.path().join("hangar-machine");
    std::fs::copy(PROGRAM, &program).unwrap();
    let output = Command::new(program)
        .args(["--state", "/tmp/hangar-nobody", "create", "w1"])
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr).trim(),
        "error: machines need root (user id 0) with CAP_SYS_ADMIN and CAP_NET_ADMIN"
    );
    assert!(!std::path::Path::new("/tmp/hangar-nobody").exists());
    bench.finish();
}

#[test]
fn a_full_disk_is_said_before_the_start() {
    let bench = bench();
    // A small file system of our own, in a namespace of our own.
    let script = "mount -t tmpfs -o size=4m none \"$1\" && exec \"$2\" --state \"$1\" create w1";
    let target = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(target.path())
        .arg(PROGRAM)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("out of disk") && error.contains("128 MiB are needed"), "{error}");
    assert_eq!(error.trim().lines().count(), 1, "{error}");
    bench.finish();
}

#[test]
fn missing_control_groups_are_said() {
    let bench = bench();
    let state = tempfile::tempdir_in("/var/tmp").unwrap();
    let script = "umount -R /sys/fs/cgroup && exec \"$2\" --state \"$1\" create w1";
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(state.path())
        .arg(PROGRAM)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no cgroup hierarchy is mounted"), "{error}");
    bench.finish();
}

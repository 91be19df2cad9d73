//! Tests what a machine looks like from inside.

use std::{collections::BTreeMap, fs, path::Path};

use hangar_machine::{Bind, Exec, FileContent, Service, host};

use crate::support::{bench, fabric, host_file, machine, name, sh, spec};

#[test]
fn is_a_system_of_its_own() {
    let bench = bench();
    let environment = bench.environment("basics");
    let fabric = fabric(&environment, 11);
    let machine = machine(&environment, "w1", &fabric, 10);

    assert_eq!(sh(&machine, "hostname"), "w1");
    assert_eq!(sh(&machine, "cat /etc/hostname"), "w1");
    assert!(sh(&machine, "cat /etc/hosts").contains("100.120.11.10 w1"));
    assert_eq!(sh(&machine, "cat /proc/1/comm"), "supervisor");
    let processes = sh(&machine, "ls -d /proc/[0-9]* | wc -l").parse::<u32>().unwrap();
    assert!(processes < 6, "{processes} processes are visible");
    assert_eq!(sh(&machine, "cat /etc/machine-id").len(), 32);
    assert_ne!(sh(&machine, "cat /etc/machine-id"), host_file("/etc/machine-id").trim());
    // Writing to its own /etc and /usr is not writing to the host's.
    sh(&machine, "echo x > /etc/hangar-probe; echo x > /usr/hangar-probe; echo x > /var/hangar-probe");
    for path in ["/etc/hangar-probe", "/usr/hangar-probe", "/var/hangar-probe"] {
        assert!(!Path::new(path).exists(), "{path} reached the host");
    }
    machine.delete().unwrap();
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

#[test]
fn sees_no_device_of_the_host() {
    let bench = bench();
    let environment = bench.environment("devices");
    let machine = environment.create_machine(hangar_machine::MachineSpec::new(name("w1"))).unwrap();
    assert_eq!(sh(&machine, "find /dev -type b"), "", "block devices are visible");
    let devices = sh(&machine, "find /dev -type c -printf '%P\n' | sort | tr '\\n' ' '");
    assert_eq!(devices, "full fuse kmsg net/tun null pts/ptmx random tty urandom zero");
    sh(
        &machine,
        "echo x > /dev/null && head -c 4 /dev/urandom >/dev/null && touch /dev/shm/x && test -d /dev/mqueue",
    );
    assert!(!Path::new("/dev/shm/x").exists());
    machine.delete().unwrap();
    bench.finish();
}

#[test]
fn sees_its_own_control_groups_and_settings() {
    let bench = bench();
    let environment = bench.environment("kernel");
    let machine = environment.create_machine(hangar_machine::MachineSpec::new(name("w1"))).unwrap();
    for line in sh(&machine, "cat /proc/self/cgroup").lines() {
        assert!(line.ends_with(":/") || line.ends_with("/supervisor"), "{line}");
    }
    if !host::abilities().unwrap().cgroup_v2 {
        assert_eq!(sh(&machine, "cat /sys/fs/cgroup/pids/cgroup.procs | head -1"), "1");
        sh(&machine, "mkdir /sys/fs/cgroup/memory/kubepods");
    }
    // kubelet's settings are private files, all others cannot be changed, the network's can.
    let before = host_file("/proc/sys/kernel/panic");
    sh(&machine, "echo 77 > /proc/sys/kernel/panic");
    assert_eq!(sh(&machine, "cat /proc/sys/kernel/panic"), "77");
    assert_eq!(host_file("/proc/sys/kernel/panic"), before);
    let refused = machine.exec(&Exec::new(["/bin/sh", "-c", "echo 1 > /proc/sys/kernel/sysrq"])).unwrap();
    assert!(!refused.status.success());
    assert_eq!(sh(&machine, "cat /proc/sys/net/ipv4/ip_forward"), "1");
    sh(&machine, "echo 0 > /proc/sys/net/ipv4/ip_forward");
    // User-namespaced pods mount their own proc, which the kernel allows only beside a clean one.
    sh(&machine, "unshare --user --map-root-user --mount --pid --fork mount -t proc proc /media");
    machine.delete().unwrap();
    bench.finish();
}

#[test]
fn masked_directories_are_empty_and_writable() {
    let bench = bench();
    let environment = bench.environment("masks");
    // Stands for /etc/cloud, which not every host has: a directory with something in it.
    let host_entries = fs::read_dir("/etc/apt").map(Iterator::count).unwrap_or_default();
    assert!(host_entries > 0, "this test wants a host with files in /etc/apt");
    let mut spec = hangar_machine::MachineSpec::new(name("w1"));
    spec.masks.insert("/etc/apt".into());
    assert!(spec.masks.contains(Path::new("/etc/cloud")) && spec.masks.contains(Path::new("/var/lib/cloud")));
    let machine = environment.create_machine(spec).unwrap();
    assert_eq!(sh(&machine, "ls -A /etc/apt"), "");
    assert_eq!(sh(&machine, "ls -A /var/tmp"), "", "the host's /var/tmp, where the state is, is visible");
    assert_eq!(sh(&machine, "ls -A /etc/cloud /var/lib/cloud 2>/dev/null | grep -v :$ || true"), "");
    sh(&machine, "echo own > /etc/apt/own; echo own > /var/tmp/own");
    machine.restart(std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(sh(&machine, "ls -A /etc/apt /var/tmp | grep -c own"), "2");
    assert_eq!(fs::read_dir("/etc/apt").unwrap().count(), host_entries);
    machine.delete().unwrap();
    bench.finish();
}

#[test]
fn layers_binds_and_files() {
    let bench = bench();
    let environment = bench.environment("layers");
    let extra = tempfile::tempdir_in("/var/tmp").unwrap();
    let tree = extra.path().join("usr");
    fs::create_dir_all(tree.join("share")).unwrap();
    fs::write(tree.join("share/hangar-layer"), "layer").unwrap();
    let store = extra.path().join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("image"), "image").unwrap();

    let mut spec = hangar_machine::MachineSpec::new(name("w1"));
    spec.layers.usr.push(tree);
    spec.binds.push(Bind { source: store.clone(), target: "/var/lib/store".into(), read_only: true });
    spec.binds.push(Bind {
        source: store.join("image"),
        target: "/opt/deep/er/image".into(),
        read_only: false,
    });
    spec.files.push(FileContent {
        path: "/etc/deep/er/file".into(),
        content: "text".to_owned(),
        mode: 0o640,
        only_if_missing: false,
    });
    spec.services.push(Service {
        environment: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
        ..Service::new(name("greeter"), ["/bin/sh", "-c", "echo $GREETING; exec sleep 1000"])
    });
    let machine = environment.create_machine(spec).unwrap();
    assert_eq!(sh(&machine, "cat /usr/share/hangar-layer"), "layer");
    assert_eq!(sh(&machine, "cat /var/lib/store/image"), "image");
    let refused = machine.exec(&Exec::new(["/bin/sh", "-c", "echo x > /var/lib/store/new"])).unwrap();
    assert!(!refused.status.success(), "a read-only bind was written to");
    sh(&machine, "echo changed > /opt/deep/er/image");
    assert_eq!(fs::read_to_string(store.join("image")).unwrap(), "changed\n");
    assert_eq!(sh(&machine, "stat -c %a /etc/deep/er/file; cat /etc/deep/er/file"), "640\ntext");
    crate::support::eventually("the service's log", || {
        machine.logs("greeter", None).is_ok_and(|log| log == "hello\n")
    });
    machine.delete().unwrap();
    assert!(store.join("image").exists(), "deleting a machine reached through a bind");
    bench.finish();
}

#[test]
fn exec_and_files() {
    let bench = bench();
    let environment = bench.environment("exec");
    let fabric = fabric(&environment, 12);
    let machine = environment.create_machine(spec("w1", &fabric, 10)).unwrap();
    let code = |line: &str| machine.exec(&Exec::new(["/bin/sh", "-c", line])).unwrap().status.code();
    assert_eq!(code("exit 0"), Some(0));
    assert_eq!(code("exit 42"), Some(42));
    assert_eq!(code("kill -9 $$"), Some(137));
    assert_eq!(machine.exec(&Exec::new(["no-such-program"])).unwrap().status.code(), Some(127));
    let exec = Exec {
        environment: BTreeMap::from([("NAME".to_owned(), "value".to_owned())]),
        directory: Some("/usr/share".into()),
        ..Exec::new(["/bin/sh", "-c", "echo $NAME $PWD; echo oops >&2"])
    };
    let output = machine.exec(&exec).unwrap();
    assert_eq!(output.stdout, b"value /usr/share\n");
    assert_eq!(output.stderr, b"oops\n");

    machine.write_file(Path::new("/opt/new/file"), b"content", 0o644).unwrap();
    assert_eq!(sh(&machine, "cat /opt/new/file"), "content");
    assert_eq!(machine.read_file(Path::new("/opt/new/file")).unwrap(), b"content");
    machine.write_file(Path::new("/etc/secret"), b"s", 0o600).unwrap();
    assert_eq!(sh(&machine, "stat -c %a /etc/secret"), "600");
    // A link inside that points to the host's path must stay inside.
    let outside = tempfile::tempdir().unwrap();
    let trap = outside.path().display();
    sh(&machine, &format!("mkdir -p {trap}; ln -s {trap} /opt/trap"));
    machine.write_file(Path::new("/opt/trap/file"), b"inside", 0o644).unwrap();
    assert!(!outside.path().join("file").exists(), "a copy escaped to the host");
    assert_eq!(sh(&machine, &format!("cat {trap}/file")), "inside");

    machine.delete().unwrap();
    assert!(machine.exec(&Exec::new(["true"])).is_err());
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

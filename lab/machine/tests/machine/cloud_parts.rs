//! Tests what a cloud needs of machines: namespaces of its own, seeded data, links that come back, `systemctl` inside.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use hangar_machine::{Bind, FileContent, SEEDED, Service};

use crate::{
    ping,
    support::{PROGRAM, bench, eventually, fabric, machine, name, sh, spec},
};

#[test]
fn namespaces_with_a_callers_meaning_go_with_the_environment() {
    let bench = bench();
    let environment = bench.environment("custom");
    assert_eq!(environment.netns_names().unwrap(), []);
    let (one, two) = (name("network-1"), name("router-1"));
    for name in [&two, &one] {
        environment.netns(name).ensure().unwrap();
    }
    assert_eq!(environment.netns_names().unwrap(), [one.clone(), two.clone()]);
    assert!(environment.delete_netns(&one).unwrap());
    assert!(!environment.delete_netns(&one).unwrap());
    // After a restart of the host there may be a file with nothing behind it.
    fs::write(environment.netns(&one).path(), "").unwrap();
    assert!(!environment.netns(&one).exists());
    environment.delete_all().unwrap();
    assert_eq!(environment.netns_names().unwrap(), []);
    bench.finish();
}

#[test]
fn links_of_a_running_machine_come_back() {
    let bench = bench();
    let environment = bench.environment("reconnect");
    let fabric = fabric(&environment, 51);
    let machine = machine(&environment, "one", &fabric, 10);
    // When its first process began; the times of its directory in /proc are those of a look.
    let begun = || sh(&machine, "sed 's/.*) //' /proc/1/stat | cut -d ' ' -f 20");
    let before = begun();
    let port = environment.port_link(machine.name(), "eth0");
    assert!(fabric.netns().network(|network| network.delete(&port)).unwrap());
    assert!(!ping::answers_here([100, 120, 51, 10].into()));
    machine.reconnect().unwrap();
    machine.reconnect().unwrap();
    assert!(ping::answers_here([100, 120, 51, 10].into()));
    assert_eq!(begun(), before);
    environment.delete_all().unwrap();
    bench.finish();
}

#[test]
fn data_is_seeded_once_and_shared() {
    let bench = bench();
    let environment = bench.environment("seed");
    let fabric = fabric(&environment, 52);
    let source = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::create_dir(source.path().join("blobs")).unwrap();
    fs::write(source.path().join("blobs/one"), "shared").unwrap();
    fs::write(source.path().join("meta.db"), "own").unwrap();
    let mut wanted = spec("node", &fabric, 10);
    let mut reader =
        Service::new(name("reader"), ["/bin/sh", "-c", "cat /var/lib/containerd/blobs/one; sleep 1000"]);
    reader.when_exists = Some(Path::new("/var/lib/containerd").join(SEEDED));
    wanted.services.push(reader);
    let machine = environment.create_machine(wanted).unwrap();
    assert!(machine.seed("elsewhere", source.path()).is_err());
    assert!(machine.seed("containerd", source.path()).unwrap());
    assert!(!machine.seed("containerd", source.path()).unwrap());
    eventually("the service to see it", || machine.logs("reader", None).is_ok_and(|text| text == "shared"));
    let inode = |path: &Path| path.metadata().unwrap().ino();
    let data = machine.directory().join("data/containerd");
    assert_eq!(inode(&data.join("blobs/one")), inode(&source.path().join("blobs/one")));
    assert_ne!(inode(&data.join("meta.db")), inode(&source.path().join("meta.db")));
    environment.delete_all().unwrap();
    assert_eq!(fs::read_to_string(source.path().join("blobs/one")).unwrap(), "shared");
    bench.finish();
}

#[test]
fn systemctl_inside_asks_the_supervisor() {
    let bench = bench();
    let environment = bench.environment("systemctl");
    let fabric = fabric(&environment, 53);
    let mut wanted = spec("node", &fabric, 10);
    let inside = "/usr/local/lib/supervisor";
    wanted.binds.push(Bind { source: PROGRAM.into(), target: inside.into(), read_only: true });
    wanted.files.push(FileContent {
        path: "/usr/local/bin/systemctl".into(),
        content: format!("#!/bin/sh\nexec {inside} supervise systemctl \"$@\"\n"),
        mode: 0o755,
        only_if_missing: false,
    });
    let mut kubelet = Service::new(name("kubelet"), ["sleep", "1000"]);
    kubelet.when_exists = Some("/var/lib/kubelet/config.yaml".into());
    wanted.services.push(kubelet);
    let machine = environment.create_machine(wanted).unwrap();
    let say = |line: &str| sh(&machine, &format!("{line} 2>&1; echo $?"));
    // In kubeadm's order.
    assert_eq!(say("systemctl is-enabled kubelet"), "enabled\n0");
    assert_eq!(say("systemctl is-active kubelet"), "activating\n3");
    assert_eq!(say("systemctl stop kubelet"), "0");
    sh(&machine, "echo > /var/lib/kubelet/config.yaml");
    assert_eq!(say("systemctl is-active kubelet"), "inactive\n3");
    assert_eq!(say("systemctl daemon-reload"), "0");
    assert_eq!(say("systemctl start kubelet"), "0");
    eventually("it runs", || say("systemctl is-active kubelet") == "active\n0");
    assert_eq!(say("systemctl start nothing").lines().last(), Some("5"));
    environment.delete_all().unwrap();
    bench.finish();
}

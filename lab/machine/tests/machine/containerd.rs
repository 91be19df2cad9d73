//! containerd and runc from unpacked packages, laid over /usr.

use std::{os::unix::fs::MetadataExt, time::Duration};

use hangar_machine::{Ending, FileContent, Service, ServiceState, containerd_config, host};

use crate::{
    packages,
    support::{bench, eventually, fabric, name, sh, spec, state_of},
};

#[test]
fn containerd_runs_inside() {
    let bench = bench();
    let environment = bench.environment("containerd");
    let fabric = fabric(&environment, 41);
    let mut spec = spec("node", &fabric, 10);
    spec.layers.usr.push(packages::unpacked().join("usr"));
    spec.services = vec![Service::containerd(), Service::kubelet()];
    spec.files.push(FileContent {
        path: "/etc/containerd/config.toml".into(),
        content: containerd_config("registry.k8s.io/pause:3.10", host::abilities().unwrap().lower_oom_score),
        mode: 0o644,
        only_if_missing: false,
    });
    let machine = environment.create_machine(spec).unwrap();
    assert!(
        machine.wait_for_file("/run/containerd/containerd.sock", Duration::from_mins(1)).unwrap(),
        "no socket; its log:\n{}",
        machine.logs("containerd", None).unwrap_or_default()
    );
    let version = sh(&machine, "ctr version");
    assert!(version.contains("Client:") && version.contains("Server:"), "{version}");
    let plugins = sh(&machine, "ctr plugins ls");
    let ok = |kind: &str, id: &str| {
        plugins
            .lines()
            .any(|line| line.contains(kind) && line.contains(id) && line.trim_end().ends_with("ok"))
    };
    assert!(ok("io.containerd.snapshotter.v1", "overlayfs"), "{plugins}");
    assert!(ok("io.containerd.grpc.v1", "cri"), "{plugins}");

    // A real container from a hand-made root, in a group below the machine's.
    sh(
        &machine,
        "mkdir -p /var/lib/box/usr && cd /var/lib/box && for d in bin lib lib64; do ln -s usr/$d $d; done",
    );
    let mounts = "--mount type=bind,src=/usr,dst=/usr,options=rbind:ro";
    let run = format!("ctr run --rm --rootfs {mounts} /var/lib/box probe /bin/sh -c 'echo from a container'");
    assert_eq!(sh(&machine, &run), "from a container");
    sh(
        &machine,
        &format!("ctr run -d --rootfs {mounts} /var/lib/box lasting /bin/sh -c 'while :; do sleep 1; done'"),
    );
    let running = || {
        let tasks = machine.run(["ctr", "tasks", "ls"]).unwrap_or_default();
        tasks.lines().find(|line| line.contains("RUNNING")).map(str::to_owned)
    };
    let lasting = running().unwrap();

    // Containers outlive containerd, and the next one finds them.
    for how in ["restarted", "killed"] {
        if how == "killed" {
            let (ServiceState::Running(pid), 2) = state_of(&machine, "containerd") else {
                panic!("not running")
            };
            sh(&machine, &format!("kill -KILL {pid}"));
            eventually("its next start", || state_of(&machine, "containerd").1 == 3);
        } else {
            assert_eq!(machine.restart_service(&name("containerd")).unwrap(), Ending::InTime);
        }
        eventually("containerd to answer again", || running().is_some());
        assert_eq!(running().unwrap(), lasting, "containerd was {how}");
    }

    // Its data is not on an overlay.
    let data = machine.directory().join("data/containerd");
    assert!(data.join("io.containerd.metadata.v1.bolt").exists());
    assert_eq!(data.metadata().unwrap().dev(), bench.state.path().metadata().unwrap().dev());

    let begin = std::time::Instant::now();
    machine.delete().unwrap();
    println!("deleted with a running container in {:?}", begin.elapsed());
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

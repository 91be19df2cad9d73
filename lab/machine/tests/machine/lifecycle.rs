//! Stop, start, restart, services, deleting, and a restart of the host.

use std::{fs, time::Duration};

use hangar_machine::{
    Ending, Error, MachineSpec, MachineState, ProcessIdentity, Restart, Service, ServiceState, net::Netns,
};

use crate::support::{bench, eventually, fabric, fabric_spec, machine, name, sh, spec, state_of};

const GRACE: Duration = Duration::from_secs(5);

#[test]
fn stop_and_start_keep_the_data() {
    let bench = bench();
    let environment = bench.environment("data");
    let fabric = fabric(&environment, 21);
    let machine = machine(&environment, "w1", &fabric, 10);
    let id = sh(&machine, "cat /etc/machine-id");
    let mac = sh(&machine, "cat /sys/class/net/eth0/address");
    sh(
        &machine,
        "for d in /var/lib/x /etc/x /usr/x /opt/x /root/x /var/lib/kubelet/x; do echo kept > $d; done",
    );
    sh(&machine, "echo gone > /run/x");
    machine.stop(GRACE).unwrap();
    assert_eq!(machine.status().unwrap().state, MachineState::Stopped);
    assert!(matches!(machine.services(), Err(Error::NotRunning(_))));
    machine.stop(GRACE).unwrap();
    machine.start().unwrap();
    assert!(matches!(machine.start(), Err(Error::AlreadyRunning(_))));
    for _ in 0..2 {
        let kept =
            sh(&machine, "cat /var/lib/x /etc/x /usr/x /opt/x /root/x /var/lib/kubelet/x | sort | uniq -c");
        assert_eq!(kept.trim(), "6 kept");
        assert_eq!(sh(&machine, "test -e /run/x || echo fresh"), "fresh");
        assert_eq!(sh(&machine, "cat /etc/machine-id"), id);
        assert_eq!(sh(&machine, "cat /sys/class/net/eth0/address"), mac);
        assert!(sh(&machine, "ip -o -4 address show eth0").contains("100.120.21.10/24"));
        machine.restart(GRACE).unwrap();
    }
    machine.delete().unwrap();
    assert!(!machine.delete().unwrap(), "a second delete finds nothing");
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

/// Addresses that programs added answer to ARP as long as the namespace is there, whatever became of the programs.
#[test]
fn a_machine_that_is_cut_off_answers_nobody_and_comes_back() {
    let bench = bench();
    let environment = bench.environment("cut");
    let fabric = fabric(&environment, 29);
    let machine = machine(&environment, "w1", &fabric, 10);
    sh(&machine, "echo kept > /var/lib/x; ip address add 100.120.29.99/32 dev eth0");
    let netns = machine.netns();
    machine.cut_off().unwrap();
    assert_eq!(machine.status().unwrap().state, MachineState::Stopped);
    assert!(!netns.exists(), "the kernel would answer for it");
    machine.cut_off().unwrap();
    machine.start().unwrap();
    assert_eq!(sh(&machine, "cat /var/lib/x"), "kept");
    let addresses = sh(&machine, "ip -o -4 address show eth0");
    assert!(addresses.contains("100.120.29.10/24") && !addresses.contains("100.120.29.99"), "{addresses}");
    machine.delete().unwrap();
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

#[test]
fn services_start_restart_and_wait() {
    let bench = bench();
    let environment = bench.environment("services");
    let shell = |text: &str, line: &str| Service::new(name(text), ["/bin/sh", "-c", line]);
    let mut spec = MachineSpec::new(name("w1"));
    spec.services = vec![
        shell("steady", "exec sleep 1000"),
        Service { restart_delay_milliseconds: 10, ..shell("failing", "echo again; exit 1") },
        Service { restart: Restart::OnFailure, ..shell("succeeding", "exit 0") },
        Service { when_exists: Some("/etc/configured".into()), ..shell("late", "exec sleep 1000") },
        Service { restart: Restart::Never, ..shell("first-stage", "sleep 0.2; echo one >> /root/order") },
        Service {
            restart: Restart::Never,
            after: vec![name("first-stage")],
            ..shell("second-stage", "echo two >> /root/order")
        },
        Service { restart: Restart::Never, ..shell("broken-stage", "exit 9") },
        Service { after: vec![name("broken-stage")], ..shell("never", "exit 0") },
        Service { restart: Restart::Never, ..Service::new(name("missing"), ["/no/such/program"]) },
    ];
    let machine = environment.create_machine(spec).unwrap();
    eventually("the second stage", || state_of(&machine, "second-stage").0 == ServiceState::Ended(0));
    assert_eq!(sh(&machine, "cat /root/order"), "one\ntwo");
    eventually("restarts", || state_of(&machine, "failing").1 > 2);
    eventually("its end", || state_of(&machine, "succeeding").0 == ServiceState::Ended(0));
    eventually("its end", || state_of(&machine, "broken-stage").0 == ServiceState::Ended(9));
    assert_eq!(state_of(&machine, "never"), (ServiceState::Waiting, 0));
    assert_eq!(state_of(&machine, "missing").0, ServiceState::Ended(127));
    assert!(machine.logs("supervisor", None).unwrap().contains("/no/such/program"));
    assert_eq!(state_of(&machine, "late"), (ServiceState::Waiting, 0));
    sh(&machine, "touch /etc/configured");
    eventually("the late one", || matches!(state_of(&machine, "late").0, ServiceState::Running(_)));

    // A service that dies comes back; one that is stopped does not.
    let (ServiceState::Running(pid), 1) = state_of(&machine, "steady") else { panic!("steady does not run") };
    sh(&machine, &format!("kill -9 {pid}"));
    eventually("its second start", || state_of(&machine, "steady").1 == 2);
    machine.restart_service(&name("steady")).unwrap();
    eventually("its third start", || state_of(&machine, "steady").1 == 3);
    assert_eq!(machine.stop_service(&name("steady")).unwrap(), Ending::InTime);
    assert_eq!(state_of(&machine, "steady").0, ServiceState::Stopped);
    machine.start_service(&name("steady")).unwrap();
    eventually("its fourth start", || state_of(&machine, "steady").1 == 4);
    machine.add_service(shell("added", "exec sleep 1000")).unwrap();
    eventually("the added one", || matches!(state_of(&machine, "added").0, ServiceState::Running(_)));
    assert!(machine.stop_service(&name("unknown")).is_err());

    // Orphans are adopted and collected.
    sh(&machine, "(sleep 0.1 &) ; true");
    eventually("no zombies", || sh(&machine, "grep -l 'State:.Z' /proc/[0-9]*/status | wc -l") == "0");
    machine.delete().unwrap();
    bench.finish();
}

/// Nobody asks the supervisor anything while we wait: each question would have it look again.
#[test]
fn what_can_start_needs_no_event() {
    let bench = bench();
    let environment = bench.environment("services");
    let shell = |text: &str, line: &str| Service::new(name(text), ["/bin/sh", "-c", line]);
    let mut spec = MachineSpec::new(name("w1"));
    // It is let go by one further down the list.
    spec.services = vec![
        Service { after: vec![name("first")], ..shell("second", "touch /run/second; exec sleep 1000") },
        shell("first", "exec sleep 1000"),
    ];
    let machine = environment.create_machine(spec).unwrap();
    let has = |file: &str| sh(&machine, &format!("test ! -e {file} || echo yes")) == "yes";
    eventually("the second", || has("/run/second"));
    // It is due again before the failure to start it was dealt with.
    let hasty = Service { restart_delay_milliseconds: 0, ..Service::new(name("hasty"), ["/root/hasty"]) };
    machine.add_service(hasty).unwrap();
    let script = "#!/bin/sh\ntouch /run/hasty; exec sleep 1000\n";
    sh(&machine, &format!("printf '{script}' > /root/new; chmod +x /root/new; mv /root/new /root/hasty"));
    eventually("the hasty one", || has("/run/hasty"));
    machine.delete().unwrap();
    bench.finish();
}

/// A disk without space, as far as the log is concerned.
#[test]
fn a_log_that_cannot_be_written_does_not_end_the_machine() {
    let bench = bench();
    let environment = bench.environment("full");
    let mut spec = MachineSpec::new(name("w1"));
    spec.services = vec![
        Service { restart_delay_milliseconds: 10, ..Service::new(name("failing"), ["/bin/false"]) },
        Service::new(name("missing"), ["/no/such/program"]),
        Service {
            when_exists: Some("/etc/talk".into()),
            restart: Restart::Never,
            ..Service::new(name("talking"), ["/bin/sh", "-c", "seq 100000"])
        },
    ];
    let machine = environment.create_machine(spec).unwrap();
    machine.stop(GRACE).unwrap();
    let log = machine.directory().join("logs/supervisor.log");
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    // The services' too.
    std::os::unix::fs::symlink("/dev/full", machine.directory().join("logs/talking.log")).unwrap();
    machine.start().unwrap();
    eventually("restarts", || state_of(&machine, "failing").1 > 3);
    sh(&machine, "touch /etc/talk");
    eventually("the end of one that wrote much", || {
        state_of(&machine, "talking").0 == ServiceState::Ended(0)
    });
    assert!(matches!(machine.status().unwrap().state, MachineState::Running(_)));
    machine.delete().unwrap();
    bench.finish();
}

#[test]
fn stopping_gives_services_their_time() {
    let bench = bench();
    let environment = bench.environment("grace");
    let mut spec = MachineSpec::new(name("w1"));
    spec.services = vec![Service::new(
        name("tidy"),
        [
            "/bin/sh",
            "-c",
            "trap 'echo tidied > /root/tidied; exit 0' TERM; touch /root/set; while :; do sleep 0.05; done",
        ],
    )];
    let machine = environment.create_machine(spec).unwrap();
    eventually("its trap", || sh(&machine, "test ! -e /root/set || echo set") == "set");
    machine.stop(GRACE).unwrap();
    machine.start().unwrap();
    assert_eq!(sh(&machine, "cat /root/tidied"), "tidied");
    machine.delete().unwrap();
    bench.finish();
}

#[test]
fn deleting_ends_what_does_not_want_to_end() {
    let bench = bench();
    let environment = bench.environment("stubborn");
    let mut spec = MachineSpec::new(name("w1"));
    let line = "trap '' TERM INT HUP; for i in 1 2 3 4 5; do (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; done; while :; do sleep 1; done";
    spec.services = vec![Service::new(name("stubborn"), ["/bin/sh", "-c", line])];
    let machine = environment.create_machine(spec).unwrap();
    // Five with a shell and mostly a sleep each, and those above them. Seen from outside: who looks inside is seen too.
    eventually("its children are found", || bench.processes() > 10);
    // Also one that came in by hand and one in a group of its own.
    let mut visitor = machine.command("/".as_ref(), ["sleep", "1000"]).unwrap().spawn().unwrap();
    if !hangar_machine::host::abilities().unwrap().cgroup_v2 {
        sh(
            &machine,
            "mkdir -p /sys/fs/cgroup/pids/a/b && (sh -c 'echo $$ > /sys/fs/cgroup/pids/a/b/cgroup.procs; exec sleep 1000' >/dev/null 2>&1 &)",
        );
    }
    let begin = std::time::Instant::now();
    machine.delete().unwrap();
    println!("deleted in {:?}", begin.elapsed());
    assert!(!visitor.wait().unwrap().success(), "the visitor outlived the machine");
    bench.finish();
}

#[test]
fn survives_a_restart_of_the_host() {
    let bench = bench();
    let environment = bench.environment("reboot");
    let fabric = fabric(&environment, 22);
    let machine = machine(&environment, "w1", &fabric, 10);
    sh(&machine, "echo kept > /var/lib/x");
    // What a restart does: processes, namespaces, links and control groups are gone, files stay, and the recorded
    // process number belongs to somebody else.
    machine.stop(Duration::ZERO).unwrap();
    machine.netns().delete().unwrap();
    Netns::at(fabric.netns().path()).delete().unwrap();
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let own = ProcessIdentity::of(stranger.id().cast_signed()).unwrap();
    let running = machine.directory().join("running.json");
    for stale in [
        ProcessIdentity { boot_id: "an-earlier-boot".to_owned(), ..own.clone() },
        ProcessIdentity { start_time: own.start_time - 1, ..own.clone() },
    ] {
        fs::write(&running, serde_json::to_vec(&stale).unwrap()).unwrap();
        assert_eq!(machine.status().unwrap().state, MachineState::Stopped);
        assert!(matches!(machine.services(), Err(Error::NotRunning(_))));
    }
    // Without its network it does not start, and says so.
    let error = machine.start().unwrap_err().to_string();
    assert!(error.contains("is not up"), "{error}");
    eventually("the old host link to vanish", || {
        let link = fabric.host_link().unwrap();
        hangar_machine::net::Network::here().unwrap().link(&link).unwrap().is_none()
    });
    environment.create_fabric(fabric_spec(22)).unwrap();
    machine.start().unwrap();
    assert_eq!(sh(&machine, "cat /var/lib/x"), "kept");
    assert!(crate::ping::answers_here([100, 120, 22, 10].into()));
    machine.stop(Duration::ZERO).unwrap();
    let stale = ProcessIdentity { boot_id: "an-earlier-boot".to_owned(), ..own.clone() };
    fs::write(&running, serde_json::to_vec(&stale).unwrap()).unwrap();
    machine.delete().unwrap();
    assert!(own.is_alive(), "a process that is not ours was killed");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

#[test]
fn another_process_lists_and_removes() {
    let bench = bench();
    let environment = bench.environment("others");
    let fabric = fabric(&environment, 23);
    environment.create_machine(spec("one", &fabric, 10)).unwrap();
    bench.sees_what_is_there();
    environment.create_machine(spec("two", &fabric, 11)).unwrap().stop(GRACE).unwrap();
    let state = bench.state.path().to_str().unwrap();
    let call = |arguments: &[&str]| {
        let mut command = std::process::Command::new(crate::support::PROGRAM);
        let output =
            command.args(["--state", state, "--environment", "others"]).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (_, list, _) = call(&["list"]);
    assert!(list.contains("one\trunning (process "), "{list}");
    assert!(list.contains("two\tstopped\t100.120.23.11/24"), "{list}");
    assert_eq!(call(&["exec", "one", "--", "sh", "-c", "exit 5"]).0, Some(5));
    let (code, _, error) = call(&["delete-fabric", "private"]);
    assert_eq!(
        (code, error.trim()),
        (Some(1), "error: fabric \"private\" is in use by machine \"one\": delete that first")
    );
    let (code, _, error) = call(&["exec", "two", "true"]);
    assert_eq!((code, error.trim()), (Some(1), "error: machine \"two\" is not running"));
    let (code, _, error) = call(&["logs", "three"]);
    assert_eq!((code, error.trim()), (Some(1), "error: no machine \"three\" in environment \"others\""));
    assert_eq!(call(&["delete", "one"]).0, Some(0));
    assert_eq!(call(&["delete", "two"]).0, Some(0));
    assert_eq!(call(&["delete-fabric", "private"]).0, Some(0));
    assert_eq!(environment.machines().unwrap().len(), 0);
    assert_eq!(environment.fabrics().unwrap().len(), 0);
    bench.finish();
}

#[test]
fn many_at_once() {
    let bench = bench();
    let environment = bench.environment("many");
    let fabric = fabric(&environment, 24);
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for number in 10..16 {
                let (environment, fabric) = (&environment, &fabric);
                scope.spawn(move || machine(environment, &format!("w{number}"), fabric, number));
            }
        });
        assert_eq!(environment.machines().unwrap().len(), 6);
        for number in 10..16 {
            assert!(crate::ping::answers_here([100, 120, 24, number].into()), "w{number} does not answer");
        }
        std::thread::scope(|scope| {
            for status in environment.machines().unwrap() {
                let environment = &environment;
                scope.spawn(move || assert!(environment.machine(&status.name).delete().unwrap()));
            }
        });
    }
    // One name wanted by several: one gets it.
    let made = std::thread::scope(|scope| {
        let wanted: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| environment.create_machine(spec("wanted", &fabric, 10)).is_ok()))
            .collect();
        wanted.into_iter().map(|one| one.join().unwrap()).filter(|made| *made).count()
    });
    assert_eq!(made, 1);
    environment.delete_all().unwrap();
    bench.finish();
}

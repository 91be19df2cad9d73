//! Services that are stopped one by one, also those that do not end by themselves.

use hangar_machine::{
    Bind, Ending, Environment, Exec, KillMode, Machine, MachineSpec, Service, ServiceState, host,
};

use crate::support::{PROGRAM, bench, eventually, name, sh, state_of};

/// For what ignores the signal: how soon it is killed decides nothing.
const SOON: u64 = 100;
/// For what does not: never reached.
const LONG: u64 = 300_000;

fn machine_with(environment: &Environment, services: Vec<Service>) -> Machine {
    let mut spec = MachineSpec { services, ..MachineSpec::new(name("w1")) };
    spec.binds.push(Bind { source: PROGRAM.into(), target: "/opt/hangar-machine".into(), read_only: true });
    environment.create_machine(spec).unwrap()
}

fn shell(service: &str, line: &str, stop_limit_milliseconds: u64) -> Service {
    Service { stop_limit_milliseconds, ..Service::new(name(service), ["/bin/sh", "-c", line]) }
}

fn has(machine: &Machine, file: &str) -> bool {
    sh(machine, &format!("test -e {file} && echo yes || true")) == "yes"
}

/// Whether the process whose number is in this file lives.
fn lives(machine: &Machine, file: &str) -> bool {
    sh(machine, &format!("kill -0 $(cat {file}) 2>/dev/null && echo yes || true")) == "yes"
}

fn systemctl(machine: &Machine, words: &str) -> (Option<i32>, String) {
    let mut command = vec!["/opt/hangar-machine", "supervise", "systemctl"];
    command.extend(words.split(' '));
    let output = machine.exec(&Exec::new(command)).unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
    )
}

/// A shell that writes its number into a file once it ignores SIGTERM, and stays.
fn stubborn(file: &str) -> String {
    format!("trap \"\" TERM; echo $$ > {file}.new; mv {file}.new {file}; while :; do sleep 0.05; done")
}

/// The same twice: the service, and what it started in a session of its own and left to process 1.
fn stubborn_family() -> String {
    format!("(setsid sh -c '{}' &) ; {}", stubborn("/run/helper"), stubborn("/run/main"))
}

#[test]
fn what_does_not_end_is_killed() {
    let bench = bench();
    let environment = bench.environment("stopping");
    let machine = machine_with(&environment, vec![shell("stubborn", &stubborn_family(), SOON)]);
    let service = name("stubborn");
    let up = || eventually("all of it", || has(&machine, "/run/main") && has(&machine, "/run/helper"));
    up();
    // It is gone when we are told so, and all of it.
    assert_eq!(machine.stop_service(&service).unwrap(), Ending::Killed);
    assert_eq!(state_of(&machine, "stubborn"), (ServiceState::Stopped, 1));
    assert!(!lives(&machine, "/run/main") && !lives(&machine, "/run/helper"));
    assert_eq!(machine.services().unwrap()[0].last_exit, Some(137));
    assert!(machine.logs("supervisor", None).unwrap().contains("service stubborn did not end within 100 ms"));
    // Nothing is left to stop.
    assert_eq!(machine.stop_service(&service).unwrap(), Ending::InTime);

    sh(&machine, "rm /run/main /run/helper");
    machine.start_service(&service).unwrap();
    up();
    let helper = sh(&machine, "cat /run/helper");
    assert_eq!(machine.restart_service(&service).unwrap(), Ending::Killed);
    assert!(matches!(state_of(&machine, "stubborn"), (ServiceState::Running(_), 3)));
    assert_eq!(sh(&machine, &format!("kill -0 {helper} 2>/dev/null || echo gone")), "gone");

    // Asked in systemd's words: it is stopped, and how is said.
    machine.stop_service(&service).unwrap();
    sh(&machine, "rm -f /run/main /run/helper");
    machine.start_service(&service).unwrap();
    up();
    let said = "stubborn.service did not end in time and was killed.\n".to_owned();
    assert_eq!(systemctl(&machine, "stop stubborn"), (Some(0), said));
    assert_eq!(systemctl(&machine, "is-active stubborn"), (Some(3), "inactive\n".to_owned()));
    assert!(!lives(&machine, "/run/main") && !lives(&machine, "/run/helper"));
    machine.delete().unwrap();
    bench.finish();
}

/// The service itself ends when asked, something that it started does not.
#[test]
fn what_a_service_leaves_behind_is_killed_too() {
    let bench = bench();
    let environment = bench.environment("stopping");
    let line = format!("(setsid sh -c '{}' &) ; exec sleep 1000", stubborn("/run/helper"));
    let machine = machine_with(&environment, vec![shell("leaving", &line, SOON)]);
    eventually("its helper", || has(&machine, "/run/helper"));
    assert_eq!(machine.stop_service(&name("leaving")).unwrap(), Ending::Killed);
    assert!(!lives(&machine, "/run/helper"));
    assert_eq!(machine.services().unwrap()[0].last_exit, Some(143), "it ended by itself");
    machine.delete().unwrap();
    bench.finish();
}

#[test]
fn what_ends_gets_its_time() {
    let bench = bench();
    let environment = bench.environment("stopping");
    let line = "trap 'sleep 0.5; echo tidied >> /root/tidied; exit 0' TERM; touch /run/ready; while :; do sleep 0.05; done";
    let machine = machine_with(&environment, vec![shell("tidy", line, LONG)]);
    let service = name("tidy");
    let ready = || eventually("its trap", || has(&machine, "/run/ready"));
    ready();
    sh(&machine, "rm /run/ready");
    assert_eq!(machine.restart_service(&service).unwrap(), Ending::InTime);
    assert_eq!(sh(&machine, "cat /root/tidied"), "tidied");
    assert!(matches!(state_of(&machine, "tidy"), (ServiceState::Running(_), 2)));
    ready();
    assert_eq!(systemctl(&machine, "stop tidy"), (Some(0), String::new()));
    assert_eq!(sh(&machine, "cat /root/tidied"), "tidied\ntidied");
    assert_eq!(state_of(&machine, "tidy"), (ServiceState::Stopped, 2));

    // It is asked once, however long it takes: many programs end at once when they are asked again.
    let line = "trap 'echo asked >> /run/asked' TERM; touch /run/ready; while ! test -e /run/go; do sleep 0.01; done";
    sh(&machine, "rm /run/ready");
    machine.add_service(shell("asked", line, LONG)).unwrap();
    ready();
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| machine.stop_service(&name("asked")));
        eventually("it is asked", || has(&machine, "/run/asked"));
        sh(&machine, "touch /run/go");
        assert_eq!(stop.join().unwrap().unwrap(), Ending::InTime);
    });
    assert_eq!(sh(&machine, "cat /run/asked"), "asked");

    // One that somebody stopped with a signal has to go on to hear it.
    machine.add_service(shell("held", "exec sleep 1000", LONG)).unwrap();
    let (ServiceState::Running(pid), 1) = state_of(&machine, "held") else { panic!("it does not run") };
    sh(&machine, &format!("kill -STOP {pid}"));
    assert_eq!(machine.stop_service(&name("held")).unwrap(), Ending::InTime);
    machine.delete().unwrap();
    bench.finish();
}

/// As containerd's shims do.
#[test]
fn what_should_outlive_a_service_does() {
    let bench = bench();
    let environment = bench.environment("stopping");
    let helper = "trap \"\" TERM; echo $$ > /run/new; mv /run/new /run/helper; while :; do test -e /run/speak && echo outlived && rm /run/speak; sleep 0.05; done";
    let line = format!("test -e /run/helper || (setsid sh -c '{helper}' &) ; {}", stubborn("/run/main"));
    let service = Service { kill_mode: KillMode::Process, ..shell("runtime", &line, SOON) };
    let machine = machine_with(&environment, vec![service]);
    eventually("all of it", || has(&machine, "/run/main") && has(&machine, "/run/helper"));
    let main = sh(&machine, "cat /run/main; rm /run/main");
    assert_eq!(machine.restart_service(&name("runtime")).unwrap(), Ending::Killed);
    assert_eq!(sh(&machine, &format!("kill -0 {main} 2>/dev/null || echo gone")), "gone");
    assert!(lives(&machine, "/run/helper"));
    // It goes on writing into the log, in the service's next life and after it.
    eventually("its next life", || has(&machine, "/run/main"));
    let outlived = || machine.logs("runtime", None).unwrap().matches("outlived\n").count();
    sh(&machine, "touch /run/speak");
    eventually("its words", || outlived() == 1);
    assert_eq!(machine.stop_service(&name("runtime")).unwrap(), Ending::Killed);
    assert!(lives(&machine, "/run/helper") && !lives(&machine, "/run/main"));
    sh(&machine, "touch /run/speak");
    eventually("its words", || outlived() == 2);
    machine.delete().unwrap();
    bench.finish();
}

/// While one service takes its time, others are asked about and changed, and whoever is overruled is told.
#[test]
fn many_ask_at_once() {
    let bench = bench();
    let environment = bench.environment("stopping");
    let services = vec![shell("slow", &stubborn("/run/main"), LONG), shell("other", "exec sleep 1000", LONG)];
    let machine = machine_with(&environment, services);
    let service = name("slow");
    let is_stopping =
        || eventually("it is on its way out", || state_of(&machine, "slow").0 == ServiceState::Stopping);
    let kill = || sh(&machine, "pid=$(cat /run/main); rm /run/main; kill -KILL $pid");
    let ready = || eventually("it ignores the signal", || has(&machine, "/run/main"));
    ready();
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| machine.stop_service(&service));
        is_stopping();
        assert_eq!(systemctl(&machine, "is-active slow"), (Some(3), "deactivating\n".to_owned()));
        assert_eq!(machine.restart_service(&name("other")).unwrap(), Ending::InTime);
        kill();
        assert_eq!(stop.join().unwrap().unwrap(), Ending::InTime);
    });
    assert_eq!(state_of(&machine, "slow"), (ServiceState::Stopped, 1));

    // Told to start while it is on its way out: both get what they asked for.
    machine.start_service(&service).unwrap();
    ready();
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| machine.stop_service(&service));
        is_stopping();
        assert_eq!(systemctl(&machine, "--no-block start slow"), (Some(0), String::new()));
        kill();
        stop.join().unwrap().unwrap();
    });
    assert!(matches!(state_of(&machine, "slow"), (ServiceState::Running(_), 3)));

    // Told to stop while it restarts: it does not start again, and who wanted that is told.
    ready();
    std::thread::scope(|scope| {
        let restart = scope.spawn(|| machine.restart_service(&service));
        is_stopping();
        assert_eq!(systemctl(&machine, "--no-block stop slow"), (Some(0), String::new()));
        kill();
        let error = restart.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("another request stopped it meanwhile"), "{error}");
    });
    assert_eq!(state_of(&machine, "slow"), (ServiceState::Stopped, 3));

    // The machine ends under whoever waits.
    machine.start_service(&service).unwrap();
    ready();
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| machine.stop_service(&service));
        is_stopping();
        machine.stop(std::time::Duration::from_millis(500)).unwrap();
        assert!(stop.join().unwrap().is_err(), "it was not stopped, the machine was");
    });
    machine.delete().unwrap();
    bench.finish();
}

/// A process that even SIGKILL does not end, as one that waits for a dead disk: nobody is told that it ended.
#[test]
fn what_cannot_be_killed_is_said_to_be_there() {
    let bench = bench();
    let environment = bench.environment("stopping");
    let machine = machine_with(&environment, vec![shell("stuck", "exec sleep 1000", SOON)]);
    eventually("it runs", || matches!(state_of(&machine, "stuck"), (ServiceState::Running(_), 1)));
    if host::abilities().unwrap().cgroup_v2 {
        // There, a frozen process can be killed.
        machine.delete().unwrap();
        return bench.finish();
    }
    let state = "/sys/fs/cgroup/freezer/hangar-services/stuck/freezer.state";
    sh(&machine, &format!("echo FROZEN > {state}; until grep -q FROZEN {state}; do sleep 0.01; done"));
    let stopped = machine.stop_service(&name("stuck"));
    let (is_there, _) = state_of(&machine, "stuck");
    // Nothing may fail before it can end.
    sh(&machine, &format!("echo THAWED > {state}"));
    let error = stopped.unwrap_err().to_string();
    assert!(error.contains("service stuck was killed and does not end"), "{error}");
    assert_eq!(is_there, ServiceState::Stopping);
    eventually("its end", || state_of(&machine, "stuck").0 == ServiceState::Stopped);
    machine.delete().unwrap();
    bench.finish();
}

/// As the processes of a container that somebody paused. With v1 they hear of nothing, not even of their end.
#[test]
fn what_is_frozen_ends_with_its_machine() {
    let bench = bench();
    let environment = bench.environment("stopping");
    let machine = machine_with(&environment, vec![shell("paused", "exec sleep 1000", LONG)]);
    let (group, freeze) = if host::abilities().unwrap().cgroup_v2 {
        ("supervisor", "echo 1 > cgroup.freeze; until grep -q 'frozen 1' cgroup.events; do sleep 0.01; done")
    } else {
        let freeze = "echo FROZEN > freezer.state; until grep -q FROZEN freezer.state; do sleep 0.01; done";
        ("freezer/hangar-services", freeze)
    };
    let freeze = || {
        let (ServiceState::Running(pid), 1) = state_of(&machine, "paused") else { panic!("it does not run") };
        let enter = format!(
            "cd /sys/fs/cgroup/{group}/paused && mkdir inner && cd inner && echo {pid} > cgroup.procs"
        );
        sh(&machine, &format!("{enter} && {{ {freeze}; }}"));
    };
    freeze();
    machine.restart(std::time::Duration::ZERO).unwrap();
    freeze();
    machine.delete().unwrap();
    bench.finish();
}

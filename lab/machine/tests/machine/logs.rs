//! Logs of services that run for long.

use std::{fs, io::Write, ops::Range, os::unix::fs::MetadataExt, path::Path};

use hangar_machine::{Environment, Machine, MachineSpec, MachineState, Restart, Service, ServiceState};

use crate::support::{bench, eventually, name, sh, state_of};

/// More than all parts of a log together hold.
const MANY: usize = 8_500_000;
/// The most that a log may take: five parts of 10 MiB, and a line each.
const PART: u64 = (10 << 20) + 100;
const PARTS: usize = 5;

fn machine_with(environment: &Environment, services: Vec<Service>) -> Machine {
    environment.create_machine(MachineSpec { services, ..MachineSpec::new(name("w1")) }).unwrap()
}

fn shell(service: &str, line: &str) -> Service {
    Service::new(name(service), ["/bin/sh", "-c", line])
}

/// Numbers, one per line, each by one larger than the one before: nothing is missing, twice, torn or out of order.
fn numbers(text: &str) -> Range<usize> {
    let mut lines =
        text.lines().map(|line| line.parse::<usize>().unwrap_or_else(|_| panic!("torn: {line:?}")));
    let first = lines.next().unwrap();
    let mut end = first + 1;
    for number in lines {
        assert_eq!(number, end, "a line is missing");
        end += 1;
    }
    first..end
}

fn parts(machine: &Machine, service: &str) -> Vec<u64> {
    let listed = fs::read_dir(machine.directory().join("logs")).unwrap().flatten();
    let is_part = |path: &Path| path.file_name().unwrap().to_str().unwrap().starts_with(service);
    listed.filter(|entry| is_part(&entry.path())).map(|entry| entry.metadata().unwrap().len()).collect()
}

#[test]
fn they_stay_small_while_a_service_runs() {
    let bench = bench();
    let environment = bench.environment("logs");
    let line = format!("seq {MANY}; touch /run/written; exec sleep 1000");
    let machine = machine_with(&environment, vec![shell("talking", &line)]);
    let mut looks = 0;
    eventually("all lines are written", || {
        // Whoever reads meanwhile sees an unbroken end of it, but for the line that is being written.
        let text = machine.logs("talking", None).unwrap_or_default();
        if let Some(end) = text.rfind('\n') {
            numbers(&text[..end]);
            looks += 1;
        }
        sh(&machine, "test -e /run/written && echo yes || true") == "yes"
    });
    assert!(looks > 0, "nobody looked");
    eventually("the last line", || {
        machine.logs("talking", Some(100)).unwrap().ends_with(&format!("\n{MANY}\n"))
    });
    let text = machine.logs("talking", None).unwrap();
    let kept = numbers(&text);
    assert_eq!(kept.end, MANY + 1);
    assert!(kept.start > 1, "the oldest lines are still there");
    assert!(text.len() as u64 > (PARTS as u64 - 1) * (10 << 20) - 1000, "too much was thrown away");
    let sizes = parts(&machine, "talking");
    assert!(sizes.len() == PARTS && sizes.iter().all(|size| *size <= PART), "{sizes:?}");
    // The last bytes, over two parts.
    let newest = fs::metadata(machine.directory().join("logs/talking.log")).unwrap().len();
    let last = machine.logs("talking", Some(newest + 1000)).unwrap();
    assert!(last.len() as u64 == newest + 1000 && text.ends_with(&last));
    // All of this while it ran, and nobody noticed.
    assert!(matches!(state_of(&machine, "talking"), (ServiceState::Running(_), 1)));
    let files: Vec<String> = machine.log_files().unwrap().into_keys().collect();
    assert_eq!(files, ["supervisor", "talking", "talking.1", "talking.2", "talking.3", "talking.4"]);
    machine.delete().unwrap();
    bench.finish();
}

/// What a service wrote is there as soon as it is said to have ended, its last line too.
#[test]
fn they_are_complete_when_a_service_ended() {
    let bench = bench();
    let environment = bench.environment("logs");
    let machine = machine_with(&environment, Vec::new());
    for round in 0..20 {
        let service = format!("short-{round}");
        let once = Service { restart: Restart::Never, ..shell(&service, "seq 30000; printf end") };
        machine.add_service(once).unwrap();
        eventually("its end", || state_of(&machine, &service).0 == ServiceState::Ended(0));
        let text = machine.logs(&service, None).unwrap();
        assert_eq!(numbers(text.strip_suffix("end").unwrap()), 1..30_001);
    }
    // Also when the machine ends.
    let line = "trap 'seq 30000; exit 0' TERM; touch /run/ready; while :; do sleep 0.01; done";
    machine.add_service(shell("last-words", line)).unwrap();
    eventually("its trap", || sh(&machine, "test -e /run/ready && echo yes || true") == "yes");
    machine.stop(std::time::Duration::from_mins(1)).unwrap();
    // The shell may say that its sleep was ended.
    let text = machine.logs("last-words", None).unwrap().replace("Terminated\n", "");
    assert_eq!(numbers(&text), 1..30_001);
    machine.delete().unwrap();
    bench.finish();
}

/// Process 1 is killed while it writes and puts files aside; the next one goes on where it left off.
#[test]
fn they_outlive_a_killed_supervisor() {
    let bench = bench();
    let environment = bench.environment("logs");
    // Numbers go on over restarts of the machine; what a kill cost is a jump in them.
    // With pauses, so that a slow disk is not filled faster than it writes.
    let line = "n=$(cat /root/n 2>/dev/null || echo 0); n=$((n + 100000000)); echo $n > /root/n
        while :; do seq $n $((n + 19999)); n=$((n + 20000)); sleep 0.01; done";
    let machine = machine_with(&environment, vec![shell("talking", line)]);
    for _ in 0..4 {
        let older = machine.directory().join("logs/talking.1.log");
        let number = || fs::metadata(&older).ok().map(|found| found.ino());
        let before = number();
        eventually("a rotation", || number() != before);
        let MachineState::Running(first) = machine.status().unwrap().state else { panic!("it does not run") };
        assert!(first.kill());
        machine.stop(std::time::Duration::ZERO).unwrap();
        machine.start().unwrap();
    }
    eventually("the fifth life", || sh(&machine, "cat /root/n") == "500000000");
    // In the middle of the renames, and before there is a new file.
    machine.stop(std::time::Duration::ZERO).unwrap();
    let logs = machine.directory().join("logs");
    let mut before = machine.logs("talking", None).unwrap();
    if !before.ends_with('\n') {
        // Whoever puts a file aside does so after a whole line.
        before.push('\n');
        let mut newest = fs::OpenOptions::new().append(true).open(logs.join("talking.log")).unwrap();
        newest.write_all(b"\n").unwrap();
    }
    let _ = fs::remove_file(logs.join("talking.4.log"));
    for (from, to) in [
        ("talking.2.log", "talking.3.log"),
        ("talking.1.log", "talking.2.log"),
        ("talking.log", "talking.1.log"),
    ] {
        let _ = fs::rename(logs.join(from), logs.join(to));
    }
    assert!(before.ends_with(&machine.logs("talking", Some(1000)).unwrap()));
    machine.start().unwrap();
    eventually("the next life's lines", || {
        let last = machine.logs("talking", Some(100)).unwrap();
        last.lines()
            .nth(1)
            .is_some_and(|line| line.parse::<usize>().is_ok_and(|number| number >= 600_000_000))
    });
    machine.stop(std::time::Duration::ZERO).unwrap();
    // Each life's lines are without a hole but for its very last one, which the kill may have torn.
    let text = machine.logs("talking", None).unwrap();
    let mut before: Option<usize> = None;
    for line in text.lines() {
        let number: usize = line.parse().unwrap();
        let goes_on = before.is_none_or(|before| number == before + 1);
        let is_new_life = number.is_multiple_of(100_000_000);
        let is_torn = number < 100_000_000;
        assert!(goes_on || is_new_life || is_torn, "{number} after {before:?}");
        if !is_torn {
            before = Some(number);
        }
    }
    let sizes = parts(&machine, "talking");
    assert!(sizes.len() <= PARTS && sizes.iter().all(|size| *size <= PART), "{sizes:?}");
    machine.delete().unwrap();
    bench.finish();
}

/// The supervisor's own log, which nobody else can put aside.
#[test]
fn the_supervisors_own_stays_small() {
    let bench = bench();
    let environment = bench.environment("logs");
    let ending = Service { restart_delay_milliseconds: 1, ..Service::new(name("ending"), ["/bin/false"]) };
    let machine = machine_with(&environment, vec![ending]);
    eventually("its end", || {
        machine.logs("supervisor", None).unwrap().contains("service ending ended with 1")
    });
    // Written by others, in place of weeks.
    let log = machine.directory().join("logs/supervisor.log");
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all("filling up\n".repeat(1 << 20).as_bytes()).unwrap();
    eventually("a new file", || fs::metadata(&log).is_ok_and(|found| found.len() < 1 << 20));
    let text = || fs::read_to_string(&log).unwrap_or_default();
    eventually("lines in it", || {
        let text = text();
        // Shown when it never happens.
        println!("{} bytes: {:?}", text.len(), text.lines().next_back());
        text.contains("service ending ended with 1") && !text.contains("filling")
    });
    assert!(machine.logs("supervisor", None).unwrap().contains("filling up\n"));
    machine.delete().unwrap();
    bench.finish();
}

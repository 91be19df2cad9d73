use super::*;

fn shell(directory: &Path, script: &str) -> Process {
    ProcessSpec::new("shell", "/bin/sh", directory.join("logs/shell.log"))
        .arguments(["-c", script])
        .variable("GREETING", "hello")
        .directory(directory)
        .start()
        .unwrap()
}

fn wait_for(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long");
        thread::sleep(POLL);
    }
}

fn is_alive(id: i32) -> bool {
    // A zombie answers to signals too; its command line is empty.
    fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|text| !text.is_empty())
}

#[test]
fn an_early_end_shows_the_end_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = shell(directory.path(), "echo $GREETING; pwd; echo 'no such flag' >&2; exit 3");
    let mut result = process.check_running();
    while result.is_ok() {
        thread::sleep(POLL);
        result = process.check_running();
    }
    let text = result.unwrap_err().to_string();
    assert!(text.contains("hello") && text.contains("no such flag") && text.contains('3'), "{text}");
    assert!(text.contains("logs/shell.log"), "{text}");
}

#[test]
fn stop_asks_first() {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let mut process =
        shell(directory.path(), "trap 'echo asked; exit 0' TERM; touch ready; while :; do sleep 0.05; done");
    wait_for(|| ready.exists());
    assert!(process.check_running().is_ok());
    assert!(process.stop(Duration::from_mins(1)).unwrap().success());
    assert!(tail(process.log()).contains("asked"));
    // A second time is harmless.
    assert!(process.stop(Duration::ZERO).unwrap().success());
}

#[test]
fn drop_takes_children_along_and_kills_the_deaf() {
    let directory = tempfile::tempdir().unwrap();
    let child = directory.path().join("child");
    let process = shell(
        directory.path(),
        "trap '' TERM; sleep 1000 & echo $! > child.new; mv child.new child; wait; sleep 1000",
    );
    wait_for(|| child.exists());
    let child: i32 = fs::read_to_string(&child).unwrap().trim().parse().unwrap();
    let leader = i32::try_from(process.id()).unwrap();
    assert!(is_alive(child) && is_alive(leader));
    drop(process);
    assert!(!is_alive(leader));
    wait_for(|| !is_alive(child));
}

#[test]
fn the_tail_is_short_and_says_why_there_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let lines: Vec<String> = (0..1000).map(|line| format!("line {line}")).collect();
    fs::write(
        &log,
        lines.join(
            "
",
        ),
    )
    .unwrap();
    let text = tail(&log);
    assert!(text.ends_with("line 999") && text.lines().count() == TAIL_LINES, "{text}");
    assert!(tail(&directory.path().join("absent")).contains("cannot be read"));
}

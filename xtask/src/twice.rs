//! Runs integration tests, and those that failed once more, one at a time.
//!
//! They start API servers, kubelets and managers by the dozen, on hosts that do other things as well. A test that is wrong
//! fails twice. One that starved does not, and is named again in the last lines of the run: it waits for less than it
//! should, or finds a race that is rare. Both are to be mended.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;

use anyhow::{Context, bail};

/// More than these are no accident.
const MOST: usize = 3;

/// What passed only when it was run again.
static UNSTEADY: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs `cargo test` with these arguments and, behind `--`, those of the test programs.
pub(crate) fn tests(arguments: &[&str], of_programs: &[&str]) -> anyhow::Result<()> {
    let (status, failed) = run(&[arguments, &["--"], of_programs].concat())?;
    if status.success() {
        return Ok(());
    }
    let command = format!("`cargo {}`", arguments.join(" "));
    if failed.is_empty() || failed.len() > MOST {
        bail!("{command} failed, {} tests in all", failed.len());
    }
    println!("== run again, one at a time: {}", failed.join(", "));
    let names: Vec<&str> = failed.iter().map(String::as_str).collect();
    let (status, _) = run(&[arguments, &["--", "--exact", "--test-threads=1"], &names].concat())?;
    if !status.success() {
        bail!("{command} failed twice: {}", failed.join(", "));
    }
    UNSTEADY.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(failed);
    Ok(())
}

/// Names what passed only when it was run again.
pub(crate) fn tell() {
    for name in UNSTEADY.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter() {
        println!("=== unsteady: {name} failed, and passed alone");
    }
}

/// Runs cargo, shows what it prints, and collects the tests that failed.
fn run(arguments: &[&str]) -> anyhow::Result<(ExitStatus, Vec<String>)> {
    let mut cargo = Command::new("cargo")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo cannot be run")?;
    let stdout = cargo.stdout.take().context("cargo has no output")?;
    let mut failures = Failures::default();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("the output of cargo cannot be read")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        failures.read(&line);
    }
    Ok((cargo.wait().context("cargo")?, failures.names))
}

/// What the test programs list in the end: once with the output of each, and once as names.
#[derive(Default)]
struct Failures {
    is_listed: bool,
    names: Vec<String>,
}

impl Failures {
    fn read(&mut self, line: &str) {
        match line.strip_prefix("    ") {
            _ if line == "failures:" => self.is_listed = true,
            Some(name) if self.is_listed && !name.contains(' ') => self.names.push(name.to_owned()),
            _ if self.is_listed && line.is_empty() => {}
            _ => self.is_listed = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_read_from_the_list_at_the_end() {
        let output = "\nrunning 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\n\nfailures:\n\n---- a::two stdout ----\n\
                      \nthread 'a::two' panicked at tests/a.rs:1:1:\n    indented\nfailures:\n    not::a-list of\n\n\nfailures:\n    \
                      a::two\n    b::three\n\ntest result: FAILED. 1 passed; 2 failed\n    after\n";
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read(line));
        assert_eq!(failures.names, ["a::two", "b::three"]);
    }
}

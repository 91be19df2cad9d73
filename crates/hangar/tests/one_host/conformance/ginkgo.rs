//! Runs a part of the tests, and reads what became of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use hangar_parts::{Parts, Set};

use super::report::Report;
use crate::kubectl::Kubectl;

/// Only for what hangs.
const TIMEOUT: &str = "--timeout=4h";
/// Enough to see why there is no report.
const LAST_LINES: usize = 40;

/// Tests, by their labels or by their names.
pub(super) struct Part {
    pub(super) name: &'static str,
    processes: u32,
    labels: &'static str,
    names: Vec<String>,
}

impl Part {
    pub(super) const SERIAL: Self = Self {
        name: "serial",
        processes: 1,
        labels: "Conformance && Serial && !Disruptive && !Flaky",
        names: Vec::new(),
    };
    pub(super) const DISRUPTIVE: Self = Self {
        name: "disruptive",
        processes: 1,
        labels: "Conformance && Disruptive && !Flaky",
        names: Vec::new(),
    };

    pub(super) fn parallel(name: &'static str, processes: u32) -> Self {
        let labels = "Conformance && !Serial && !Disruptive && !Flaky";
        Self { name, processes, labels, names: Vec::new() }
    }

    /// One after the other.
    pub(super) fn alone(names: &[String]) -> Self {
        Self { name: "alone", processes: 1, labels: "Conformance", names: names.to_vec() }
    }
}

pub(super) struct Ginkgo {
    /// A directory for each part, with its log and its report.
    directory: PathBuf,
    tenant: Kubectl,
    focus: Option<String>,
}

impl Ginkgo {
    pub(super) fn new(directory: PathBuf, tenant: Kubectl, focus: Option<String>) -> Self {
        // Of an earlier run.
        let _ = fs::remove_dir_all(&directory);
        println!("             logs and reports: {}", directory.display());
        Self { directory, tenant, focus }
    }

    /// What became of its tests, and why there is no report where there is none.
    pub(super) fn run(&self, part: &Part) -> (Report, Option<String>) {
        let directory = self.directory.join(part.name);
        fs::create_dir_all(&directory).unwrap();
        let (log, report) = (directory.join("log.txt"), directory.join("report.json"));
        let output = File::create(&log).unwrap();
        let parts = Parts::from_env().unwrap();
        let program = |name: &str| parts.program(Set::Conformance134, name).unwrap();
        let kubectl = parts.program(Set::Kubernetes134, "kubectl").unwrap();
        let mut command = self.tenant.seat().command(&program("ginkgo"));
        command
            .args(["run", TIMEOUT, "--no-color", "--silence-skips", "--keep-going"])
            .arg(format!("--procs={}", part.processes))
            .arg(format!("--label-filter={}", part.labels))
            // Those of a part that is named have been chosen before.
            .args(self.focus.iter().filter(|_| part.names.is_empty()).map(|focus| format!("--focus={focus}")))
            .args(part.names.iter().map(|name| format!("--focus={}$", literal(name))))
            .arg("--json-report=report.json")
            .arg(format!("--output-dir={}", directory.display()))
            .arg(program("e2e.test"))
            .args(["--", "--provider=skeleton", "--allowed-not-ready-nodes=0", "--disable-log-dump"])
            .arg(format!("--kubeconfig={}", self.tenant.kubeconfig().display()))
            .arg(format!("--kubectl-path={}", kubectl.display()))
            .arg(format!("--num-nodes={}", super::WORKERS))
            .arg(format!("--report-dir={}", directory.join("artifacts").display()))
            .current_dir(&directory)
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        let status = command.status().unwrap();
        let read = fs::read_to_string(&report).map_err(|error| error.to_string());
        match read.and_then(|text| Report::parse(&text)) {
            Ok(report) if status.success() || !report.failed().is_empty() => (report, None),
            // Something else than a test.
            Ok(report) => (report, Some(format!("{}: {status}: {}", part.name, last_lines(&log)))),
            Err(error) => {
                let failure = format!("{}: {status}, {error}: {}", part.name, last_lines(&log));
                (Report::default(), Some(failure))
            }
        }
    }
}

fn last_lines(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// A regular expression that matches this text.
fn literal(text: &str) -> String {
    let mut expression = String::new();
    for character in text.chars() {
        if character.is_ascii_punctuation() {
            expression.push('\\');
        }
        expression.push(character);
    }
    expression
}

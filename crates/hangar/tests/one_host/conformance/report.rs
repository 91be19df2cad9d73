//! What became of tests: counts by those who own them (SIGs), and each that failed with what it says.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// Of the longest message, which may have whole objects in it.
const SHOWN: usize = 2000;

/// By name. A test that was run several times is what it was the last time.
#[derive(Default)]
pub(super) struct Report(BTreeMap<String, Spec>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Option<Vec<Spec>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    run_time: u64,
    #[serde(default)]
    failure: Failure,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Failure {
    message: String,
    location: Location,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Location {
    file_name: String,
    line_number: u64,
}

impl Spec {
    fn name(&self) -> String {
        let mut words = self.container_hierarchy_texts.clone().unwrap_or_default();
        let is_test = self.leaf_node_type == "It";
        words.push(if is_test { self.leaf_node_text.clone() } else { self.leaf_node_type.clone() });
        words.join(" ")
    }

    /// Tests that were not chosen are in the report too. One that was and finds nothing to do says why. What comes before
    /// and after all tests counts only where it failed.
    fn counts(&self) -> bool {
        match (self.leaf_node_type.as_str(), self.state.as_str()) {
            (_, "pending") => false,
            ("It", "skipped") => !self.failure.message.is_empty(),
            ("It", _) => true,
            _ => self.has_failed(),
        }
    }

    fn has_failed(&self) -> bool {
        !matches!(self.state.as_str(), "passed" | "skipped" | "pending")
    }

    fn group(&self) -> String {
        let name = self.name();
        let found = name.split_once("[sig-").and_then(|(_, rest)| rest.split_once(']'));
        found.map_or_else(|| "others".to_owned(), |(group, _)| format!("sig-{group}"))
    }
}

impl Report {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let suites: Vec<Suite> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let specs = suites.into_iter().flat_map(|suite| suite.spec_reports.unwrap_or_default());
        Ok(Self(specs.filter(Spec::counts).map(|spec| (spec.name(), spec)).collect()))
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn failed(&self) -> Vec<String> {
        let failed = self.0.iter().filter(|(_, spec)| spec.has_failed());
        failed.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn passed(&self) -> usize {
        self.0.keys().filter(|name| self.has_passed(name)).count()
    }

    pub(super) fn has_passed(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|spec| spec.state == "passed")
    }

    pub(super) fn totals(&self) -> String {
        totals(self.0.values())
    }
}

/// Such as `3 passed, 1 failed`.
fn totals<'a>(specs: impl Iterator<Item = &'a Spec>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for spec in specs {
        *counts.entry(&spec.state).or_default() += 1;
    }
    let passed = counts.remove("passed").unwrap_or_default();
    let others = counts.iter().map(|(state, count)| format!("{count} {state}"));
    std::iter::once(format!("{passed} passed")).chain(others).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<String, Vec<&Spec>> = BTreeMap::new();
        for spec in self.0.values() {
            groups.entry(spec.group()).or_default().push(spec);
        }
        for (group, specs) in groups {
            writeln!(formatter, "{group:<24} {}", totals(specs.into_iter()))?;
        }
        writeln!(formatter, "{:<24} {}", "all", self.totals())?;
        for (name, spec) in self.0.iter().filter(|(_, spec)| spec.state != "passed") {
            let seconds = std::time::Duration::from_nanos(spec.run_time).as_secs();
            writeln!(formatter, "\n{}: {name} ({seconds} s)", spec.state)?;
            let message: String = spec.failure.message.chars().take(SHOWN).collect();
            writeln!(formatter, "    {}", message.replace('\n', "\n    "))?;
            let Location { file_name, line_number } = &spec.failure.location;
            writeln!(formatter, "    {file_name}:{line_number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(kind: &str, name: &str, state: &str, message: &str) -> Value {
        json!({
            "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": kind, "LeafNodeText": name,
            "State": state, "RunTime": 2_500_000_000_u64,
            "Failure": {"Message": message, "Location": {"FileName": "pods.go", "LineNumber": 7}},
        })
    }

    #[test]
    fn tests_are_counted_and_failures_are_told() {
        let report = json!([
            {"SpecReports": null},
            {"SpecReports": [
                spec("It", "run", "passed", ""),
                spec("It", "stop", "failed", "one\ntwo"),
                spec("It", "are not chosen", "skipped", ""),
                spec("It", "need what is not here", "skipped", "no such thing"),
                spec("SynchronizedBeforeSuite", "", "passed", ""),
                spec("SynchronizedAfterSuite", "", "timedout", "late"),
            ]},
        ]);
        let report = Report::parse(&report.to_string()).unwrap();
        assert_eq!(report.failed(), ["[sig-node] Pods SynchronizedAfterSuite", "[sig-node] Pods stop"]);
        assert_eq!(report.passed(), 1);
        assert_eq!(report.totals(), "1 passed, 1 failed, 1 skipped, 1 timedout");
        let text = report.to_string();
        assert!(text.starts_with("sig-node                 1 passed, 1 failed,"), "{text}");
        let told = "failed: [sig-node] Pods stop (2 s)\n    one\n    two\n    pods.go:7\n";
        assert!(text.contains(told), "{text}");
        assert!(!text.contains("are not chosen"), "{text}");
    }

    #[test]
    fn what_passes_later_has_passed() {
        let of = |state: &str| {
            Report::parse(&json!([{"SpecReports": [spec("It", "run", state, "")]}]).to_string()).unwrap()
        };
        let mut report = of("failed");
        assert!(!report.has_passed("[sig-node] Pods run"));
        report.add(of("passed"));
        assert!(report.has_passed("[sig-node] Pods run") && report.failed().is_empty());
    }
}

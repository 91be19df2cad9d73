//! Tests that every declared reason has a clear sentence and one meaning, and is documented.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hangar_api::conditions::{Origin, Priority};

use super::*;

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[test]
fn every_reason_has_a_sentence_and_one_meaning() {
    for known in catalogue() {
        for condition in known.all() {
            let mut seen = BTreeMap::new();
            for reason in condition.declared() {
                let what = format!("{} {} {}", known.kind, condition.name, reason.name);
                assert!(reason.means.ends_with('.'), "{what}: {}", reason.means);
                assert!(reason.name.chars().all(char::is_alphanumeric), "{what}");
                let is_good = Priority::of(reason.status, condition.polarity) == Priority::Info;
                assert_eq!(is_good, reason.who.is_empty(), "{what}: who must act");
                let former = seen.insert((reason.name, reason.status.as_str()), reason);
                assert_eq!(former, None, "{what} is declared twice");
            }
        }
    }
}

/// `HANGAR_BLESS=1` writes it.
#[test]
fn the_reference_is_what_is_declared() {
    let (path, page) = (docs("reference/conditions.md"), reference::page());
    if std::env::var_os("HANGAR_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{} differs (HANGAR_BLESS=1 regenerates it)", path.display());
}

/// Words in backticks that begin like a reason: `PascalCase`, without a space, a dot or a slash.
fn words(text: &str) -> BTreeSet<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let words = quoted.flat_map(|quoted| quoted.split([':', ',', ' ', '/', '(', ')']));
    let is_reason = |word: &&str| {
        word.chars().next().is_some_and(|first| first.is_ascii_uppercase())
            && word.chars().all(|letter| letter.is_ascii_alphanumeric())
            && word.chars().any(|letter| letter.is_ascii_lowercase())
    };
    words.filter(is_reason).collect()
}

/// The sections of the runbook that are about conditions of one kind: name and text.
fn sections(runbook: &str) -> Vec<(&str, &str)> {
    runbook.split("\n## ").skip(1).filter_map(|section| section.split_once('\n')).collect()
}

#[test]
fn the_runbook_says_what_to_do_about_every_reason_and_about_no_other() {
    let runbook = fs::read_to_string(docs("troubleshooting.md")).unwrap();
    let sections = sections(&runbook);
    let everywhere: BTreeSet<&str> = sections
        .iter()
        .filter(|(title, _)| *title == "Every object")
        .flat_map(|(_, text)| words(text))
        .collect();
    let mut problems = Vec::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for known in catalogue() {
        let own = sections.iter().filter(|(title, _)| title.split(" and ").any(|kind| kind == known.kind));
        let own: BTreeSet<&str> = own.flat_map(|(_, text)| words(text)).collect();
        for condition in known.all() {
            names.insert(condition.name.to_owned());
            if condition.origin == Origin::Merged {
                names.insert(format!("Not{}", condition.name));
                names.insert(format!("{}Unknown", condition.name));
            }
            for reason in condition.declared() {
                names.insert(reason.name.to_owned());
                let is_there = own.contains(reason.name) || everywhere.contains(reason.name);
                if !reason.who.is_empty() && !is_there {
                    problems.push(format!("{} {}: {} is missing", known.kind, condition.name, reason.name));
                }
            }
        }
    }
    // Kinds, fields and the like that stand in backticks beside the reasons.
    let others = [
        "Cluster",
        "Gateway",
        "LoadBalancer",
        "MachineHealthCheck",
        "Node",
        "OnDelete",
        "RollingUpdate",
        "Template",
        "EXTERNAL",
        "NodePort",
    ];
    let kinds: Vec<&str> = catalogue().iter().map(|known| known.kind).collect();
    for (title, text) in &sections {
        let is_about_conditions =
            *title == "Every object" || title.split(" and ").any(|kind| kinds.contains(&kind));
        for word in words(text).into_iter().filter(|_| is_about_conditions) {
            if !names.contains(word) && !others.contains(&word) && !kinds.contains(&word) {
                problems.push(format!("section {title}: {word} is no reason"));
            }
        }
    }
    assert!(problems.is_empty(), "docs/troubleshooting.md:\n{}", problems.join("\n"));
}

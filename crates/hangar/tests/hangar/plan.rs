//! `hangar plan` offline: runs the sessions of the book and compares the output.
//!
//! `INSTA_UPDATE=always` writes what the binary prints into the page instead of comparing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::installation::HANGAR;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plan.md");
const SAMPLE: &str = include_str!("../../../../lab/host/src/sample/cluster.yaml");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// What `hangar up` fills into the sample.
const WORDS: [(&str, &str); 11] = [
    ("NAME", "demo"),
    ("NAMESPACE", "default"),
    ("VERSION", "v1.34.10"),
    ("AUTH_URL", "http://100.72.0.5:5000/identity/v3"),
    ("USERNAME", "hangar"),
    ("PASSWORD", "correct-horse"),
    ("PROJECT", "hangar"),
    ("REGION", "RegionOne"),
    ("EXTERNAL_NETWORK", "external"),
    ("FLAVOR", "small"),
    ("IMAGE", "kubernetes-v1.34.10"),
];

/// A directory with the files that the sessions name.
fn files() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let sample = WORDS
        .iter()
        .fold(SAMPLE.to_owned(), |text, (word, value)| text.replace(&format!("${{{word}}}"), value));
    fs::write(directory.path().join("demo.yaml"), sample).unwrap();
    let copies = [
        ("documents/4-hosted-control-plane/basic.yaml", "control-plane.yaml"),
        ("documents/4-hosted-control-plane/cluster.yaml", "cluster.yaml"),
        ("plan/wrong.yaml", "wrong.yaml"),
    ];
    for (from, to) in copies {
        fs::copy(Path::new(FIXTURES).join(from), directory.path().join(to)).unwrap();
    }
    directory
}

fn hangar(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(HANGAR)
        .args(arguments)
        .current_dir(directory)
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .output()
        .unwrap()
}

/// What a terminal shows of a command, with its exit code where that is not zero.
fn session(directory: &Path, command: &str) -> String {
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let output = hangar(directory, &arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = match output.status.code().unwrap() {
        0 => String::new(),
        code => format!("(exit code {code})\n"),
    };
    let shown = text(output.stdout) + &text(output.stderr);
    format!("$ {command}\n{}\n{code}", shown.trim_end())
}

/// The page with its sessions as the binary prints them now.
fn page(directory: &Path, page: &str) -> String {
    const FENCE: &str = "```console\n";
    let mut parts = page.split(FENCE);
    let mut now = parts.next().unwrap().to_owned();
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let command = block.lines().next().unwrap().strip_prefix("$ ").unwrap();
        now.extend([FENCE, &session(directory, command), "```", rest]);
    }
    now
}

#[test]
fn the_book_shows_what_the_binary_prints() {
    let (directory, written) = (files(), fs::read_to_string(PAGE).unwrap());
    let now = page(directory.path(), &written);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(PathBuf::from(PAGE), &now).unwrap();
        return;
    }
    for (line, (written, now)) in written.lines().zip(now.lines()).enumerate() {
        assert_eq!(written, now, "docs/plan.md, line {}", line + 1);
    }
    assert_eq!(written.lines().count(), now.lines().count());
}

#[test]
fn objects_in_full_are_the_same_in_every_run_and_without_secrets() {
    let directory = files();
    let run = |format: &str| {
        let output = hangar(directory.path(), &["plan", "-f", "demo.yaml", "-o", format]);
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let yaml = run("yaml");
    assert_eq!(yaml, run("yaml"));
    assert!(
        yaml.contains("tls.key: \"<to be minted: ") || yaml.contains("tls.key: '<to be minted: "),
        "{yaml}"
    );
    let json = run("json");
    for text in [&yaml, &json] {
        assert!(!text.contains("correct-horse") && !text.contains("PRIVATE KEY"));
    }
    let objects: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    for kind in ["StatefulSet", "MachineSet", "Machine", "KubeadmConfig", "OpenStackMachine"] {
        assert_eq!(kinds.iter().filter(|found| **found == kind).count(), 1, "{kind}");
    }
    let plan: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(plan["plans"][0]["kind"], "Cluster");
}

#[test]
fn what_cannot_be_read_is_named() {
    let directory = files();
    fs::write(directory.path().join("broken.yaml"), "a: [").unwrap();
    let output = hangar(directory.path(), &["plan", "-f", "broken.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("broken.yaml"));
    assert_eq!(hangar(directory.path(), &["plan"]).status.code(), Some(2), "usage");
    let nowhere = hangar(directory.path(), &["plan", "--against", "-f", "demo.yaml"]);
    assert!(String::from_utf8(nowhere.stderr).unwrap().contains("set KUBECONFIG or --kubeconfig"));
}

//! What is shipped for monitoring fits together: both forms of the alert rules say the same, and the book says what to do
//! about each alert. `HANGAR_BLESS=1` writes the second form anew.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rules() -> Value {
    let text = fs::read_to_string(root().join("deploy/monitoring/rules.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn the_prometheus_rule_has_the_same_rules() {
    let path = root().join("deploy/monitoring/prometheus-rule.yaml");
    let object = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "hangar", "namespace": "hangar-system"},
        "spec": rules(),
    });
    let head = "# Made from rules.yaml: change that file.\n";
    let text = format!("{head}{}", serde_saphyr::to_string(&object).unwrap());
    if std::env::var_os("HANGAR_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), text, "run it with HANGAR_BLESS=1");
}

#[test]
fn the_book_says_what_to_do_about_each_alert() {
    let book = fs::read_to_string(root().join("docs/monitoring.md")).unwrap();
    let rules = rules();
    let groups = rules["groups"].as_array().unwrap().iter();
    let mut names: Vec<&str> = Vec::new();
    for rule in groups.flat_map(|group| group["rules"].as_array().unwrap()) {
        let name = rule["alert"].as_str().unwrap();
        let runbook = format!("docs/monitoring.md#{}", name.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"], runbook.as_str());
        names.push(name);
    }
    let headings: Vec<&str> = book.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(headings, names, "one section for each alert, in the order of the rules");
}

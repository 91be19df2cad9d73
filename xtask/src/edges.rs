//! `cargo xtask edges`: who may import whom.
//!
//! The architecture is the crate graph: a crate that cannot import tokio cannot wait, one that cannot import the client
//! cannot read the world. The graph is read from `cargo metadata`; development dependencies are not edges, except
//! that nothing but tests may use the testbed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

/// Which of our crates each may import. A crate that is not listed here does not build a release.
const INTERNAL: &[(&str, &[&str])] = &[
    ("hangar-api", &["hangar-wire"]),
    ("hangar-audit", &[]),
    ("hangar-cloud", &["hangar-machine"]),
    ("hangar-etcd", &[]),
    ("hangar-machine", &[]),
    ("hangar-openstack", &[]),
    ("hangar-parts", &[]),
    ("hangar-pki", &[]),
    ("hangar-plan", &["hangar-api"]),
    ("hangar-kit", &["hangar-api", "hangar-pki", "hangar-plan"]),
    (
        "hangar-operator",
        &["hangar-api", "hangar-etcd", "hangar-kit", "hangar-openstack", "hangar-pki", "hangar-plan"],
    ),
    (
        "hangar-host",
        &["hangar-cloud", "hangar-kit", "hangar-machine", "hangar-parts", "hangar-pki", "hangar-plan"],
    ),
    ("hangar", &["hangar-audit", "hangar-cloud", "hangar-etcd", "hangar-host", "hangar-operator"]),
    ("hangar-testbed", &["hangar-kit", "hangar-parts", "hangar-pki"]),
    ("hangar-wire", &[]),
    ("hangar-bench", &["hangar-parts", "hangar-pki"]),
    (
        "hangar-fuzz",
        &[
            "hangar-api",
            "hangar-cloud",
            "hangar-kit",
            "hangar-openstack",
            "hangar-operator",
            "hangar-pki",
            "hangar-plan",
        ],
    ),
    ("xtask", &["hangar-bench", "hangar-parts"]),
];

/// Crates that do I/O, and the crates that may import them. All others are pure or get them through these.
const EXTERNAL: &[(&str, &[&str])] = &[
    (
        "tokio",
        &[
            "hangar",
            "hangar-audit",
            "hangar-cloud",
            "hangar-etcd",
            "hangar-fuzz",
            "hangar-host",
            "hangar-kit",
            "hangar-openstack",
            "hangar-operator",
            "hangar-testbed",
        ],
    ),
    ("kube-client", &["hangar", "hangar-host", "hangar-kit", "hangar-operator", "hangar-testbed"]),
    ("kube-runtime", &["hangar-kit", "hangar-operator"]),
    ("reqwest", &[]),
    ("axum", &["hangar-kit"]),
    ("rcgen", &["hangar-pki"]),
];

/// Check who imports whom.
#[derive(Debug, Args)]
pub(crate) struct Edges {}

impl Edges {
    pub(crate) fn run() -> anyhow::Result<()> {
        let metadata = metadata()?;
        let graph = imports(&metadata);
        let problems = check(&graph);
        if !problems.is_empty() {
            bail!("crate edges:\n  {}", problems.join("\n  "));
        }
        println!("crate edges: {} crates, all as drawn", graph.len());
        Ok(())
    }
}

/// What cargo knows about the workspace.
pub(crate) fn metadata() -> anyhow::Result<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--locked", "--no-deps"])
        .output()
        .context("cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("the output of cargo metadata")
}

/// The normal dependencies of each of our crates. The features of `kube` decide which of its crates are behind it.
fn imports(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut graph = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let mut names = BTreeSet::new();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if !dependency["kind"].is_null() {
                continue;
            }
            let name = text(&dependency["name"]);
            if name == "kube" {
                let has = |feature: &str| {
                    dependency["features"].as_array().into_iter().flatten().any(|value| value == feature)
                };
                names.extend(has("client").then(|| "kube-client".to_owned()));
                names.extend(has("runtime").then(|| "kube-runtime".to_owned()));
            }
            names.insert(name);
        }
        graph.insert(text(&package["name"]), names);
    }
    graph
}

fn check(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, imports) in graph {
        let Some((_, allowed)) = INTERNAL.iter().find(|(crate_name, _)| crate_name == name) else {
            problems.push(format!("{name} is not in the table of crates (xtask/src/edges.rs)"));
            continue;
        };
        for import in imports {
            if graph.contains_key(import) && !allowed.contains(&import.as_str()) {
                problems.push(format!("{name} must not import {import}"));
            }
            if let Some((_, importers)) = EXTERNAL.iter().find(|(external, _)| external == import)
                && !importers.contains(&name.as_str())
            {
                problems.push(format!("{name} must not import {import}: only {} may", importers.join(", ")));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(name: &str, imports: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
        let mut graph: BTreeMap<_, _> =
            INTERNAL.iter().map(|(name, _)| ((*name).to_owned(), BTreeSet::new())).collect();
        graph.insert(name.to_owned(), imports.iter().map(|import| (*import).to_owned()).collect());
        graph
    }

    #[test]
    fn a_pure_crate_must_not_wait_nor_read_the_world() {
        assert_eq!(check(&graph("hangar-plan", &["hangar-api", "serde"])), Vec::<String>::new());
        assert!(
            check(&graph("hangar-plan", &["tokio"]))[0]
                .starts_with("hangar-plan must not import tokio: only")
        );
        assert_eq!(check(&graph("hangar-plan", &["hangar-kit"])), ["hangar-plan must not import hangar-kit"]);
    }

    #[test]
    fn a_new_crate_must_be_drawn_first() {
        assert_eq!(
            check(&graph("hangar-utils", &[])),
            ["hangar-utils is not in the table of crates (xtask/src/edges.rs)"]
        );
    }

    #[test]
    fn features_of_the_facade_decide_what_is_imported() {
        let metadata = serde_json::json!({ "packages": [{
            "name": "hangar-api",
            "dependencies": [
                { "name": "kube", "kind": null, "features": ["client"] },
                { "name": "tokio", "kind": "dev", "features": [] },
            ],
        }] });
        let imports = imports(&metadata);
        assert!(imports["hangar-api"].contains("kube-client"));
        assert!(!imports["hangar-api"].contains("tokio"));
    }
}

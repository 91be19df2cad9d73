//! Reads the documents from files, fills in their placeholders and splits them into objects.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// One object of a document.
#[derive(Debug, Clone)]
pub(super) struct Fixture {
    /// Path below the fixtures.
    pub(super) file: String,
    /// The YAML that is applied.
    pub(super) text: String,
    pub(super) object: Value,
}

impl Fixture {
    fn field(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn api_version(&self) -> &str {
        self.field("/apiVersion")
    }

    pub(super) fn kind(&self) -> &str {
        self.field("/kind")
    }

    pub(super) fn name(&self) -> &str {
        self.field("/metadata/name")
    }

    /// The namespace it names; `kubectl` puts the rest into `default`.
    pub(super) fn namespace(&self) -> &str {
        Some(self.field("/metadata/namespace")).filter(|name| !name.is_empty()).unwrap_or("default")
    }
}

/// A line of `substitutions.txt`.
#[derive(Debug)]
pub(super) struct Substitution {
    pub(super) written: String,
    pub(super) filled_in: String,
}

/// A line of `absent.txt`.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) file: String,
    pub(super) api_version: String,
    pub(super) kind: String,
}

impl Absent {
    pub(super) fn is(&self, fixture: &Fixture) -> bool {
        self.file == fixture.file && self.api_version == fixture.api_version() && self.kind == fixture.kind()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a table without comments and empty lines, split into their columns.
fn table(name: &str, separator: &str) -> Vec<Vec<String>> {
    let text = read(&root().join("documents").join(name));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split(separator).map(str::to_owned).collect()).collect()
}

/// The longest first: `$CLUSTER_NAME` is the beginning of another variable.
pub(super) fn substitutions() -> Vec<Substitution> {
    let mut all: Vec<Substitution> = table("substitutions.txt", " => ")
        .into_iter()
        .map(|columns| {
            let [written, filled_in] = columns.try_into().unwrap();
            Substitution { written, filled_in }
        })
        .collect();
    all.sort_by_key(|substitution| std::cmp::Reverse(substitution.written.len()));
    all
}

pub(super) fn absent() -> Vec<Absent> {
    let parse = |columns: Vec<String>| {
        let [file, what, reason] = columns.try_into().unwrap();
        assert!(!reason.is_empty(), "{file}: an absent kind has a reason");
        let (api_version, kind) = what.split_once(' ').unwrap();
        Absent { file, api_version: api_version.to_owned(), kind: kind.to_owned() }
    };
    table("absent.txt", " | ").into_iter().map(parse).collect()
}

/// The manifests below a directory of the fixtures as people have them, by path.
pub(super) fn raw(directory: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(root().join(directory))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| {
            let folder = directory.trim_start_matches("documents/");
            (format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap()), read(&path))
        })
        .collect();
    files.sort();
    files
}

/// The names of the documents.
pub(super) fn documents() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root().join("documents"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| format!("documents/{}", entry.file_name().to_str().unwrap()))
        .collect();
    names.sort();
    names
}

/// The objects below a directory of the fixtures, filled in.
pub(super) fn load(directory: &str) -> Vec<Fixture> {
    let substitutions = substitutions();
    let mut fixtures = Vec::new();
    for (file, mut text) in raw(directory) {
        for Substitution { written, filled_in } in &substitutions {
            text = text.replace(written, filled_in);
        }
        for text in text.split("\n---\n") {
            let object = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            fixtures.push(Fixture { file: file.clone(), text: text.to_owned(), object });
        }
    }
    fixtures
}

/// One object of the fixtures.
pub(super) fn one(file: &str, kind: &str) -> Fixture {
    let folder = file.split('/').next().unwrap();
    let directory = if folder == "other-kinds" { folder.to_owned() } else { format!("documents/{folder}") };
    let mut found =
        load(&directory).into_iter().filter(|fixture| fixture.file == file && fixture.kind() == kind);
    found.next().unwrap_or_else(|| panic!("no {kind} in {file}"))
}

/// The CRD of a provider that Hangar does not have, with the label by which providers say what they implement.
pub(super) fn stub_definition(kind: &str, versions: &[&str]) -> Value {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = |name: &&str| {
        let status = json!({ "status": {} });
        let stored = versions.last() == Some(name);
        json!({ "name": name, "served": true, "storage": stored, "schema": schema, "subresources": status })
    };
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{singular}s.infrastructure.cluster.x-k8s.io"),
            "labels": { "cluster.x-k8s.io/v1beta1": versions.join("_") },
        },
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": kind, "plural": format!("{singular}s"), "singular": singular },
            "versions": versions.iter().map(version).collect::<Vec<Value>>(),
        },
    })
}

//! Tests that `deploy/crds` and `docs/reference` match the types. `HANGAR_BLESS=1` regenerates them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use hangar_api::crd;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::DEFINITIONS;

/// A directory of generated files: exactly these, with exactly this content.
struct Golden {
    directory: PathBuf,
    files: BTreeMap<String, String>,
}

impl Golden {
    fn of(
        directory: &str,
        definitions: &[CustomResourceDefinition],
        file: impl Fn(&CustomResourceDefinition) -> (String, String),
    ) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self { directory: root.join(directory), files: definitions.iter().map(file).collect() }
    }

    fn checked_in(&self) -> BTreeMap<String, String> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return BTreeMap::new() };
        let read = |entry: fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
        };
        // The pages of conditions and rights are generated from plans.
        let is_ours = |name: &str| name != "conditions.md" && name != "rights.md";
        entries.map(|entry| read(entry.unwrap())).filter(|(name, _)| is_ours(name)).collect()
    }

    fn bless(&self) {
        fs::create_dir_all(&self.directory).unwrap();
        for name in self.checked_in().keys().filter(|name| !self.files.contains_key(*name)) {
            fs::remove_file(self.directory.join(name)).unwrap();
        }
        for (name, text) in &self.files {
            fs::write(self.directory.join(name), text).unwrap();
        }
    }

    #[track_caller]
    fn check(&self) {
        if std::env::var_os("HANGAR_BLESS").is_some_and(|value| value == "1") {
            self.bless();
        }
        let checked_in = self.checked_in();
        let stale: Vec<_> = checked_in.keys().filter(|name| !self.files.contains_key(*name)).collect();
        let missing: Vec<_> = self.files.keys().filter(|name| !checked_in.contains_key(*name)).collect();
        let differing: Vec<_> = self
            .files
            .iter()
            .filter(|(name, text)| checked_in.get(*name).is_some_and(|other| other != *text))
            .map(|(name, text)| format!("{name}: {}", first_difference(&checked_in[name], text)))
            .collect();
        assert!(
            stale.is_empty() && missing.is_empty() && differing.is_empty(),
            "{} differs from the types (HANGAR_BLESS=1 regenerates it): stale {stale:?}, missing {missing:?}, differing {differing:#?}",
            self.directory.display(),
        );
    }
}

fn definitions_as_files(definitions: &[CustomResourceDefinition]) -> Golden {
    Golden::of("deploy/crds", definitions, |definition| {
        (crd::file_name(definition), crd::to_yaml(definition).unwrap())
    })
}

#[test]
fn files_are_what_the_types_say() {
    definitions_as_files(&DEFINITIONS).check();
}

#[test]
fn reference_pages_are_what_the_types_say() {
    Golden::of("docs/reference", &DEFINITIONS, |definition| {
        (crd::reference::file_name(definition), crd::reference::page(definition))
    })
    .check();
}

fn first_difference(file: &str, types: &str) -> String {
    let mut lines = file.lines().zip(types.lines()).enumerate();
    match lines.find(|(_, (file, types))| file != types) {
        Some((number, (file, types))) => {
            format!("line {}: file has {file:?}, types say {types:?}", number + 1)
        }
        None => format!("file has {} lines, types say {}", file.lines().count(), types.lines().count()),
    }
}

#[test]
fn text_reads_back_as_the_same_definition() {
    for definition in DEFINITIONS.iter() {
        let text = crd::to_yaml(definition).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, crd::yaml::to_json(definition).unwrap(), "{}", crd::file_name(definition));
    }
}

#[test]
fn text_is_the_same_every_time() {
    assert_eq!(definitions_as_files(&DEFINITIONS).files, definitions_as_files(&crd::all()).files);
}

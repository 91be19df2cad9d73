//! The programs of a control plane as the plan renders them, from its goldens.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

const GOLDENS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/plan/src/hosted_control_plane/tests/snapshots/hangar_plan__hosted_control_plane__tests__scenarios__"
);

/// The objects of a golden.
pub(super) fn objects(golden: &str) -> anyhow::Result<Vec<Value>> {
    let path = format!("{GOLDENS}{golden}.snap");
    let text = std::fs::read_to_string(Path::new(&path)).with_context(|| path.clone())?;
    let documents = text.split("\n---\n").filter(|document| document.contains("apiVersion: "));
    let documents = documents.filter(|document| !document.starts_with("---\nsource:"));
    documents.map(|document| serde_saphyr::from_str(document).with_context(|| path.clone())).collect()
}

/// A container of a pod.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    /// The workload that it is of.
    pub(super) workload: String,
    pub(super) arguments: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    /// Memory that it requests.
    pub(super) request: String,
    /// Names of hosts that its pod knows, with their addresses.
    pub(super) aliases: Vec<(String, String)>,
    pub(super) mounts: Vec<Mount>,
}

/// Where a container has files, and which.
#[derive(Debug)]
pub(super) struct Mount {
    pub(super) path: String,
    pub(super) files: Vec<File>,
}

/// A key of a Secret or a ConfigMap as a file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) is_secret: bool,
    pub(super) object: String,
    /// All keys, under their names, if empty.
    pub(super) key: Option<(String, String)>,
}

/// The containers of all workloads among the objects.
pub(super) fn programs(objects: &[Value]) -> Vec<Program> {
    let workloads = objects
        .iter()
        .filter(|object| ["Deployment", "StatefulSet"].iter().any(|kind| object["kind"] == *kind));
    let mut programs = Vec::new();
    for workload in workloads {
        let pod = &workload["spec"]["template"]["spec"];
        let name = text(&workload["metadata"]["name"]);
        for container in items(&pod["containers"]) {
            programs.push(program(&name, pod, container));
        }
    }
    programs
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn program(workload: &str, pod: &Value, container: &Value) -> Program {
    // The first pod of a StatefulSet is called so; for others any name will do.
    let field = |path: &str| match path {
        "metadata.name" => format!("{workload}-0"),
        _ => super::NODE.to_owned(),
    };
    let variables: BTreeMap<String, String> = items(&container["env"])
        .iter()
        .map(|variable| {
            let from = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
            (text(&variable["name"]), from.map_or_else(|| text(&variable["value"]), field))
        })
        .collect();
    let expanded = |argument: &Value| {
        let known = variables.iter();
        known.fold(text(argument), |done, (name, value)| done.replace(&format!("$({name})"), value))
    };
    let aliases = items(&pod["hostAliases"])
        .iter()
        .flat_map(|alias| items(&alias["hostnames"]).iter().map(|name| (text(name), text(&alias["ip"]))));
    let volume = |name: &Value| items(&pod["volumes"]).iter().find(|volume| volume["name"] == *name);
    let mounts = items(&container["volumeMounts"]).iter().map(|mount| Mount {
        path: text(&mount["mountPath"]),
        files: volume(&mount["name"]).map(files).unwrap_or_default(),
    });
    Program {
        name: text(&container["name"]),
        workload: workload.to_owned(),
        arguments: items(&container["args"]).iter().map(expanded).collect(),
        request: text(&container["resources"]["requests"]["memory"]),
        aliases: aliases.collect(),
        mounts: mounts.collect(),
        variables,
    }
}

fn files(volume: &Value) -> Vec<File> {
    let mut files = Vec::new();
    if let Some(name) = volume["configMap"]["name"].as_str() {
        files.push(File { is_secret: false, object: name.to_owned(), key: None });
    }
    for source in items(&volume["projected"]["sources"]) {
        for (kind, is_secret) in [("secret", true), ("configMap", false)] {
            for item in items(&source[kind]["items"]) {
                let object = text(&source[kind]["name"]);
                let key = Some((text(&item["key"]), text(&item["path"])));
                files.push(File { is_secret, object, key });
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::super::{AGENT, CONTROL_PLANE};
    use super::*;

    #[test]
    fn the_goldens_have_all_programs() {
        let hosted = programs(&objects("everything_is_ready").unwrap());
        let mut names: Vec<&str> = hosted.iter().map(|program| program.name.as_str()).collect();
        let mut expected = CONTROL_PLANE.to_vec();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert!(hosted.iter().all(|program| !program.request.is_empty() && !program.mounts.is_empty()));
        let etcd = hosted.iter().find(|program| program.name == "etcd").unwrap();
        assert_eq!(etcd.arguments, ["--config-file=/etc/etcd/configuration/demo-etcd-0.yaml"]);
        let tenant = programs(&objects("the_tenant").unwrap());
        assert!(tenant.iter().any(|program| program.name == AGENT && !program.aliases.is_empty()));
    }
}

//! Pieces that the pods of all components have: images, flags, probes, isolation, spreading.
//!
//! Every pod runs under the restricted profile: no root, no privilege, a root file system that cannot be written. One
//! capability is added where upstream's images ask for it: their kube-apiserver carries it as a file capability, and the
//! kernel does not start a file whose capabilities are outside the bounding set.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::{Container, Image, ImagePullPolicy};
use serde_json::{Value, json};

use super::material::{Material, keys};
use super::names::{Component, VERSION_LABEL};
use super::trust::BUNDLE;
use super::validate::Validated;

/// No root, no name: any id that no file of the images belongs to.
const USER: i64 = 65532;
/// Files from Secrets: for the pod's group, which is what the user above has.
const SECRET_MODE: i32 = 0o440;

pub(super) const REGISTRY: &str = "registry.k8s.io";

/// The name of an image: each part that people gave replaces that part of the default.
pub(super) fn image(given: Option<&Image>, repository: &str, tag: &str) -> String {
    let part = |part: fn(&Image) -> Option<&String>, default: &str| {
        given.and_then(part).map_or_else(|| default.to_owned(), Clone::clone)
    };
    format!(
        "{}/{}:{}",
        part(|image| image.registry.as_ref(), REGISTRY),
        part(|image| image.repository.as_ref(), repository),
        part(|image| image.tag.as_ref(), tag),
    )
}

/// What is the same for all containers.
pub fn plain_container(name: &str, image: &str, (cpu, memory): (&str, &str)) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "securityContext": restricted(&[]),
    })
}

/// A container with what people may set on it. Requests are small: a tenant at rest needs little, and what people give
/// replaces them.
pub(super) fn container(
    name: &str,
    given: &Container,
    repository: &str,
    tag: &str,
    requests: (&str, &str),
) -> Value {
    let mut container = plain_container(name, &image(given.image.as_ref(), repository, tag), requests);
    container["imagePullPolicy"] = json!(match given.image_pull_policy.unwrap_or_default() {
        ImagePullPolicy::Always => "Always",
        ImagePullPolicy::IfNotPresent => "IfNotPresent",
        ImagePullPolicy::Never => "Never",
    });
    if let Some(resources) = given.resources.as_ref().and_then(|given| serde_json::to_value(given).ok()) {
        container["resources"] = resources;
    }
    container
}

/// No privilege beyond the named capabilities.
pub fn restricted(capabilities: &[&str]) -> Value {
    let mut set = json!({"drop": ["ALL"]});
    if !capabilities.is_empty() {
        set["add"] = json!(capabilities);
    }
    json!({"allowPrivilegeEscalation": false, "capabilities": set, "readOnlyRootFilesystem": true})
}

/// Flags of a program.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// What the control plane needs to work.
    pub(super) owned: BTreeMap<&'static str, String>,
    /// What people may change.
    pub(super) suggested: BTreeMap<&'static str, String>,
}

impl Flags {
    /// Flags from pairs.
    pub(super) fn new<const OWNED: usize, const SUGGESTED: usize>(
        owned: [(&'static str, String); OWNED],
        suggested: [(&'static str, &str); SUGGESTED],
    ) -> Self {
        let suggested = suggested.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        Self { owned: owned.into(), suggested }
    }

    /// The command line, in the order of names, and those of the given flags that are not honoured.
    pub(super) fn merged(self, given: &BTreeMap<String, String>) -> (Vec<String>, Vec<String>) {
        let mut flags: BTreeMap<String, String> =
            self.suggested.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut refused = Vec::new();
        for (name, value) in given {
            match self.owned.get(name.as_str()) {
                Some(owned) if owned != value => refused.push(name.clone()),
                _ => {
                    flags.insert(name.clone(), value.clone());
                }
            }
        }
        flags.extend(self.owned.into_iter().map(|(name, value)| (name.to_owned(), value)));
        (flags.into_iter().map(|(name, value)| format!("--{name}={value}")).collect(), refused)
    }
}

/// How a container is asked how it is.
pub fn probe(path: &str, port: u16, scheme: &str, period: u32, timeout: u32, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": port, "scheme": scheme},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    })
}

/// Files from Secrets and ConfigMaps in one directory.
#[derive(Debug)]
pub(super) struct Files(Vec<Value>);

impl Files {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Files of a Secret: key and file name.
    pub(super) fn secret(
        mut self,
        validated: &Validated<'_>,
        material: Material,
        files: &[(&str, &str)],
    ) -> Self {
        let name = validated.names.secret(material);
        self.0.push(json!({"secret": {"name": name, "items": items(files)}}));
        self
    }

    /// Certificate and key of a material, as `name.crt` and `name.key`.
    pub(super) fn pair(self, validated: &Validated<'_>, material: Material, name: &str) -> Self {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        self.secret(validated, material, &[(keys::CERTIFICATE, &certificate), (keys::PRIVATE_KEY, &key)])
    }

    /// Whom to trust of an authority: its bundle, never what it signs with.
    pub(super) fn authority(self, validated: &Validated<'_>, material: Material, file: &str) -> Self {
        self.config_map(&validated.names.trust(material), &[(BUNDLE, file)])
    }

    /// Files of a ConfigMap: key and file name.
    pub(super) fn config_map(mut self, name: &str, files: &[(&str, &str)]) -> Self {
        self.0.push(json!({"configMap": {"name": name, "items": items(files)}}));
        self
    }

    pub(super) fn volume(self, name: &str) -> Value {
        json!({"name": name, "projected": {"defaultMode": SECRET_MODE, "sources": self.0}})
    }
}

fn items(files: &[(&str, &str)]) -> Vec<Value> {
    files.iter().map(|(key, path)| json!({"key": key, "path": path})).collect()
}

/// A read-only mount.
pub(super) fn mount(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path, "readOnly": true})
}

/// A pod template of a component.
pub(super) struct Template {
    pub(super) component: Component,
    pub(super) version: String,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) priority_class: Option<String>,
    pub(super) grace_seconds: u32,
    pub(super) containers: Vec<Value>,
    pub(super) volumes: Vec<Value>,
}

impl Template {
    pub(super) fn render(self, validated: &Validated<'_>) -> Value {
        let selector = validated.selector(self.component);
        let mut labels = validated.labels(self.component);
        labels.insert(VERSION_LABEL.to_owned(), self.version);
        let spread = |key: &str| {
            json!({
                "maxSkew": 1,
                "topologyKey": key,
                // One node must be enough, and a zone that is full must not stop a replacement.
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector},
            })
        };
        let mut metadata = json!({"labels": labels});
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        let mut spec = json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": self.grace_seconds,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
            "containers": self.containers,
            "volumes": self.volumes,
        });
        if let Some(class) = self.priority_class {
            spec["priorityClassName"] = json!(class);
        }
        json!({"metadata": metadata, "spec": spec})
    }
}

/// The strategy of Deployments whose pods must not be fewer than wanted at any moment.
pub(super) fn gentle_rollout() -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
}

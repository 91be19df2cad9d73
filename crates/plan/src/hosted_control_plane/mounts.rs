//! Files of users in the API server's container (`spec.deployment.apiServer.mounts`).
//!
//! Programs read such files when they start, so other content needs other pods: the contents' hashes are part of the hash
//! that replaces them. A pod whose source is missing hangs before it starts, so as long as one is missing the Deployment
//! is not touched: what runs goes on.

use hangar_api::controlplane::v1alpha1::{HostedControlPlaneSettings, Mount};
use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, SecretVolumeSource, Volume, VolumeMount};

use super::material::Material;
use super::names::Names;
use super::observed::Observed;
use super::sources::{Need, Source, SourceKind};
use crate::admission::FieldError;
use crate::flow::Read;
use crate::label::is_label;
use crate::pieces::mount;

const PATH: &str = "spec.deployment.apiServer.mounts";

/// Directories of the container that are not users': what the control plane mounts, what the kernel and the runtime put
/// there, and the program itself.
const TAKEN: [&str; 12] = [
    "/dev",
    "/etc/hangar",
    "/etc/kubernetes/configuration",
    "/etc/kubernetes/encryption",
    "/etc/kubernetes/pki",
    "/proc",
    "/run",
    "/sys",
    "/tmp",
    "/usr/local/bin",
    "/var/log/kubernetes",
    "/var/run",
];

fn given(settings: &HostedControlPlaneSettings) -> impl Iterator<Item = (&String, &Mount)> {
    let deployment = settings.deployment.as_ref();
    let api_server = deployment.and_then(|deployment| deployment.api_server.as_ref());
    api_server.into_iter().flat_map(|api_server| &api_server.mounts)
}

fn source(mount: &Mount) -> Option<Source> {
    let secret = mount.secret.as_ref().and_then(|secret| secret.secret_name.clone());
    let secret = secret.map(|name| Source { kind: SourceKind::Secret, name });
    let map = mount.config_map.as_ref().map(|map| map.name.clone());
    secret.or(map.map(|name| Source { kind: SourceKind::ConfigMap, name }))
}

/// What each mount needs.
pub(super) fn needs(settings: &HostedControlPlaneSettings) -> Vec<Need> {
    let need = |(name, mount): (&String, &Mount)| {
        let (items, optional) = match (&mount.config_map, &mount.secret) {
            (Some(map), _) => (map.items.clone(), map.optional),
            (_, Some(secret)) => (secret.items.clone(), secret.optional),
            _ => (None, None),
        };
        Some(Need {
            field: format!("{PATH}[{name}]"),
            source: source(mount)?,
            keys: items.into_iter().flatten().map(|item| item.key).collect(),
            is_optional: optional == Some(true),
        })
    };
    given(settings).filter_map(need).collect()
}

/// Hashes of what is mounted, or what is waited for.
pub(super) fn contents(
    observed: &Observed,
    settings: &HostedControlPlaneSettings,
) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    for need in needs(settings) {
        if let Some(missing) = need.missing(observed) {
            return Err(missing);
        }
        match observed.sources.get(&need.source) {
            Some(Read::One(facts)) => {
                let is_mounted = |key: &&String| need.keys.is_empty() || need.keys.contains(*key);
                let keys = facts.keys.keys().filter(is_mounted);
                parts.extend(keys.flat_map(|key| [need.field.clone(), key.clone(), facts.keys[key].clone()]));
            }
            Some(Read::Absent) => {}
            other => {
                let why = match other {
                    Some(Read::Unknown(unknown)) => unknown.why.as_str(),
                    _ => "it was not read",
                };
                return Err(format!("{}: {} ({why})", need.field, need.source));
            }
        }
    }
    Ok(parts)
}

/// Their names get a prefix: `pki` is a good name for a volume of users, too.
fn volume_name(name: &str) -> String {
    format!("given-{name}")
}

pub(super) fn volumes(settings: &HostedControlPlaneSettings) -> Vec<Volume> {
    given(settings).map(|(name, given)| volume(volume_name(name), given)).collect()
}

/// What is not optional is said not to be: kubelet then waits for it.
fn volume(name: String, given: &Mount) -> Volume {
    if let Some(source) = given.config_map.clone() {
        let optional = Some(source.optional.unwrap_or_default());
        let source = ConfigMapVolumeSource { optional, ..source };
        return Volume { name, config_map: Some(source), ..Volume::default() };
    }
    let source = given.secret.clone().unwrap_or_default();
    let optional = Some(source.optional.unwrap_or_default());
    Volume { name, secret: Some(SecretVolumeSource { optional, ..source }), ..Volume::default() }
}

pub(super) fn mounts(settings: &HostedControlPlaneSettings) -> Vec<VolumeMount> {
    given(settings).map(|(name, given)| mount(&volume_name(name), &given.path)).collect()
}

/// What is wrong with the mounts. The control plane's own Secrets are refused where its names are known.
pub(crate) fn errors(settings: &HostedControlPlaneSettings, names: Option<&Names>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut paths: Vec<(&str, &str)> = Vec::new();
    for (name, mount) in given(settings) {
        let field = format!("{PATH}[{name}]");
        if name.len() > 52 || !is_label(name) {
            let why = "it becomes the name of a volume: lower case letters, digits and dashes, 52 at most";
            errors.push(FieldError::invalid(&field, name.as_str(), why));
        }
        let path = mount.path.as_str();
        if let Err(why) = check_path(path) {
            errors.push(FieldError::invalid(format!("{field}.path"), path, why));
        }
        if let Some((other, _)) = paths.iter().find(|(_, other)| overlap(path, other)) {
            let why = format!("it overlaps with the path of {other}");
            errors.push(FieldError::invalid(format!("{field}.path"), path, why));
        }
        paths.push((name, path));
        match source(mount) {
            None => errors.push(FieldError::required(&field, "a configMap or a secret with a name")),
            Some(Source { kind: SourceKind::Secret, name }) => {
                if names.is_some_and(|names| is_own(names, &name)) {
                    let why = format!("{name} holds keys of the control plane itself");
                    errors.push(FieldError::forbidden(format!("{field}.secret.secretName"), why));
                }
            }
            Some(_) => {}
        }
    }
    errors
}

/// Whether a Secret is one of the control plane's own.
pub(super) fn is_own(names: &Names, secret: &str) -> bool {
    Material::ALL
        .into_iter()
        .any(|material| secret == names.secret(material) || secret == names.copy(material))
}

fn check_path(path: &str) -> Result<(), String> {
    let is_plain = path.starts_with('/')
        && path.len() > 1
        && path[1..].split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        && !path.contains([':', '\0', '\n']);
    if !is_plain {
        return Err("it must be an absolute path, without `:`, `.`, `..` and empty parts".to_owned());
    }
    TAKEN
        .iter()
        .find(|taken| overlap(path, taken))
        .map_or(Ok(()), |taken| Err(format!("the API server's container needs {taken} for itself")))
}

/// Whether one is the other, or inside of it.
fn overlap(one: &str, other: &str) -> bool {
    let is_inside = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_inside(one, other) || is_inside(other, one)
}

//! Parts that the pods of all components have: images, flags, probes, isolation, spreading.
//!
//! Every pod runs under the restricted profile: no root, no privilege, a read-only root file system. One capability is
//! added for upstream's images: their kube-apiserver has it as a file capability, and the kernel does not start a file
//! whose capabilities are outside the bounding set.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::{Container as Settings, Image, ImagePullPolicy};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ConfigMapProjection, Container, KeyToPath, PodSecurityContext, PodSpec, PodTemplateSpec,
    ProjectedVolumeSource, SecretProjection, Volume, VolumeProjection,
};

use super::material::{Material, keys};
use super::names::{Component, VERSION_LABEL};
use super::trust::BUNDLE;
use super::validate::Validated;
use crate::pieces::{USER, deployment, nobody, plain_container, rolling, spread, template};

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

/// A container with what people may set on it. Requests are small: a tenant at rest needs little, and what people give
/// replaces them.
pub(super) fn container(
    name: &str,
    given: &Settings,
    repository: &str,
    tag: &str,
    requests: (&str, &str),
) -> Container {
    let plain = plain_container(name, &image(given.image.as_ref(), repository, tag), requests);
    let pull_policy = match given.image_pull_policy.unwrap_or_default() {
        ImagePullPolicy::Always => "Always",
        ImagePullPolicy::IfNotPresent => "IfNotPresent",
        ImagePullPolicy::Never => "Never",
    };
    Container {
        image_pull_policy: Some(pull_policy.to_owned()),
        resources: given.resources.clone().or(plain.resources),
        ..plain
    }
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

/// Files from Secrets and ConfigMaps in one directory.
#[derive(Debug)]
pub(super) struct Files(Vec<VolumeProjection>);

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
        let secret = SecretProjection { name, items: Some(items(files)), optional: None };
        self.0.push(VolumeProjection { secret: Some(secret), ..VolumeProjection::default() });
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
        let config_map =
            ConfigMapProjection { name: name.to_owned(), items: Some(items(files)), optional: None };
        self.0.push(VolumeProjection { config_map: Some(config_map), ..VolumeProjection::default() });
        self
    }

    pub(super) fn volume(self, name: &str) -> Volume {
        let files = ProjectedVolumeSource { default_mode: Some(SECRET_MODE), sources: Some(self.0) };
        Volume { name: name.to_owned(), projected: Some(files), ..Volume::default() }
    }
}

pub(super) fn items(files: &[(&str, &str)]) -> Vec<KeyToPath> {
    let item = |(key, path): &(&str, &str)| KeyToPath {
        key: (*key).to_owned(),
        path: (*path).to_owned(),
        mode: None,
    };
    files.iter().map(item).collect()
}

/// A pod template of a component.
pub(super) struct Template {
    pub(super) component: Component,
    pub(super) version: String,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) priority_class: Option<String>,
    pub(super) grace_seconds: i64,
    pub(super) containers: Vec<Container>,
    pub(super) volumes: Vec<Volume>,
}

impl Template {
    pub(super) fn render(self, validated: &Validated<'_>) -> PodTemplateSpec {
        let spread = |key: &str| spread(key, validated.selector(self.component));
        let mut labels = validated.labels(self.component);
        labels.insert(VERSION_LABEL.to_owned(), self.version);
        let spec = PodSpec {
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(self.grace_seconds),
            security_context: Some(PodSecurityContext { fs_group: Some(USER), ..nobody() }),
            topology_spread_constraints: Some(vec![
                spread("kubernetes.io/hostname"),
                spread("topology.kubernetes.io/zone"),
            ]),
            containers: self.containers,
            volumes: Some(self.volumes),
            priority_class_name: self.priority_class,
            ..PodSpec::default()
        };
        template(labels, self.annotations, spec)
    }

    /// A Deployment of these pods, which are not fewer than wanted at any moment.
    pub(super) fn deployment(self, validated: &Validated<'_>, name: String, replicas: i32) -> Deployment {
        let selector = validated.selector(self.component);
        let metadata = validated.metadata(name, self.component);
        deployment(metadata, replicas, rolling(1, 0), selector, self.render(validated))
    }
}

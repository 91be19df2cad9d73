//! Parts that the pods of all components have: images, memory limits, isolation, priority.
//!
//! Every pod runs under the restricted profile: no root, no privilege, a read-only root file system. One capability is
//! added for upstream's images: their kube-apiserver has it as a file capability, and the kernel does not start a file
//! whose capabilities are outside the bounding set.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::{
    Container as Settings, HostedControlPlaneSettings, Image, ImagePullPolicy,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ConfigMapProjection, Container, KeyToPath, PodSecurityContext, PodSpec, PodTemplateSpec,
    ProjectedVolumeSource, ResourceRequirements, SecretProjection, Volume, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::material::{Material, keys};
use super::names::{AUDIT_PROXY, Component, VERSION_LABEL};
use super::placement::place;
use super::trust::BUNDLE;
use super::validate::Validated;
use crate::install::{CONTROL_PLANE_CLASS, ETCD_CLASS};
use crate::pieces::{USER, deployment, nobody, plain_container, rolling, template, variable};
use crate::quantity;

const MEMORY: &str = "memory";

/// Files from Secrets: for the pod's group, which is what the user above has.
const SECRET_MODE: i32 = 0o440;

pub(crate) const REGISTRY: &str = "registry.k8s.io";

/// Where images come from that have no registry of their own.
pub(crate) fn registry(settings: &HostedControlPlaneSettings) -> &str {
    settings.image_registry.as_deref().filter(|registry| !registry.is_empty()).unwrap_or(REGISTRY)
}

/// Registry and repository of an image: each part that people gave replaces that part of the default.
pub(crate) fn image_name(registry: &str, given: Option<&Image>, repository: &str) -> String {
    let registry = given.and_then(|image| image.registry.as_deref()).unwrap_or(registry);
    let repository = given.and_then(|image| image.repository.as_deref()).unwrap_or(repository);
    format!("{registry}/{repository}")
}

/// A container with what people may set on it. Requests are what a tenant at rest needs (`docs/benches.md`).
pub(super) fn container(
    validated: &Validated<'_>,
    name: &str,
    given: &Settings,
    repository: &str,
    tag: &str,
    requests: (&str, &str),
) -> Container {
    let image = given.image.as_ref();
    let tag = image.and_then(|image| image.tag.as_deref()).unwrap_or(tag);
    let image = format!("{}:{tag}", image_name(registry(validated.settings), image, repository));
    let plain = plain_container(name, &image, requests);
    let pull_policy = match given.image_pull_policy.unwrap_or_default() {
        ImagePullPolicy::Always => "Always",
        ImagePullPolicy::IfNotPresent => "IfNotPresent",
        ImagePullPolicy::Never => "Never",
    };
    Container {
        image_pull_policy: Some(pull_policy.to_owned()),
        resources: Some(resources(given.resources.clone().unwrap_or_default(), plain.resources)),
        ..plain
    }
}

/// What people give, and the default of what they do not mention: a pod without a request of memory requests its limit.
/// Who gives a limit alone means both, as everywhere in Kubernetes.
fn resources(mut given: ResourceRequirements, default: Option<ResourceRequirements>) -> ResourceRequirements {
    let is_limited = |name: &String| given.limits.as_ref().is_some_and(|limits| limits.contains_key(name));
    let missing: Vec<_> = default
        .and_then(|default| default.requests)
        .into_iter()
        .flatten()
        .filter(|(name, _)| !is_limited(name))
        .collect();
    let requests = given.requests.get_or_insert_default();
    for (name, quantity) in missing {
        requests.entry(name).or_insert(quantity);
    }
    given
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

    /// A file of a Secret that users bring. The pod starts without it, and gets it when it is there.
    pub(super) fn given_secret(mut self, name: &str, key: &str, file: &str) -> Self {
        let items = Some(items(&[(key, file)]));
        let secret = SecretProjection { name: name.to_owned(), items, optional: Some(true) };
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

/// Of this program, which is none in Go.
const OWN: [&str; 4] = [AUDIT_PROXY, "fetch", "place", "restored"];

/// What a container may take at most unless users say otherwise: a storm of requests ends in the pods of its own tenant,
/// and not in those of whoever shares the node.
const MEMORY_LIMITS: [(&str, &str); 10] = [
    (AUDIT_PROXY, "128Mi"),
    ("etcd", "2Gi"),
    ("etcdutl", "2Gi"),
    ("fetch", "256Mi"),
    ("konnectivity-server", "512Mi"),
    ("kube-apiserver", "2Gi"),
    ("kube-controller-manager", "1Gi"),
    ("kube-scheduler", "1Gi"),
    ("place", "128Mi"),
    ("restored", "64Mi"),
];

/// The container with a limit of its memory, which its program knows: near it, garbage is collected more often.
fn limited(mut container: Container) -> Container {
    let resources = container.resources.get_or_insert_default();
    let limits = resources.limits.get_or_insert_default();
    if !limits.contains_key(MEMORY)
        && let Some((_, default)) = MEMORY_LIMITS.iter().find(|(name, _)| *name == container.name)
    {
        // Who asks for more than the default gets that much.
        let requested = resources.requests.as_ref().and_then(|requests| requests.get(MEMORY));
        let requested = requested.filter(|requested| bytes(&requested.0) > bytes(default));
        let limit = requested.cloned().unwrap_or_else(|| Quantity((*default).to_owned()));
        limits.insert(MEMORY.to_owned(), limit);
    }
    let is_told = !OWN.contains(&container.name.as_str());
    if let Some(limit) = limits.get(MEMORY).and_then(|limit| bytes(&limit.0)).filter(|_| is_told) {
        let soft = (limit / 10 * 9).to_string();
        container.env.get_or_insert_default().push(variable("GOMEMLIMIT", soft));
    }
    container
}

/// The container with its last lines in its status when it fails: conditions repeat them.
fn told(container: Container) -> Container {
    let policy = Some("FallbackToLogsOnError".to_owned());
    Container { termination_message_policy: policy, ..container }
}

fn bytes(text: &str) -> Option<u64> {
    quantity::Quantity::parse(text).and_then(quantity::Quantity::bytes)
}

/// The same pods, with containers that run one after the other before all others.
pub(super) fn starting_with(mut template: PodTemplateSpec, first: Vec<Container>) -> PodTemplateSpec {
    let spec = template.spec.get_or_insert_default();
    spec.init_containers = Some(first.into_iter().map(limited).map(told).collect());
    template
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
    pub(super) fn render(self, validated: &Validated<'_>, replicas: i32) -> PodTemplateSpec {
        let mut labels = validated.labels(self.component);
        labels.insert(VERSION_LABEL.to_owned(), self.version);
        let class = match self.component {
            Component::Etcd => ETCD_CLASS,
            _ => CONTROL_PLANE_CLASS,
        };
        let class = validated.limits.has_priority_classes.then(|| class.to_owned());
        let mut spec = PodSpec {
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(self.grace_seconds),
            security_context: Some(PodSecurityContext { fs_group: Some(USER), ..nobody() }),
            containers: self.containers.into_iter().map(limited).map(told).collect(),
            volumes: Some(self.volumes),
            priority_class_name: self.priority_class.filter(|class| !class.is_empty()).or(class),
            ..PodSpec::default()
        };
        place(&mut spec, validated, self.component, replicas);
        template(labels, self.annotations, spec)
    }

    /// A Deployment of these pods, which are not fewer than wanted at any moment.
    pub(super) fn deployment(self, validated: &Validated<'_>, name: String, replicas: i32) -> Deployment {
        let selector = validated.selector(self.component);
        let metadata = validated.metadata(name, self.component);
        deployment(metadata, replicas, rolling(1, 0), selector, self.render(validated, replicas))
    }
}

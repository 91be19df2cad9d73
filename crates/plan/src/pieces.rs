//! Short functions for parts of Kubernetes objects that all renderers need.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, Deployment, DeploymentSpec, DeploymentStrategy,
    RollingUpdateDeployment,
};
use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction,
    ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements,
    SeccompProfile, SecurityContext, Service, ServicePort, ServiceSpec, Toleration, TopologySpreadConstraint,
    Volume, VolumeMount,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// No root, no name: any id that no file of the images belongs to.
pub const USER: i64 = 65532;

pub fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Labels or annotations.
pub fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

pub fn quantities<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, Quantity> {
    pairs.map(|(name, value)| (name.to_owned(), Quantity(value.to_owned()))).into()
}

/// Selects what has all of these labels.
pub fn selecting(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }
}

/// What is the same for all containers.
pub fn plain_container(name: &str, image: &str, (cpu, memory): (&str, &str)) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        resources: Some(ResourceRequirements {
            requests: Some(quantities([("cpu", cpu), ("memory", memory)])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(restricted(&[])),
        ..Container::default()
    }
}

/// No privilege beyond the named capabilities.
pub fn restricted(capabilities: &[&str]) -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            add: Some(texts(capabilities)).filter(|added| !added.is_empty()),
            drop: Some(texts(&["ALL"])),
        }),
        read_only_root_filesystem: Some(true),
        ..SecurityContext::default()
    }
}

/// A pod whose containers run as nobody in particular, under the runtime's own profile.
pub fn nobody() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        ..default_profile()
    }
}

/// The runtime's own profile of system calls.
pub fn default_profile() -> PodSecurityContext {
    let profile = SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() };
    PodSecurityContext { seccomp_profile: Some(profile), ..PodSecurityContext::default() }
}

/// How a container is asked how it is.
pub fn probe(path: &str, port: u16, scheme: &str, period: i32, timeout: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(port.into()),
            scheme: Some(scheme.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

pub fn variable(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.into()), ..EnvVar::default() }
}

/// A variable with the value of a field of the pod.
pub fn field_variable(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: path.to_owned(), ..ObjectFieldSelector::default() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value_from: Some(source), ..EnvVar::default() }
}

pub fn container_port(name: &str, port: u16, protocol: &str) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: port.into(),
        protocol: Some(protocol.to_owned()),
        ..ContainerPort::default()
    }
}

/// A port of a Service that leads to the port of the same number.
pub fn service_port(name: &str, port: u16, protocol: &str) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: port.into(),
        target_port: Some(IntOrString::Int(port.into())),
        protocol: Some(protocol.to_owned()),
        ..ServicePort::default()
    }
}

/// A read-only mount.
pub fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { read_only: Some(true), ..writable_mount(name, path) }
}

pub fn writable_mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

/// All keys of a ConfigMap as files.
pub fn config_map_volume(name: &str, config_map: impl Into<String>) -> Volume {
    let source = ConfigMapVolumeSource { name: config_map.into(), ..ConfigMapVolumeSource::default() };
    Volume { name: name.to_owned(), config_map: Some(source), ..Volume::default() }
}

/// Tolerates a taint, or every one, with one effect, or with any.
pub fn toleration(key: Option<&str>, effect: Option<&str>) -> Toleration {
    Toleration {
        key: key.map(str::to_owned),
        operator: Some("Exists".to_owned()),
        effect: effect.map(str::to_owned),
        ..Toleration::default()
    }
}

/// Spreads pods where that is possible: one node must be enough, and a zone that is full must not stop a replacement.
pub fn spread(key: &str, pods: BTreeMap<String, String>) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        max_skew: 1,
        topology_key: key.to_owned(),
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        label_selector: Some(selecting(pods)),
        ..TopologySpreadConstraint::default()
    }
}

/// Replaces the pods of a Deployment step by step.
pub fn rolling(surge: i32, unavailable: i32) -> DeploymentStrategy {
    DeploymentStrategy {
        type_: Some("RollingUpdate".to_owned()),
        rolling_update: Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::Int(surge)),
            max_unavailable: Some(IntOrString::Int(unavailable)),
        }),
    }
}

/// Pods with these labels and annotations.
pub fn template(
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    spec: PodSpec,
) -> PodTemplateSpec {
    let annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    let metadata = ObjectMeta { labels: Some(labels), annotations, ..ObjectMeta::default() };
    PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) }
}

pub fn deployment(
    metadata: ObjectMeta,
    replicas: i32,
    strategy: impl Into<Option<DeploymentStrategy>>,
    selector: BTreeMap<String, String>,
    template: PodTemplateSpec,
) -> Deployment {
    let spec = DeploymentSpec {
        replicas: Some(replicas),
        strategy: strategy.into(),
        selector: selecting(selector),
        template,
        ..DeploymentSpec::default()
    };
    Deployment { metadata, spec: Some(spec), ..Deployment::default() }
}

/// A DaemonSet that replaces its pods node by node.
pub fn daemon_set(
    metadata: ObjectMeta,
    selector: BTreeMap<String, String>,
    template: PodTemplateSpec,
) -> DaemonSet {
    let rolling = DaemonSetUpdateStrategy { type_: Some("RollingUpdate".to_owned()), rolling_update: None };
    let spec = DaemonSetSpec {
        selector: selecting(selector),
        update_strategy: Some(rolling),
        template,
        ..DaemonSetSpec::default()
    };
    DaemonSet { metadata, spec: Some(spec), ..DaemonSet::default() }
}

pub fn service(metadata: ObjectMeta, spec: ServiceSpec) -> Service {
    Service { metadata, spec: Some(spec), ..Service::default() }
}

pub fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(texts(groups)),
        resources: Some(texts(resources)),
        verbs: texts(verbs),
        ..PolicyRule::default()
    }
}

/// A rule for objects of these names only.
pub fn only(mut rule: PolicyRule, names: impl IntoIterator<Item = String>) -> PolicyRule {
    rule.resource_names = Some(names.into_iter().collect());
    rule
}

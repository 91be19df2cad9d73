//! What a HostedControlPlane asks for beyond the limits.

use std::net::IpAddr;
use std::num::NonZeroU16;

use hangar_api::controlplane::v1alpha1::{HostedControlPlaneSpec, Image};
use k8s_openapi::api::core::v1::ResourceRequirements;

use super::{Allowed, Limits, Pattern, placement};
use crate::admission::FieldError;
use crate::hosted_control_plane::{
    HOSTED, Program, hosted_programs, image_name, registry as default_registry,
};
use crate::quantity::Quantity;

/// Classes of Kubernetes itself, above everything that users run.
const SYSTEM_CLASSES: &str = "system-";

/// Everything at once, each with its field and the setting that would allow it.
pub fn excess(limits: &Limits, spec: &HostedControlPlaneSpec) -> Vec<FieldError> {
    let mut errors = services(limits, spec);
    errors.extend(host_names(limits, spec));
    errors.extend(priority_classes(limits, spec));
    errors.extend(replicas(limits, spec));
    errors.extend(registry(limits, spec));
    errors.extend(placement::excess(limits, &spec.settings));
    for (path, program, container) in hosted_programs(&spec.settings) {
        errors.extend(image(limits, spec, &path, program, container.image.as_ref()));
        errors.extend(memory(limits, &path, container.resources.as_ref()));
    }
    errors
}

pub(super) fn refusal(path: &str, value: &str, setting: &str, allowed: impl std::fmt::Display) -> FieldError {
    let why = format!("the limits of the manager do not allow it (setting {setting}, allowed: {allowed})");
    FieldError::invalid(path, value, why)
}

fn services(limits: &Limits, spec: &HostedControlPlaneSpec) -> Vec<FieldError> {
    let exposure = spec.settings.exposure.as_ref();
    let Some(given) = exposure.and_then(|exposure| exposure.load_balancer.as_ref()) else {
        return Vec::new();
    };
    let path = "spec.exposure.loadBalancer";
    let is_allowed = |allowed: &Allowed, name: &str| allowed.any(|pattern| pattern.matches(name));
    let class = given.class.iter().filter(|class| !is_allowed(&limits.load_balancer_classes, class));
    let class = class.map(|class| {
        refusal(&format!("{path}.class"), class, "loadBalancerClasses", &limits.load_balancer_classes)
    });
    let annotations =
        given.annotations.iter().filter(|(key, _)| !is_allowed(&limits.service_annotations, key));
    let annotations = annotations.map(|(key, value)| {
        let path = format!("{path}.annotations[{key}]");
        refusal(&path, value, "serviceAnnotations", &limits.service_annotations)
    });
    class.chain(annotations).collect()
}

fn host_names(limits: &Limits, spec: &HostedControlPlaneSpec) -> Vec<FieldError> {
    let settings = &spec.settings;
    let exposure = settings.exposure.clone().unwrap_or_default();
    let endpoint = settings.control_plane_endpoint.clone().unwrap_or_default().host;
    let addresses = exposure.node_port.unwrap_or_default().addresses.into_iter().enumerate();
    let addresses =
        addresses.map(|(index, host)| (format!("spec.exposure.nodePort.addresses[{index}]"), host));
    let hosts = [("spec.controlPlaneEndpoint.host".to_owned(), endpoint)].into_iter();
    let node_host = exposure.node_host.map(|host| ("spec.exposure.nodeHost".to_owned(), host));
    let names = hosts.chain(node_host).chain(addresses).filter(|(_, host)| {
        !host.is_empty() && host.parse::<IpAddr>().is_err() && !is_host_allowed(limits, host)
    });
    names.map(|(path, host)| refusal(&path, &host, "hostNames", &limits.host_names)).collect()
}

/// Names of hosts know no case.
fn is_host_allowed(limits: &Limits, host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    limits.host_names.any(|pattern| pattern.matches(&host))
}

fn priority_classes(limits: &Limits, spec: &HostedControlPlaneSpec) -> Vec<FieldError> {
    let deployment = spec.settings.deployment.clone().unwrap_or_default();
    let api_server = deployment.api_server.and_then(|given| given.pod.priority_class_name);
    let controller_manager = deployment.controller_manager.and_then(|given| given.pod.priority_class_name);
    let scheduler = deployment.scheduler.and_then(|given| given.pod.priority_class_name);
    let etcd = spec.settings.etcd.clone().and_then(|given| given.priority_class_name);
    let given = [
        ("spec.deployment.apiServer", api_server),
        ("spec.deployment.controllerManager", controller_manager),
        ("spec.deployment.scheduler", scheduler),
        ("spec.etcd", etcd),
    ];
    let is_allowed = |class: &str| {
        let is_named = |pattern: &Pattern| {
            !class.starts_with(SYSTEM_CLASSES) || pattern.as_str().starts_with(SYSTEM_CLASSES)
        };
        class.is_empty() || limits.priority_classes.any(|pattern| is_named(pattern) && pattern.matches(class))
    };
    let given = given.into_iter().filter_map(|(path, class)| Some((path, class?)));
    given
        .filter(|(_, class)| !is_allowed(class))
        .map(|(path, class)| {
            let path = format!("{path}.priorityClassName");
            refusal(&path, &class, "priorityClasses", &limits.priority_classes)
        })
        .collect()
}

fn replicas(limits: &Limits, spec: &HostedControlPlaneSpec) -> Vec<FieldError> {
    let deployment = spec.settings.deployment.as_ref();
    let controller_manager = deployment.and_then(|given| given.controller_manager.as_ref()?.replicas);
    let scheduler = deployment.and_then(|given| given.scheduler.as_ref()?.replicas);
    let etcd = spec.settings.etcd.as_ref().and_then(|given| given.replicas);
    let most = &limits.maximum_replicas;
    let given: [(&str, Option<i32>, &str, NonZeroU16); 4] = [
        ("spec.replicas", Some(spec.replicas), "apiServer", most.api_server),
        (
            "spec.deployment.controllerManager.replicas",
            controller_manager,
            "controllerManager",
            most.controller_manager,
        ),
        ("spec.deployment.scheduler.replicas", scheduler, "scheduler", most.scheduler),
        ("spec.etcd.replicas", etcd, "etcd", most.etcd),
    ];
    let beyond = given.into_iter().filter_map(|(path, replicas, component, most)| {
        let replicas = replicas.filter(|replicas| *replicas > i32::from(most.get()))?;
        let setting = format!("maximumReplicas.{component}");
        let why = format!("the limits of the manager do not allow it (setting {setting}, at most {most})");
        Some(FieldError::invalid(path, replicas, why))
    });
    beyond.collect()
}

/// What users gave. The default images are our own choice.
fn image(
    limits: &Limits,
    spec: &HostedControlPlaneSpec,
    path: &str,
    program: &Program,
    given: Option<&Image>,
) -> Option<FieldError> {
    let given = given.filter(|given| given.registry.is_some() || given.repository.is_some())?;
    let name = image_name(default_registry(&spec.settings), Some(given), program.repository);
    let path = format!("{path}.image");
    (!is_image_allowed(limits, &name)).then(|| refusal(&path, &name, "registries", &limits.registries))
}

/// The registry of all images, where it is not the default.
fn registry(limits: &Limits, spec: &HostedControlPlaneSpec) -> Option<FieldError> {
    let given = spec.settings.image_registry.as_deref().filter(|given| !given.is_empty())?;
    let is_refused =
        |program: &&Program| !is_image_allowed(limits, &image_name(given, None, program.repository));
    HOSTED
        .into_iter()
        .any(|program| is_refused(&program))
        .then(|| refusal("spec.imageRegistry", given, "registries", &limits.registries))
}

fn is_image_allowed(limits: &Limits, name: &str) -> bool {
    limits.registries.any(|pattern| {
        let rest = name.strip_prefix(pattern.as_str());
        pattern.matches(name) || rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

fn memory(limits: &Limits, path: &str, given: Option<&ResourceRequirements>) -> Vec<FieldError> {
    let most = &limits.maximum_memory;
    let given = given.cloned().unwrap_or_default();
    // A limit of nothing is no limit to Kubernetes.
    let kinds = [("limits", given.limits, 1), ("requests", given.requests, 0)];
    let beyond = kinds.into_iter().filter_map(|(kind, amounts, least)| {
        let text = amounts?.remove("memory")?.0;
        let bytes = Quantity::parse(&text).and_then(Quantity::bytes);
        let is_allowed = bytes.is_some_and(|bytes| (least..=most.bytes).contains(&bytes));
        let allowed = format!("more than nothing, up to {}", most.text);
        let path = format!("{path}.resources.{kind}.memory");
        (!is_allowed).then(|| refusal(&path, &text, "maximumMemory", allowed))
    });
    beyond.collect()
}

//! The manager's Deployment and the objects that belong to it.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvVar, HTTPGetAction, Namespace, PodSpec, Probe, ResourceRequirements, Service,
    ServiceAccount, ServicePort, ServiceSpec, Toleration, TopologySpreadConstraint,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::webhooks::WEBHOOK_SERVICE_PORT;
use super::{NAME, Options, WEBHOOK_SERVICE, labels, metadata, ports, priority};
use crate::hash;
use crate::limits::Limits;
use crate::namespaces::Namespaces;
use crate::pieces::{
    self, config_map_volume, container_port, field_variable, mount, nobody, quantities, restricted,
    selecting, spread, template, toleration, variable,
};

/// The ConfigMap with the limits, and where the manager reads it.
const LIMITS: &str = "hangar-limits";
const LIMITS_VOLUME: &str = "limits";
const LIMITS_DIRECTORY: &str = "/etc/hangar";
const LIMITS_FILE: &str = "limits.yaml";
/// What the pods were started with.
const LIMITS_ANNOTATION: &str = "hangar.cluster.x-k8s.io/limits";

/// Longer than the manager's own deadline for an orderly stop.
const TERMINATION_GRACE_SECONDS: i64 = 40;

/// How long a manager stays on a node that does not answer; Kubernetes' default is five minutes. Long enough for a node
/// that only restarts its kubelet.
const SECONDS_ON_A_LOST_NODE: i64 = 30;

fn pod_labels() -> BTreeMap<String, String> {
    let mut labels = labels();
    labels.insert("app.kubernetes.io/component".to_owned(), "manager".to_owned());
    labels
}

/// What every pod of a manager has; also how policies know them.
pub(crate) fn selector() -> BTreeMap<String, String> {
    ["app.kubernetes.io/name", "app.kubernetes.io/component"]
        .into_iter()
        .filter_map(|key| pod_labels().remove_entry(key))
        .collect()
}

pub(super) fn namespace(options: &Options) -> Namespace {
    let mut metadata = metadata(&options.namespace, None);
    let labels = metadata.labels.get_or_insert_default();
    labels.insert("pod-security.kubernetes.io/enforce".to_owned(), "restricted".to_owned());
    Namespace { metadata, ..Namespace::default() }
}

pub(super) fn service_account(options: &Options) -> ServiceAccount {
    ServiceAccount { metadata: metadata(NAME, Some(&options.namespace)), ..ServiceAccount::default() }
}

fn service(options: &Options, name: &str, port: u16, target: &str) -> Service {
    Service {
        metadata: metadata(name, Some(&options.namespace)),
        spec: Some(ServiceSpec {
            ports: Some(vec![ServicePort {
                name: Some(target.to_owned()),
                port: i32::from(port),
                target_port: Some(IntOrString::String(target.to_owned())),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            selector: Some(selector()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

pub(super) fn webhook_service(options: &Options) -> Service {
    service(options, WEBHOOK_SERVICE, WEBHOOK_SERVICE_PORT, "webhook")
}

pub(super) fn metrics_service(options: &Options) -> Service {
    service(options, "hangar-metrics", ports::METRICS, "metrics")
}

pub(super) fn disruption_budget(options: &Options) -> Option<PodDisruptionBudget> {
    // With a single manager a budget would only block the node's drain.
    (options.replicas > 1).then(|| PodDisruptionBudget {
        metadata: metadata(NAME, Some(&options.namespace)),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(1)),
            // Managers that do not become ready must not hold their nodes.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            selector: Some(selecting(selector())),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    })
}

/// The limits as a file. It is read at the start: with another one there are other pods.
pub(super) fn limits(options: &Options) -> Option<ConfigMap> {
    let text = options.limits.as_ref()?;
    Some(ConfigMap {
        metadata: metadata(LIMITS, Some(&options.namespace)),
        data: Some([(LIMITS_FILE.to_owned(), text.clone())].into()),
        ..ConfigMap::default()
    })
}

pub(super) fn deployment(options: &Options) -> Deployment {
    let limits = options.limits.as_ref();
    let pod = PodSpec {
        service_account_name: Some(NAME.to_owned()),
        containers: vec![container(options)],
        enable_service_links: Some(false),
        security_context: Some(nobody()),
        termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
        tolerations: Some(tolerations()),
        topology_spread_constraints: Some(spreads(options)),
        volumes: limits.map(|_| vec![config_map_volume(LIMITS_VOLUME, LIMITS.to_owned())]),
        ..PodSpec::default()
    };
    let metadata = metadata(NAME, Some(&options.namespace));
    let annotations = limits.map(|text| (LIMITS_ANNOTATION.to_owned(), hash::value(&text.as_str().into())));
    let template = template(pod_labels(), annotations.into_iter().collect(), pod);
    pieces::deployment(metadata, i32::from(options.replicas), None, selector(), template)
}

/// A manager leaves a node that is gone soon: it has nothing there, and webhooks need it.
fn tolerations() -> Vec<Toleration> {
    let gone = |condition: &str| Toleration {
        toleration_seconds: Some(SECONDS_ON_A_LOST_NODE),
        ..toleration(Some(condition), Some("NoExecute"))
    };
    vec![
        toleration(Some("node-role.kubernetes.io/control-plane"), Some("NoSchedule")),
        gone("node.kubernetes.io/not-ready"),
        gone("node.kubernetes.io/unreachable"),
    ]
}

/// Each manager on a host of its own where the operator says that there are enough: the loss of one takes one manager.
fn spreads(options: &Options) -> Vec<TopologySpreadConstraint> {
    let limits = options.limits.as_deref().and_then(|text| Limits::parse(text).ok());
    let nodes = limits.and_then(|limits| limits.nodes).map_or(0, NonZeroU16::get);
    let over = |key: &str, is_hard: bool| TopologySpreadConstraint {
        // Pods that a rollout replaces do not count, or two new ones would go where the last old one is not.
        match_label_keys: Some(vec!["pod-template-hash".to_owned()]),
        when_unsatisfiable: if is_hard { "DoNotSchedule" } else { "ScheduleAnyway" }.to_owned(),
        ..spread(key, selector())
    };
    vec![
        over("kubernetes.io/hostname", options.replicas <= nodes),
        over("topology.kubernetes.io/zone", false),
    ]
}

fn container(options: &Options) -> Container {
    let mut arguments = vec!["manager".to_owned(), format!("--controllers={}", options.controllers)];
    if options.namespaces != Namespaces::All {
        arguments.push(format!("--namespaces={}", options.namespaces));
    }
    if priority::are_made(options) {
        arguments.push("--priority-classes".to_owned());
    }
    if options.limits.is_some() {
        arguments.push(format!("--limits={LIMITS_DIRECTORY}/{LIMITS_FILE}"));
    }
    Container {
        // clusterctl finds the container by this name.
        name: "manager".to_owned(),
        image: Some(options.image.clone()),
        args: Some(arguments),
        env: Some(environment(options)),
        ports: Some(vec![
            container_port("metrics", ports::METRICS, "TCP"),
            container_port("health", ports::HEALTH, "TCP"),
            container_port("webhook", ports::WEBHOOK, "TCP"),
        ]),
        liveness_probe: Some(probe("/healthz", 10)),
        readiness_probe: Some(probe("/readyz", 1)),
        resources: Some(ResourceRequirements {
            requests: Some(quantities([("cpu", "50m"), ("memory", "64Mi")])),
            limits: Some(quantities([("memory", "512Mi")])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(restricted(&[])),
        volume_mounts: options.limits.as_ref().map(|_| vec![mount(LIMITS_VOLUME, LIMITS_DIRECTORY)]),
        ..Container::default()
    }
}

fn environment(options: &Options) -> Vec<EnvVar> {
    let mut variables = vec![
        field_variable("CONTROLLER_NAMESPACE", "metadata.namespace"),
        field_variable("POD_NAME", "metadata.name"),
        // Audit proxies of control planes run from the same image.
        variable("HANGAR_IMAGE", &options.image),
    ];
    if let Some(address) = options.api_server {
        variables.push(variable("KUBERNETES_SERVICE_HOST", address.ip().to_string()));
        variables.push(variable("KUBERNETES_SERVICE_PORT", address.port().to_string()));
    }
    variables
}

fn probe(path: &str, period_seconds: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("health".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        timeout_seconds: Some(2),
        ..Probe::default()
    }
}

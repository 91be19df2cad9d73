//! The manager's Deployment and what stands around it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, Namespace,
    ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements,
    SeccompProfile, SecurityContext, Service, ServiceAccount, ServicePort, ServiceSpec, Toleration,
    TopologySpreadConstraint,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::webhooks::WEBHOOK_SERVICE_PORT;
use super::{NAME, Options, WEBHOOK_SERVICE, labels, metadata, ports};

/// No root, no name: any id that no file of the image belongs to.
const USER: i64 = 65532;

/// Longer than the manager's own deadline for an orderly stop.
const TERMINATION_GRACE_SECONDS: i64 = 40;

fn pod_labels() -> BTreeMap<String, String> {
    let mut labels = labels();
    labels.insert("app.kubernetes.io/component".to_owned(), "manager".to_owned());
    labels
}

fn selector() -> BTreeMap<String, String> {
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
            selector: Some(LabelSelector { match_labels: Some(selector()), ..LabelSelector::default() }),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    })
}

pub(super) fn deployment(options: &Options) -> Deployment {
    let pod = PodSpec {
        service_account_name: Some(NAME.to_owned()),
        containers: vec![container(options)],
        enable_service_links: Some(false),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
        tolerations: Some(vec![Toleration {
            key: Some("node-role.kubernetes.io/control-plane".to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some("NoSchedule".to_owned()),
            ..Toleration::default()
        }]),
        topology_spread_constraints: Some(vec![TopologySpreadConstraint {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".to_owned(),
            // One node must be enough.
            when_unsatisfiable: "ScheduleAnyway".to_owned(),
            label_selector: Some(LabelSelector {
                match_labels: Some(selector()),
                ..LabelSelector::default()
            }),
            ..TopologySpreadConstraint::default()
        }]),
        ..PodSpec::default()
    };
    Deployment {
        metadata: metadata(NAME, Some(&options.namespace)),
        spec: Some(DeploymentSpec {
            replicas: Some(i32::from(options.replicas)),
            selector: LabelSelector { match_labels: Some(selector()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                    labels: Some(pod_labels()),
                    ..Default::default()
                }),
                spec: Some(pod),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn container(options: &Options) -> Container {
    let port = |name: &str, port: u16| ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(port),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    Container {
        // clusterctl finds the container by this name.
        name: "manager".to_owned(),
        image: Some(options.image.clone()),
        args: Some(vec!["manager".to_owned(), format!("--controllers={}", options.controllers)]),
        env: Some(environment(options)),
        ports: Some(vec![
            port("metrics", ports::METRICS),
            port("health", ports::HEALTH),
            port("webhook", ports::WEBHOOK),
        ]),
        liveness_probe: Some(probe("/healthz", 10)),
        readiness_probe: Some(probe("/readyz", 1)),
        resources: Some(ResourceRequirements {
            requests: Some(quantities([("cpu", "50m"), ("memory", "64Mi")])),
            limits: Some(quantities([("memory", "512Mi")])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn environment(options: &Options) -> Vec<EnvVar> {
    let mut variables =
        vec![field("CONTROLLER_NAMESPACE", "metadata.namespace"), field("POD_NAME", "metadata.name")];
    if let Some(address) = options.api_server {
        let value = |name: &str, value: String| EnvVar {
            name: name.to_owned(),
            value: Some(value),
            ..EnvVar::default()
        };
        variables.push(value("KUBERNETES_SERVICE_HOST", address.ip().to_string()));
        variables.push(value("KUBERNETES_SERVICE_PORT", address.port().to_string()));
    }
    variables
}

fn field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
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

fn quantities<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, Quantity> {
    pairs.map(|(name, value)| (name.to_owned(), Quantity(value.to_owned()))).into()
}

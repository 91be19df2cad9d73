//! Plans kube-controller-manager.
//!
//! It gets both authorities before it starts. Then it waits for the API server as long as necessary; if one were
//! missing it would exit and restart with growing delays.

use hangar_api::controlplane::v1alpha1::ScalablePod;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container};

use super::api_server::joined;
use super::controllers::{KUBECONFIG, PKI, replicas};
use super::exposure::manager;
use super::flags::Flags;
use super::material::{Material, keys};
use super::names::Component;
use super::object::document;
use super::pod::{Files, Template, container};
use super::program::CONTROLLER_MANAGER;
use super::validate::Validated;
use super::version::KubernetesVersion;
use super::{kubeconfigs, node_ranges};
use crate::pieces::{container_port, mount, probe, texts};

pub(super) const PORT: u16 = 10257;

/// What the pod mounts; all of it is needed before a pod starts.
pub(super) const MATERIALS: [Material; 4] = [
    Material::ClusterAuthority,
    Material::FrontProxyAuthority,
    Material::ServiceAccountKeys,
    Material::ControllerManager,
];

fn settings(validated: &Validated<'_>) -> ScalablePod {
    let deployment = validated.settings.deployment.as_ref();
    deployment.and_then(|deployment| deployment.controller_manager.clone()).unwrap_or_default()
}

pub(super) fn configuration(validated: &Validated<'_>) -> ConfigMap {
    let server = format!("https://{}", manager(validated));
    let data = [(KUBECONFIG.to_owned(), document(&kubeconfigs::for_pod(validated, &server, PKI)))];
    validated.config_map(validated.names.controller_manager(), Component::ControllerManager, data.into())
}

pub(super) fn deployment(validated: &Validated<'_>, version: &KubernetesVersion) -> Deployment {
    let name = validated.names.controller_manager();
    let settings = settings(validated);
    let given = &settings.pod.container;
    let program = CONTROLLER_MANAGER.name;
    let manager = Container {
        command: Some(texts(&[program])),
        args: Some(flags(validated).merged(&given.args)),
        ports: Some(vec![container_port("https", PORT, "TCP")]),
        startup_probe: Some(probe("/healthz", PORT, "HTTPS", 1, 15, 300)),
        liveness_probe: Some(probe("/healthz", PORT, "HTTPS", 10, 15, 8)),
        readiness_probe: Some(probe("/healthz", PORT, "HTTPS", 1, 3, 3)),
        volume_mounts: Some(vec![mount("pki", PKI)]),
        ..container(validated, program, given, CONTROLLER_MANAGER.repository, version.tag(), ("50m", "56Mi"))
    };
    let files = Files::new()
        // The one pod that signs: it has the authority's key. Whom it trusts is another matter.
        .pair(validated, Material::ClusterAuthority, "signer")
        .authority(validated, Material::ClusterAuthority, "ca.crt")
        .authority(validated, Material::FrontProxyAuthority, "front-proxy-ca.crt")
        .secret(validated, Material::ServiceAccountKeys, &[(keys::PRIVATE_KEY, "sa.key")])
        .pair(validated, Material::ControllerManager, "client")
        .config_map(&name, &[(KUBECONFIG, KUBECONFIG)]);
    let template = Template {
        component: Component::ControllerManager,
        version: version.label(),
        annotations: std::collections::BTreeMap::new(),
        priority_class: settings.pod.priority_class_name.clone(),
        grace_seconds: 30,
        containers: vec![manager],
        volumes: vec![files.volume("pki")],
    };
    template.deployment(validated, name, replicas(&settings))
}

fn flags(validated: &Validated<'_>) -> Flags {
    let pki = |file: &str| format!("{PKI}/{file}");
    let text = str::to_owned;
    let mut flags = Flags::new(
        &CONTROLLER_MANAGER,
        [
            ("allocate-node-cidrs", text("true")),
            ("authentication-kubeconfig", pki(KUBECONFIG)),
            ("authorization-kubeconfig", pki(KUBECONFIG)),
            ("bind-address", text("0.0.0.0")),
            ("client-ca-file", pki("ca.crt")),
            ("cluster-cidr", joined(&validated.pod_ranges)),
            ("cluster-name", validated.names.cluster().to_owned()),
            ("cluster-signing-cert-file", pki("signer.crt")),
            ("cluster-signing-key-file", pki("signer.key")),
            ("kubeconfig", pki(KUBECONFIG)),
            ("leader-elect", text("true")),
            ("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
            ("root-ca-file", pki("ca.crt")),
            ("secure-port", PORT.to_string()),
            ("service-account-private-key-file", pki("sa.key")),
            ("service-cluster-ip-range", joined(&validated.service_ranges)),
            ("use-service-account-credentials", text("true")),
        ],
        [
            ("controllers", "*,bootstrap-signer-controller,token-cleaner-controller"),
            // Each of its thirty controllers first asks for an account and a token; at the default rate that takes
            // seconds.
            ("kube-api-burst", "400"),
            ("kube-api-qps", "200"),
            ("profiling", "false"),
        ],
    );
    flags.suggested.extend(node_ranges::flags(validated.settings, &validated.pod_ranges));
    flags
}

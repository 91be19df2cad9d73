//! Plans kube-scheduler.

use hangar_api::controlplane::v1alpha1::ScalablePod;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container};

use super::controllers::{KUBECONFIG, PKI, replicas};
use super::exposure::manager;
use super::flags::Flags;
use super::kubeconfigs;
use super::material::Material;
use super::names::Component;
use super::object::document;
use super::pod::{Files, Template, container};
use super::program::SCHEDULER;
use super::validate::Validated;
use super::version::KubernetesVersion;
use crate::pieces::{container_port, mount, probe, texts};

pub(super) const PORT: u16 = 10259;

/// What the pod mounts; all of it is needed before a pod starts.
pub(super) const MATERIALS: [Material; 2] = [Material::ClusterAuthority, Material::Scheduler];

fn settings(validated: &Validated<'_>) -> ScalablePod {
    let deployment = validated.settings.deployment.as_ref();
    deployment.and_then(|deployment| deployment.scheduler.clone()).unwrap_or_default()
}

pub(super) fn configuration(validated: &Validated<'_>) -> ConfigMap {
    let server = format!("https://{}", manager(validated));
    let data = [(KUBECONFIG.to_owned(), document(&kubeconfigs::for_pod(validated, &server, PKI)))];
    validated.config_map(validated.names.scheduler(), Component::Scheduler, data.into())
}

pub(super) fn deployment(validated: &Validated<'_>, version: &KubernetesVersion) -> Deployment {
    let name = validated.names.scheduler();
    let settings = settings(validated);
    let given = &settings.pod.container;
    let pki = |file: &str| format!("{PKI}/{file}");
    let flags = Flags::new(
        &SCHEDULER,
        [
            ("authentication-kubeconfig", pki(KUBECONFIG)),
            ("authorization-kubeconfig", pki(KUBECONFIG)),
            ("bind-address", "0.0.0.0".to_owned()),
            ("kubeconfig", pki(KUBECONFIG)),
            ("leader-elect", "true".to_owned()),
            ("secure-port", PORT.to_string()),
        ],
        [("profiling", "false")],
    );
    let program = SCHEDULER.name;
    let scheduler = Container {
        command: Some(texts(&[program])),
        args: Some(flags.merged(&given.args)),
        ports: Some(vec![container_port("https", PORT, "TCP")]),
        startup_probe: Some(probe("/livez", PORT, "HTTPS", 1, 15, 300)),
        liveness_probe: Some(probe("/livez", PORT, "HTTPS", 10, 15, 8)),
        readiness_probe: Some(probe("/readyz", PORT, "HTTPS", 1, 3, 3)),
        volume_mounts: Some(vec![mount("pki", PKI)]),
        ..container(validated, program, given, SCHEDULER.repository, version.tag(), ("25m", "24Mi"))
    };
    let files = Files::new()
        .authority(validated, Material::ClusterAuthority, "ca.crt")
        .pair(validated, Material::Scheduler, "client")
        .config_map(&name, &[(KUBECONFIG, KUBECONFIG)]);
    let template = Template {
        component: Component::Scheduler,
        version: version.label(),
        annotations: std::collections::BTreeMap::new(),
        priority_class: settings.pod.priority_class_name.clone(),
        grace_seconds: 30,
        containers: vec![scheduler],
        volumes: vec![files.volume("pki")],
    };
    template.deployment(validated, name, replicas(&settings))
}

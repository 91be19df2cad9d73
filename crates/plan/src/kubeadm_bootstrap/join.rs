//! Renders kubeadm's JoinConfiguration, version v1beta4, which kubeadm 1.31 and later read.
//!
//! Values are passed on unchanged: `{{ local_hostname }}` and other templates are for cloud-init on the worker.

use hangar_api::bootstrap::v1beta2::{Arg, KubeadmConfigSpec, Timeouts};
use hangar_api::bootstrap::{ImagePullPolicy, Patches, Taint};
use hangar_api::names::UNINITIALIZED_TAINT;
use serde::Serialize;

use super::cloud_config::to_yaml;
use super::{Observed, Token};
use crate::flow::Read;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Join<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_cert_path: Option<&'a str>,
    discovery: Discovery<'a>,
    node_registration: NodeRegistration<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patches: Option<&'a Patches>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_phases: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeouts: Option<Durations>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Discovery<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap_token: Option<BootstrapToken>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_bootstrap_token: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BootstrapToken {
    token: String,
    api_server_endpoint: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ca_cert_hashes: Vec<String>,
    #[serde(rename = "unsafeSkipCAVerification", skip_serializing_if = "std::ops::Not::not")]
    unsafe_skip_ca_verification: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    kube_config_path: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeRegistration<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cri_socket: Option<&'a str>,
    taints: Vec<Taint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubelet_extra_args: Option<&'a [Arg]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_preflight_errors: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_pull_policy: Option<ImagePullPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_pull_serial: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Durations {
    #[serde(skip_serializing_if = "Option::is_none")]
    control_plane_component_health_check: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discovery: Option<String>,
    #[serde(rename = "etcdAPICall", skip_serializing_if = "Option::is_none")]
    etcd_api_call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubelet_health_check: Option<String>,
    #[serde(rename = "kubernetesAPICall", skip_serializing_if = "Option::is_none")]
    kubernetes_api_call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_bootstrap: Option<String>,
}

/// True when the configuration says by itself how the machine authenticates.
pub(super) fn brings_its_own_discovery(spec: &KubeadmConfigSpec) -> bool {
    let discovery = spec.join_configuration.as_ref().and_then(|join| join.discovery.as_ref());
    discovery.is_some_and(|discovery| {
        discovery.file.is_some()
            || discovery.bootstrap_token.as_ref().is_some_and(|token| token.token.is_some())
    })
}

/// True when the machine needs no hash of ours to trust the API server.
pub(super) fn needs_no_authority(spec: &KubeadmConfigSpec) -> bool {
    let discovery = spec.join_configuration.as_ref().and_then(|join| join.discovery.as_ref());
    discovery.is_some_and(|discovery| {
        discovery.file.is_some()
            || discovery.bootstrap_token.as_ref().is_some_and(|token| {
                token.unsafe_skip_ca_verification == Some(true)
                    || token.ca_cert_hashes.as_ref().is_some_and(|hashes| !hashes.is_empty())
            })
    })
}

/// The configuration as text.
pub(super) fn configuration(observed: &Observed, token: Option<&Token>) -> Result<String, String> {
    let given = observed.config.spec.join_configuration.clone().unwrap_or_default();
    let join = Join {
        api_version: "kubeadm.k8s.io/v1beta4",
        kind: "JoinConfiguration",
        ca_cert_path: given.ca_cert_path.as_deref(),
        discovery: discovery(observed, token),
        node_registration: node_registration(&observed.config.spec),
        patches: given.patches.as_ref(),
        skip_phases: given.skip_phases.as_deref(),
        timeouts: given.timeouts.as_ref().map(durations),
    };
    to_yaml(&join)
}

fn discovery<'a>(observed: &'a Observed, token: Option<&Token>) -> Discovery<'a> {
    let given = observed.config.spec.join_configuration.as_ref().and_then(|join| join.discovery.as_ref());
    let tls_bootstrap_token = given.and_then(|given| given.tls_bootstrap_token.as_deref());
    if let Some(file) = given.and_then(|given| given.file.as_ref()) {
        let file = File { kube_config_path: &file.kube_config_path };
        return Discovery { bootstrap_token: None, file: Some(file), tls_bootstrap_token };
    }
    let given = given.and_then(|given| given.bootstrap_token.clone()).unwrap_or_default();
    let unsafe_skip_ca_verification = given.unsafe_skip_ca_verification.unwrap_or_default();
    let ours = match &observed.authority_hashes {
        Read::One(hashes) if !unsafe_skip_ca_verification => hashes.clone(),
        _ => Vec::new(),
    };
    let endpoint = observed.cluster.iter().next().map(|cluster| cluster.endpoint.to_string());
    let bootstrap_token = BootstrapToken {
        token: given.token.or_else(|| token.map(ToString::to_string)).unwrap_or_default(),
        api_server_endpoint: given.api_server_endpoint.or(endpoint).unwrap_or_default(),
        ca_cert_hashes: given.ca_cert_hashes.filter(|hashes| !hashes.is_empty()).unwrap_or(ours),
        unsafe_skip_ca_verification,
    };
    Discovery { bootstrap_token: Some(bootstrap_token), file: None, tls_bootstrap_token }
}

fn node_registration(spec: &KubeadmConfigSpec) -> NodeRegistration<'_> {
    let given = spec.join_configuration.as_ref().and_then(|join| join.node_registration.as_ref());
    let mut taints = given.and_then(|given| given.taints.clone()).unwrap_or_default();
    // Nothing is scheduled before the labels of the Machine are on the Node; the Machine's controller removes it.
    if !taints.iter().any(|taint| taint.key == UNINITIALIZED_TAINT) {
        taints.push(Taint {
            key: UNINITIALIZED_TAINT.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    NodeRegistration {
        name: given.and_then(|given| given.name.as_deref()),
        cri_socket: given.and_then(|given| given.cri_socket.as_deref()),
        taints,
        kubelet_extra_args: given.and_then(|given| given.kubelet_extra_args.as_deref()),
        ignore_preflight_errors: given.and_then(|given| given.ignore_preflight_errors.as_deref()),
        image_pull_policy: given.and_then(|given| given.image_pull_policy),
        image_pull_serial: given.and_then(|given| given.image_pull_serial),
    }
}

fn durations(given: &Timeouts) -> Durations {
    let seconds = |seconds: Option<i32>| seconds.map(|seconds| format!("{seconds}s"));
    Durations {
        control_plane_component_health_check: seconds(given.control_plane_component_health_check_seconds),
        discovery: seconds(given.discovery_seconds),
        etcd_api_call: seconds(given.etcd_api_call_seconds),
        kubelet_health_check: seconds(given.kubelet_health_check_seconds),
        kubernetes_api_call: seconds(given.kubernetes_api_call_seconds),
        tls_bootstrap: seconds(given.tls_bootstrap_seconds),
    }
}

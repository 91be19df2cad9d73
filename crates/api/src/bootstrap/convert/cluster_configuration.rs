//! Conversion of cluster-wide settings. The timeout of the API server is elsewhere in the newer version, so the
//! functions take and return it beside the settings.

use super::{arguments, etcd};
use crate::bootstrap::{v1beta1, v1beta2};
use crate::conversion::absence::{list, set};

/// The newer settings, and `apiServer.timeoutForControlPlane`.
pub(super) fn up(
    configuration: v1beta1::ClusterConfiguration,
) -> (v1beta2::ClusterConfiguration, Option<String>) {
    let v1beta1::ClusterConfiguration {
        api_server,
        api_version: _,
        certificates_dir,
        cluster_name: _,
        control_plane_endpoint,
        controller_manager,
        dns,
        etcd,
        feature_gates,
        image_repository,
        kind: _,
        kubernetes_version: _,
        networking: _,
        scheduler,
    } = configuration;
    let (api_server, timeout) = api_server_up(api_server.unwrap_or_default());
    let configuration = v1beta2::ClusterConfiguration {
        api_server: set(api_server),
        ca_certificate_validity_period_days: None,
        certificate_validity_period_days: None,
        certificates_dir,
        control_plane_endpoint,
        controller_manager: controller_manager.map(component_up).and_then(set),
        dns: dns.and_then(set),
        encryption_algorithm: None,
        etcd: etcd.map(etcd::up).and_then(set),
        feature_gates,
        image_repository,
        scheduler: scheduler.map(component_up).and_then(set),
    };
    (configuration, timeout)
}

/// The older settings, with the given `apiServer.timeoutForControlPlane`.
pub(super) fn down(
    configuration: v1beta2::ClusterConfiguration,
    timeout_for_control_plane: Option<String>,
) -> v1beta1::ClusterConfiguration {
    let v1beta2::ClusterConfiguration {
        api_server,
        ca_certificate_validity_period_days: _,
        certificate_validity_period_days: _,
        certificates_dir,
        control_plane_endpoint,
        controller_manager,
        dns,
        encryption_algorithm: _,
        etcd,
        feature_gates,
        image_repository,
        scheduler,
    } = configuration;
    v1beta1::ClusterConfiguration {
        api_server: set(api_server_down(api_server.unwrap_or_default(), timeout_for_control_plane)),
        api_version: None,
        certificates_dir,
        cluster_name: None,
        control_plane_endpoint,
        controller_manager: controller_manager.map(component_down).and_then(set),
        dns: dns.and_then(set),
        etcd: etcd.map(etcd::down).and_then(set),
        feature_gates,
        image_repository,
        kind: None,
        kubernetes_version: None,
        networking: None,
        scheduler: scheduler.map(component_down).and_then(set),
    }
}

fn api_server_up(api_server: v1beta1::ApiServer) -> (v1beta2::ApiServer, Option<String>) {
    let v1beta1::ApiServer { cert_sans, extra_args, extra_envs, extra_volumes, timeout_for_control_plane } =
        api_server;
    let api_server = v1beta2::ApiServer {
        cert_sans: list(cert_sans),
        extra_args: arguments::up(extra_args),
        extra_envs: list(extra_envs),
        extra_volumes: list(extra_volumes),
    };
    (api_server, timeout_for_control_plane)
}

fn api_server_down(
    api_server: v1beta2::ApiServer,
    timeout_for_control_plane: Option<String>,
) -> v1beta1::ApiServer {
    let v1beta2::ApiServer { cert_sans, extra_args, extra_envs, extra_volumes } = api_server;
    let extra_args = arguments::down(extra_args);
    v1beta1::ApiServer { cert_sans, extra_args, extra_envs, extra_volumes, timeout_for_control_plane }
}

fn component_up(component: v1beta1::ControlPlaneComponent) -> v1beta2::ControlPlaneComponent {
    let v1beta1::ControlPlaneComponent { extra_args, extra_envs, extra_volumes } = component;
    v1beta2::ControlPlaneComponent {
        extra_args: arguments::up(extra_args),
        extra_envs: list(extra_envs),
        extra_volumes: list(extra_volumes),
    }
}

fn component_down(component: v1beta2::ControlPlaneComponent) -> v1beta1::ControlPlaneComponent {
    let v1beta2::ControlPlaneComponent { extra_args, extra_envs, extra_volumes } = component;
    v1beta1::ControlPlaneComponent { extra_args: arguments::down(extra_args), extra_envs, extra_volumes }
}

//! Conversion of the settings of `kubeadm join`.

use super::init_configuration::{endpoint_down, endpoint_up};
use super::{discovery, node_registration};
use crate::bootstrap::{v1beta1, v1beta2};
use crate::conversion::absence::{list, set};

/// The newer settings without timeouts, and `discovery.timeout`.
pub(super) fn up(configuration: v1beta1::JoinConfiguration) -> (v1beta2::JoinConfiguration, Option<String>) {
    let v1beta1::JoinConfiguration {
        api_version: _,
        ca_cert_path,
        control_plane,
        discovery,
        kind: _,
        node_registration,
        patches,
        skip_phases,
    } = configuration;
    let (discovery, timeout) = discovery::up(discovery.unwrap_or_default());
    let configuration = v1beta2::JoinConfiguration {
        ca_cert_path,
        // Empty or not, its presence makes the machine a control plane machine.
        control_plane: control_plane.map(control_plane_up),
        discovery: set(discovery),
        node_registration: node_registration.map(node_registration::up).and_then(set),
        patches: patches.and_then(set),
        skip_phases: list(skip_phases),
        timeouts: None,
    };
    (configuration, timeout)
}

/// The older settings without `discovery.timeout`, and the timeouts that they have no room for.
pub(super) fn down(
    configuration: v1beta2::JoinConfiguration,
) -> (v1beta1::JoinConfiguration, Option<v1beta2::Timeouts>) {
    let v1beta2::JoinConfiguration {
        ca_cert_path,
        control_plane,
        discovery,
        node_registration,
        patches,
        skip_phases,
        timeouts,
    } = configuration;
    let configuration = v1beta1::JoinConfiguration {
        api_version: None,
        ca_cert_path,
        control_plane: control_plane.map(control_plane_down),
        discovery: discovery.map(discovery::down).and_then(set),
        kind: None,
        node_registration: node_registration.map(node_registration::down).and_then(set),
        patches: patches.and_then(set),
        skip_phases,
    };
    (configuration, timeouts)
}

fn control_plane_up(control_plane: v1beta1::JoinControlPlane) -> v1beta2::JoinControlPlane {
    let v1beta1::JoinControlPlane { local_api_endpoint } = control_plane;
    v1beta2::JoinControlPlane { local_api_endpoint: local_api_endpoint.map(endpoint_up).and_then(set) }
}

fn control_plane_down(control_plane: v1beta2::JoinControlPlane) -> v1beta1::JoinControlPlane {
    let v1beta2::JoinControlPlane { local_api_endpoint } = control_plane;
    v1beta1::JoinControlPlane { local_api_endpoint: local_api_endpoint.map(endpoint_down).and_then(set) }
}

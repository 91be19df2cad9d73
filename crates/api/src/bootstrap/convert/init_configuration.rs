//! Conversion of the settings of `kubeadm init`.

use super::node_registration;
use crate::bootstrap::{v1beta1, v1beta2};
use crate::conversion::absence::{list, set};
use crate::conversion::go_duration;

pub(super) fn up(
    configuration: v1beta1::InitConfiguration,
    timeouts: Option<v1beta2::Timeouts>,
) -> v1beta2::InitConfiguration {
    let v1beta1::InitConfiguration {
        api_version: _,
        bootstrap_tokens,
        kind: _,
        local_api_endpoint,
        node_registration,
        patches,
        skip_phases,
    } = configuration;
    v1beta2::InitConfiguration {
        bootstrap_tokens: list(bootstrap_tokens.map(|list| list.into_iter().map(token_up).collect())),
        local_api_endpoint: local_api_endpoint.map(endpoint_up).and_then(set),
        node_registration: node_registration.map(node_registration::up).and_then(set),
        patches: patches.and_then(set),
        skip_phases: list(skip_phases),
        timeouts,
    }
}

/// The older settings, and the timeouts that they have no room for.
pub(super) fn down(
    configuration: v1beta2::InitConfiguration,
) -> (v1beta1::InitConfiguration, Option<v1beta2::Timeouts>) {
    let v1beta2::InitConfiguration {
        bootstrap_tokens,
        local_api_endpoint,
        node_registration,
        patches,
        skip_phases,
        timeouts,
    } = configuration;
    let configuration = v1beta1::InitConfiguration {
        api_version: None,
        bootstrap_tokens: bootstrap_tokens.map(|list| list.into_iter().map(token_down).collect()),
        kind: None,
        local_api_endpoint: local_api_endpoint.map(endpoint_down).and_then(set),
        node_registration: node_registration.map(node_registration::down).and_then(set),
        patches: patches.and_then(set),
        skip_phases,
    };
    (configuration, timeouts)
}

fn token_up(token: v1beta1::BootstrapToken) -> v1beta2::BootstrapToken {
    let v1beta1::BootstrapToken { description, expires, groups, token, ttl, usages } = token;
    v1beta2::BootstrapToken {
        description,
        expires,
        groups: list(groups),
        token,
        ttl_seconds: go_duration::to_seconds(ttl.as_deref()),
        usages: list(usages),
    }
}

fn token_down(token: v1beta2::BootstrapToken) -> v1beta1::BootstrapToken {
    let v1beta2::BootstrapToken { description, expires, groups, token, ttl_seconds, usages } = token;
    let ttl = go_duration::from_seconds(ttl_seconds);
    v1beta1::BootstrapToken { description, expires, groups, token, ttl, usages }
}

/// The older version writes 0 for a port that is not set; the newer one refuses it.
pub(super) fn endpoint_up(endpoint: v1beta1::LocalApiEndpoint) -> v1beta2::LocalApiEndpoint {
    let v1beta1::LocalApiEndpoint { advertise_address, bind_port } = endpoint;
    v1beta2::LocalApiEndpoint { advertise_address, bind_port: bind_port.filter(|port| *port > 0) }
}

pub(super) fn endpoint_down(endpoint: v1beta2::LocalApiEndpoint) -> v1beta1::LocalApiEndpoint {
    let v1beta2::LocalApiEndpoint { advertise_address, bind_port } = endpoint;
    v1beta1::LocalApiEndpoint { advertise_address, bind_port }
}

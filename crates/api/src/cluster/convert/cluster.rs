//! Conversion of `Cluster`.

use super::{GROUP, cluster_topology, machine};
use crate::cluster::v1beta1::cluster as old;
use crate::cluster::v1beta2::cluster as new;
use crate::conversion::absence::{at_least, list, port, set, text};
use crate::conversion::{Context, Convert};
use std::collections::BTreeMap;

/// The conversion of this kind.
pub(super) enum Cluster {}

impl Convert for Cluster {
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "Cluster";
    type SpokeSpec = old::ClusterSpec;
    type SpokeStatus = old::ClusterStatus;
    type HubSpec = new::ClusterSpec;
    type HubStatus = new::ClusterStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        let old::ClusterSpec {
            availability_gates,
            cluster_network,
            control_plane_endpoint,
            control_plane_ref,
            infrastructure_ref,
            paused,
            topology,
        } = spec;
        new::ClusterSpec {
            availability_gates: list(availability_gates),
            cluster_network: cluster_network.and_then(network_up),
            control_plane_endpoint: control_plane_endpoint.and_then(|endpoint| {
                let old::ApiEndpoint { host, port: number } = endpoint;
                set(new::ApiEndpoint { host: text(host), port: port(number) })
            }),
            control_plane_ref: machine::reference_up(control_plane_ref),
            infrastructure_ref: machine::reference_up(infrastructure_ref),
            paused,
            topology: topology.map(cluster_topology::up),
        }
    }

    fn spec_down(spec: Self::HubSpec, context: &Context<'_>) -> Self::SpokeSpec {
        let new::ClusterSpec {
            availability_gates,
            cluster_network,
            control_plane_endpoint,
            control_plane_ref,
            infrastructure_ref,
            paused,
            topology,
        } = spec;
        old::ClusterSpec {
            availability_gates,
            cluster_network: cluster_network.map(network_down),
            control_plane_endpoint: control_plane_endpoint.map(|endpoint| {
                let new::ApiEndpoint { host, port } = endpoint;
                old::ApiEndpoint { host, port }
            }),
            control_plane_ref: control_plane_ref.map(|reference| reference.down(context)),
            infrastructure_ref: infrastructure_ref.map(|reference| reference.down(context)),
            paused,
            topology: topology.map(|topology| cluster_topology::down(topology, context)),
        }
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        let old::ClusterStatus {
            conditions: old_conditions,
            control_plane_ready,
            failure_domains,
            failure_message,
            failure_reason,
            infrastructure_ready,
            observed_generation,
            phase,
            v1beta2,
        } = status;
        let old::ClusterStatusV1Beta2 { conditions, control_plane, workers } = v1beta2.unwrap_or_default();
        let deprecated =
            set(new::ClusterStatusV1Beta1 { conditions: old_conditions, failure_message, failure_reason });
        new::ClusterStatus {
            conditions,
            control_plane,
            deprecated: deprecated.map(|v1beta1| new::ClusterDeprecatedStatus { v1beta1: Some(v1beta1) }),
            failure_domains: failure_domains.and_then(failure_domains_up),
            initialization: set(new::ClusterInitialization {
                control_plane_initialized: control_plane_ready,
                infrastructure_provisioned: infrastructure_ready,
            }),
            observed_generation: at_least(1, observed_generation),
            phase,
            workers,
        }
    }

    fn status_down(status: Self::HubStatus, _context: &Context<'_>) -> Self::SpokeStatus {
        let new::ClusterStatus {
            conditions,
            control_plane,
            deprecated,
            failure_domains,
            initialization,
            observed_generation,
            phase,
            workers,
        } = status;
        let new::ClusterDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let new::ClusterStatusV1Beta1 { conditions: old_conditions, failure_message, failure_reason } =
            v1beta1.unwrap_or_default();
        let new::ClusterInitialization { control_plane_initialized, infrastructure_provisioned } =
            initialization.unwrap_or_default();
        old::ClusterStatus {
            conditions: old_conditions,
            control_plane_ready: control_plane_initialized,
            failure_domains: failure_domains.map(failure_domains_down),
            failure_message,
            failure_reason,
            infrastructure_ready: infrastructure_provisioned,
            observed_generation,
            phase,
            v1beta2: set(old::ClusterStatusV1Beta2 { conditions, control_plane, workers }),
        }
    }
}

fn network_up(network: old::ClusterNetwork) -> Option<new::ClusterNetwork> {
    let old::ClusterNetwork { api_server_port, pods, service_domain, services } = network;
    let ranges = |ranges: old::NetworkRanges| {
        let old::NetworkRanges { cidr_blocks } = ranges;
        set(new::NetworkRanges { cidr_blocks })
    };
    set(new::ClusterNetwork {
        api_server_port: port(api_server_port),
        pods: pods.and_then(ranges),
        service_domain: text(service_domain),
        services: services.and_then(ranges),
    })
}

fn network_down(network: new::ClusterNetwork) -> old::ClusterNetwork {
    let new::ClusterNetwork { api_server_port, pods, service_domain, services } = network;
    let ranges = |ranges: new::NetworkRanges| {
        let new::NetworkRanges { cidr_blocks } = ranges;
        old::NetworkRanges { cidr_blocks }
    };
    old::ClusterNetwork {
        api_server_port,
        pods: pods.map(ranges),
        service_domain,
        services: services.map(ranges),
    }
}

/// A map by name becomes a list in the order of names.
fn failure_domains_up(domains: BTreeMap<String, old::FailureDomain>) -> Option<Vec<new::FailureDomain>> {
    let domains = domains.into_iter().map(|(name, domain)| {
        let old::FailureDomain { attributes, control_plane } = domain;
        new::FailureDomain { attributes, control_plane, name }
    });
    list(Some(domains.collect()))
}

fn failure_domains_down(domains: Vec<new::FailureDomain>) -> BTreeMap<String, old::FailureDomain> {
    let domains = domains.into_iter().map(|domain| {
        let new::FailureDomain { attributes, control_plane, name } = domain;
        (name, old::FailureDomain { attributes, control_plane })
    });
    domains.collect()
}

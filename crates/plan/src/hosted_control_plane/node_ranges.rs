//! The part of the pods' ranges that each node gets from the controller manager.
//!
//! By default that is a /24, or a /64 of IPv6. The controller manager does not start where that is no part of the range,
//! or with IPv6 one of more than 65536 parts; so there the size follows the range where the default does not fit it.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;
use ipnet::IpNet;

use crate::admission::FieldError;

/// What the controller manager gives nodes when nobody says otherwise.
const DEFAULT_IPV4: u8 = 24;
const DEFAULT_IPV6: u8 = 64;
/// A node has more than a hundred pods.
const LONGEST_IPV6: u8 = 120;
/// The most that one node's part may be longer than the range.
const MOST_BITS: u8 = 16;
/// How many bits tell nodes apart in a range of IPv6 that is smaller than usual.
const FEW_BITS: u8 = 8;

const FLAG: &str = "node-cidr-mask-size";

/// Whether users chose the size themselves.
fn is_given(args: &BTreeMap<String, String>) -> bool {
    args.keys().any(|name| name.trim_start_matches('-').replace('_', "-").starts_with(FLAG))
}

fn args(settings: &HostedControlPlaneSettings) -> Option<&BTreeMap<String, String>> {
    let manager = settings.deployment.as_ref()?.controller_manager.as_ref()?;
    Some(&manager.pod.container.args)
}

/// Ranges that have no room for a node.
pub(super) fn errors(settings: &HostedControlPlaneSettings, pods: &[IpNet]) -> Vec<FieldError> {
    if args(settings).is_some_and(is_given) {
        return Vec::new();
    }
    let small = pods.iter().enumerate().filter_map(|(index, range)| {
        let longest = if range.addr().is_ipv4() { DEFAULT_IPV4 } else { LONGEST_IPV6 };
        let path = format!("Cluster.spec.clusterNetwork.pods.cidrBlocks[{index}]");
        let why = format!("it is too small: each node gets a /{longest} of it");
        (range.prefix_len() > longest).then(|| FieldError::invalid(path, range.to_string(), why))
    });
    small.collect()
}

/// The flags that say the size, where the default does not fit.
pub(super) fn flags(settings: &HostedControlPlaneSettings, pods: &[IpNet]) -> Vec<(&'static str, String)> {
    if args(settings).is_some_and(is_given) {
        return Vec::new();
    }
    // A /24 is a part of every range of IPv4 that has room for a node, however many parts there are.
    let sizes = pods.iter().filter(|range| !range.addr().is_ipv4()).map(|range| {
        let length = range.prefix_len();
        DEFAULT_IPV6
            .clamp(length.saturating_add(FEW_BITS), length.saturating_add(MOST_BITS))
            .min(LONGEST_IPV6)
    });
    sizes
        .filter(|size| *size != DEFAULT_IPV6)
        .map(|size| ("node-cidr-mask-size-ipv6", size.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_get_a_part_that_the_controller_manager_can_give() {
        let size = |range: &str| {
            let range: IpNet = range.parse().unwrap();
            flags(&HostedControlPlaneSettings::default(), &[range]).pop().map(|(_, size)| size)
        };
        for (range, expected) in [
            ("10.244.0.0/16", None),
            ("10.0.0.0/8", None),
            ("10.0.0.0/24", None),
            ("fd00::/48", None),
            ("fd00::/56", None),
            ("fd00::/40", Some("56")),
            ("fd00::/64", Some("72")),
            ("fd00::/112", Some("120")),
            ("fd00::/118", Some("120")),
        ] {
            assert_eq!(size(range).as_deref(), expected, "{range}");
        }
    }

    #[test]
    fn a_range_without_room_for_a_node_is_refused_unless_its_part_is_given() {
        let ranges: Vec<IpNet> = ["10.0.0.0/25", "fd00::/121"].map(|range| range.parse().unwrap()).into();
        let refused = errors(&HostedControlPlaneSettings::default(), &ranges);
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            refused,
            [
                "Cluster.spec.clusterNetwork.pods.cidrBlocks[0]: Invalid value: \"10.0.0.0/25\": it is too small: each \
                 node gets a /24 of it",
                "Cluster.spec.clusterNetwork.pods.cidrBlocks[1]: Invalid value: \"fd00::/121\": it is too small: each \
                 node gets a /120 of it",
            ]
        );
        let given = serde_json::json!({"deployment": {"controllerManager": {"args": {FLAG: "26"}}}});
        let given: HostedControlPlaneSettings = serde_json::from_value(given).unwrap();
        assert_eq!(errors(&given, &ranges), []);
        assert_eq!(flags(&given, &ranges), []);
    }
}

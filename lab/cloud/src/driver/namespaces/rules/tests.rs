//! Pins the rules as text: they were tried in the kernel in this form.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uuid::Uuid;

use super::{dropped_floating, network, revoked, router};
use crate::topology::{Network, Port, Router, RouterInterface, SecurityGroup, SecurityRule, Topology};

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn allow(ingress: bool) -> SecurityRule {
    SecurityRule { ingress, ipv6: false, protocol: None, ports: None, remote: None, remote_group: None }
}

fn port(last: u8, group: u128) -> Port {
    Port {
        network: id(1),
        mac: [0xfa, 0x16, 0x3e, 0, 0, last],
        fixed: vec![(id(2), IpAddr::from([10, 6, 0, last]))],
        allowed_pairs: Vec::new(),
        secured: true,
        security_groups: BTreeSet::from([id(group)]),
    }
}

/// Two secured ports, one that is not, one in another network, and a group that names itself.
fn topology() -> Topology {
    let tcp =
        |first, last| SecurityRule { protocol: Some(6), ports: Some((first, Some(last))), ..allow(true) };
    let workers = SecurityGroup {
        rules: vec![
            allow(false),
            SecurityRule { ipv6: true, ..allow(false) },
            SecurityRule { remote_group: Some(id(0x10)), ..allow(true) },
            SecurityRule { remote: Some("0.0.0.0/0".parse().unwrap()), ..tcp(22, 22) },
            SecurityRule { remote: Some("10.9.0.0/16".parse().unwrap()), ..tcp(30000, 32767) },
            SecurityRule { protocol: Some(1), ..allow(true) },
            SecurityRule { protocol: Some(1), ipv6: true, ..allow(true) },
            SecurityRule { protocol: Some(1), ports: Some((8, Some(0))), ..allow(true) },
            SecurityRule { protocol: Some(1), ports: Some((8, None)), ..allow(true) },
            SecurityRule { protocol: Some(112), ..allow(true) },
        ],
    };
    let mut first = port(10, 0x10);
    first.allowed_pairs = vec!["10.244.0.0/16".parse().unwrap(), "10.6.0.10/32".parse().unwrap()];
    let open = Port { secured: false, ..port(12, 0x11) };
    let elsewhere = Port { network: id(9), ..port(13, 0x10) };
    Topology {
        networks: BTreeMap::from([(id(1), Network { mtu: 1500, subnets: Vec::new() })]),
        ports: BTreeMap::from([
            (id(0x20), first),
            (id(0x21), port(11, 0x11)),
            (id(0x22), open),
            (id(0x23), elsewhere),
        ]),
        security_groups: BTreeMap::from([
            (id(0x10), workers),
            (id(0x11), SecurityGroup { rules: vec![allow(false)] }),
        ]),
        ..Topology::default()
    }
}

#[test]
fn a_network_marks_and_filters() {
    let links = |port: Uuid| Some(format!("p-{:x}", port.as_u128()));
    insta::assert_snapshot!(network(&topology(), id(1), links));
}

#[test]
fn a_network_without_ports_has_empty_chains() {
    insta::assert_snapshot!(network(&Topology::default(), id(1), |_| None));
}

#[test]
fn a_router_translates() {
    let interface = RouterInterface { network: id(1), addresses: vec!["10.6.0.1/24".parse().unwrap()] };
    let full = Router {
        external_address: Some(address("100.72.2.5")),
        translates_source: true,
        interfaces: BTreeMap::from([(id(3), interface)]),
        floating: BTreeMap::from([(address("100.72.2.9"), address("10.6.0.10"))]),
    };
    let plain = Router { translates_source: false, ..full.clone() };
    let inner = Router { external_address: None, floating: BTreeMap::new(), ..full.clone() };
    let all = [full, plain, inner].map(|one| router(&one)).join("\n");
    insta::assert_snapshot!(all);
}

#[test]
fn only_what_is_taken_away_is_forgotten() {
    let before = topology();
    assert_eq!(revoked(&before, &before, id(1)), BTreeSet::new());
    assert_eq!(revoked(&Topology::default(), &before, id(1)), BTreeSet::new());
    // A further member of a group, next to another: nobody loses anything.
    let mut grown = before.clone();
    grown.ports.insert(id(0x24), port(11, 0x10));
    assert_eq!(revoked(&before, &grown, id(1)), BTreeSet::new());
    // It leaves again: its own connections, and nothing between those that stay.
    let addresses =
        |lasts: &[u8]| lasts.iter().map(|last| IpAddr::from([10, 6, 0, *last])).collect::<BTreeSet<_>>();
    assert_eq!(revoked(&grown, &before, id(1)), addresses(&[11]));
    // A rule goes.
    let mut stricter = before.clone();
    stricter.security_groups.get_mut(&id(0x11)).unwrap().rules.clear();
    assert_eq!(revoked(&before, &stricter, id(1)), addresses(&[11]));
    // A port becomes secured, another is opened.
    let mut secured = before.clone();
    secured.ports.get_mut(&id(0x22)).unwrap().secured = true;
    secured.ports.get_mut(&id(0x21)).unwrap().secured = false;
    assert_eq!(revoked(&before, &secured, id(1)), addresses(&[12]));
}

#[test]
fn floating_addresses_that_move_are_forgotten() {
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (address(a), address(b))).collect();
    let before: BTreeMap<_, _> =
        map(&[("1.1.1.1", "10.0.0.1"), ("1.1.1.2", "10.0.0.2"), ("1.1.1.3", "10.0.0.3")]);
    let after = map(&[("1.1.1.1", "10.0.0.1"), ("1.1.1.2", "10.0.0.9"), ("1.1.1.4", "10.0.0.4")]);
    let expected = ["1.1.1.2", "10.0.0.2", "1.1.1.3", "10.0.0.3"].map(address);
    assert_eq!(dropped_floating(&before, &after), BTreeSet::from(expected));
}

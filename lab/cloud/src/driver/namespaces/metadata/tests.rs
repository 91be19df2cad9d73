//! Tests of the metadata that servers get.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uuid::Uuid;

use super::answer::answer;
use crate::topology::{Port, Server, Topology};

const SERVER: Uuid = Uuid::from_u128(0x0b1c_2d3e_4f50_4162_8374_95a6_b7c8_d9e0);
const NETWORK: Uuid = Uuid::from_u128(1);

fn topology() -> Topology {
    let port = Port {
        network: NETWORK,
        mac: [0xfa, 0x16, 0x3e, 0, 0, 1],
        fixed: vec![(Uuid::from_u128(2), IpAddr::from([10, 6, 0, 10]))],
        allowed_pairs: Vec::new(),
        secured: true,
        security_groups: BTreeSet::new(),
    };
    let server = Server {
        name: "demo-md-0-abc".into(),
        ports: vec![Uuid::from_u128(3)],
        image: BTreeMap::new(),
        metadata: BTreeMap::from([("depends".into(), "hangar".into())]),
        user_data: Some(b"\x1f\x8bbinary".to_vec()),
        key: Some(("me".into(), "ssh-ed25519 AAAA".into())),
        availability_zone: "nova".into(),
        project: "4f2a".into(),
        runs: true,
    };
    Topology {
        ports: BTreeMap::from([(Uuid::from_u128(3), port)]),
        servers: BTreeMap::from([(SERVER, server)]),
        ..Topology::default()
    }
}

fn ask(path: &str) -> Option<String> {
    let answer = answer(&topology(), NETWORK, IpAddr::from([10, 6, 0, 10]), path)?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn openstack_part() {
    let text = ask("/openstack/2018-08-27/meta_data.json").unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    insta::assert_json_snapshot!(document);
    assert_eq!(ask("/openstack/latest/meta_data.json").unwrap(), text);
    assert!(ask("/openstack/").unwrap().lines().any(|line| line == "latest"));
    assert!(ask("/openstack/latest/network_data.json").unwrap().contains("fa:16:3e:00:00:01"));
    assert_eq!(ask("/openstack/1999-01-01/meta_data.json"), None);
    let asker = IpAddr::from([10, 6, 0, 10]);
    let user_data = answer(&topology(), NETWORK, asker, "/openstack/latest/user_data").unwrap();
    assert_eq!(user_data, b"\x1f\x8bbinary");
}

#[test]
fn ec2_part() {
    for (path, text) in [
        ("/latest/meta-data/instance-id", "i-0b1c2d3e"),
        ("/latest/meta-data/hostname", "demo-md-0-abc"),
        ("/latest/meta-data/local-ipv4", "10.6.0.10"),
        ("/2009-04-04/meta-data/placement/availability-zone", "nova"),
        ("/latest/meta-data/public-keys/0/openssh-key", "ssh-ed25519 AAAA"),
    ] {
        assert_eq!(ask(path).as_deref(), Some(text), "{path}");
    }
    assert_eq!(ask("/latest/meta-data/nothing"), None);
}

/// Two networks may have the same addresses.
#[test]
fn strangers_are_told_nothing() {
    let path = "/openstack/latest/meta_data.json";
    assert!(answer(&topology(), NETWORK, IpAddr::from([10, 6, 0, 11]), path).is_none());
    assert!(answer(&topology(), Uuid::from_u128(9), IpAddr::from([10, 6, 0, 10]), path).is_none());
}

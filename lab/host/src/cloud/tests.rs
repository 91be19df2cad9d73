//! Tests of the cloud's configuration.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use hangar_cloud::driver::namespaces::{MachineImage, ProcessConfig, Tool};
use hangar_machine::{Environment, Name, SupervisorCommand};

use super::config::{Inputs, access, config};
use crate::addresses::Addresses;
use crate::layout::Layout;

fn made(known: Option<&ProcessConfig>) -> ProcessConfig {
    let supervisor = SupervisorCommand { program: "/p/hangar".into(), arguments: vec!["supervise".into()] };
    let environment = Environment::new("/nowhere", Name::new("demo").unwrap(), supervisor).unwrap();
    let tool = |name: &str| Tool {
        program: format!("/cache/usr/sbin/{name}").into(),
        library_path: "/cache/usr/lib".into(),
    };
    config(&Inputs {
        layout: &Layout::new(environment.directory()),
        environment: &environment,
        program: Path::new("/nowhere/demo/management/programs/hangar"),
        supervisor: OsStr::new("supervise"),
        nft: Some(tool("nft")),
        conntrack: Some(tool("conntrack")),
        addresses: Addresses::of("100.72.16.0/20".parse().unwrap()).unwrap(),
        known,
        machine_images: BTreeMap::from([
            ("v1.33.0".to_owned(), MachineImage::default()),
            ("v1.34.10".to_owned(), MachineImage::default()),
        ]),
    })
    .unwrap()
}

#[test]
fn the_cloud_is_on_the_private_network() {
    let mut config = made(None);
    config.cloud.users[0].password = "random".to_owned();
    config.cloud.admin_token = Some("random".to_owned());
    let mut shown = serde_json::to_value(&config).unwrap();
    // The cloud's own business.
    shown["cloud"].as_object_mut().unwrap().remove("quota");
    insta::assert_json_snapshot!(shown);
    let access = access(&config).unwrap();
    assert_eq!(access.auth_url, "http://100.72.16.1:5000/identity/v3");
    assert_eq!(access.images["v1.34.10"], "node-v1.34.10");
}

#[test]
fn passwords_are_made_once() {
    let (first, second) = (made(None), made(None));
    assert_ne!(first.cloud.users[0].password, second.cloud.users[0].password);
    assert_eq!(made(Some(&first)), first);
}

#[test]
fn the_pool_is_free_of_the_management_clusters_addresses() {
    let config = made(None);
    let (first, last) = config.cloud.external_network.unwrap().pool;
    let addresses = Addresses::of("100.72.16.0/20".parse().unwrap()).unwrap();
    assert!(first > std::net::IpAddr::V4(addresses.last_load_balancer) && first < last);
    assert_eq!((first.to_string(), last.to_string()), ("100.72.18.0".to_owned(), "100.72.31.254".to_owned()));
}

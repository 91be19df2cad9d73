//! Tests what a cloud still knows after a restart.

use hangar_cloud::Config;
use hangar_cloud::driver::RecordingDriver;
use serde_json::json;

use crate::client::{Bed, id, in_time, start_with};

fn config(directory: &tempfile::TempDir) -> Config {
    Config { state_file: Some(directory.path().join("state.json")), ..Config::for_tests() }
}

async fn restart(bed: Bed, config: Config) -> Bed {
    let token = bed.token.clone();
    bed.cloud.shutdown().await;
    // The old token, not the new one: real tokens outlive their Keystone.
    Bed { token, ..start_with(config, RecordingDriver::new()).await }
}

#[tokio::test]
async fn all_that_was_answered_is_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let bed = start_with(config(&directory), RecordingDriver::new()).await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let gateway = json!({"network_id": bed.external().await});
    let router = id(&bed.make("routers", "router", json!({"external_gateway_info": gateway})).await);
    let path = format!("/network/v2.0/routers/{router}/add_router_interface");
    bed.call("PUT", &path, Some(json!({"subnet_id": subnet}))).await.expect(200);
    let port = id(&bed.make("ports", "port", json!({"network_id": network})).await);
    let server = bed.server("one", json!({"networks": [{"port": port}], "user_data": "YQ=="})).await;
    in_time(bed.wait_status(&server, "ACTIVE")).await;
    let paths = [
        format!("/network/v2.0/networks/{network}"),
        format!("/network/v2.0/subnets/{subnet}"),
        format!("/network/v2.0/routers/{router}"),
        format!("/network/v2.0/ports/{port}"),
        "/network/v2.0/security-groups".to_owned(),
    ];
    let mut before = vec![];
    for path in &paths {
        before.push(bed.get(path).await);
    }
    let topology = bed.admin("GET", "topology", None).await.expect(200);
    let bed = restart(bed, config(&directory)).await;
    for (path, before) in paths.iter().zip(before) {
        assert_eq!(bed.get(path).await, before);
    }
    assert_eq!(bed.admin("GET", "topology", None).await.expect(200), topology, "the driver is told the same");
    in_time(bed.wait_status(&server, "ACTIVE")).await;
}

#[tokio::test]
async fn a_deletion_that_was_not_finished_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let bed = start_with(config(&directory), crate::driver::Stuck).await;
    let server = bed.server("one", json!({"networks": "none"})).await;
    bed.delete(&format!("/compute/v2.1/servers/{server}")).await.expect(204);
    let view = bed.get(&format!("/compute/v2.1/servers/{server}")).await["server"].take();
    assert_eq!(view["OS-EXT-STS:task_state"], "deleting", "the driver has not said that it is gone");
    let bed = restart(bed, config(&directory)).await;
    in_time(bed.wait_gone(&format!("/compute/v2.1/servers/{server}"))).await;
}

#[tokio::test]
async fn a_new_configuration_adds_to_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let bed = start_with(config(&directory), RecordingDriver::new()).await;
    let external = bed.external().await;
    let mut wider = config(&directory);
    let mut image = wider.images[0].clone();
    image.name = "node-v1.35.0".into();
    wider.images.push(image);
    let bed = restart(bed, wider).await;
    assert_eq!(bed.external().await, external);
    assert_eq!(bed.get("/image/v2/images").await["images"].as_array().unwrap().len(), 2);
    let groups = bed.get("/network/v2.0/security-groups").await;
    assert_eq!(
        groups["security_groups"].as_array().unwrap().len(),
        1,
        "one default group, not one per start"
    );
}

#[tokio::test]
async fn a_state_file_that_cannot_be_read_is_not_thrown_away() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    std::fs::write(&path, b"{\"format\": 1, \"model\"").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = hangar_cloud::Cloud::serve(listener, config(&directory), RecordingDriver::new()).await;
    assert!(matches!(refused, Err(hangar_cloud::Error::StateFormat { .. })));
    assert!(std::fs::read(&path).unwrap().starts_with(b"{\"format\": 1"));
}

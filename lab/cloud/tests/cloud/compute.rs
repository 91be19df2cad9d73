//! Nova: servers and what they are made from.

use hangar_cloud::Config;
use hangar_cloud::driver::RecordingDriver;
use serde_json::{Value, json};

use crate::client::{Bed, id, in_time, log_in, neutron_error, send, start, start_with};

async fn bed_with_port() -> (Bed, String) {
    let bed = start().await;
    let (network, _) = bed.network("net", "10.6.0.0/24").await;
    let port = id(&bed.make("ports", "port", json!({"network_id": network, "name": "p"})).await);
    (bed, port)
}

/// Ports that are not the cloud's own.
fn plain_ports(bed: &Bed) -> usize {
    let ports = bed.cloud.model().ports;
    ports.values().filter(|port| !port.device_owner.starts_with("network:")).count()
}

#[tokio::test]
async fn a_server_becomes_active_with_its_port() {
    let (bed, port) = bed_with_port().await;
    let key = json!({"keypair": {"name": "k", "public_key": "ssh-ed25519 AAAA me"}});
    bed.call("POST", "/compute/v2.1/os-keypairs", Some(key)).await.expect(201);
    let group = json!({"server_group": {"name": "g", "policies": ["soft-anti-affinity"]}});
    let group = id(
        &bed.call("POST", "/compute/v2.1/os-server-groups", Some(group)).await.expect(200)["server_group"],
    );
    let more = json!({
        "networks": [{"port": port}], "key_name": "k", "config_drive": true, "user_data": "I2Nsb3VkLWNvbmZpZw==",
        "metadata": {"owner": "1"}, "tags": ["t"], "availability_zone": "nova",
    });
    let mut body = bed.server_body("worker-1", more).await;
    body["os:scheduler_hints"] = json!({"group": group});
    let created = bed.call("POST", "/compute/v2.1/servers", Some(body)).await;
    assert!(created.header("x-compute-request-id").starts_with("req-"));
    assert_eq!(created.header("x-openstack-nova-api-version"), "2.60");
    let server = id(&created.expect(202)["server"]);
    let view = in_time(bed.wait_status(&server, "ACTIVE")).await;
    assert_eq!(view["addresses"]["net"][0]["addr"], "10.6.0.3");
    assert_eq!(view["addresses"]["net"][0]["OS-EXT-IPS:type"], "fixed");
    assert_eq!((&view["key_name"], &view["config_drive"]), (&json!("k"), &json!("True")));
    assert_eq!((&view["metadata"]["owner"], &view["tags"]), (&json!("1"), &json!(["t"])));
    assert_eq!(view["flavor"]["original_name"], "small", "embedded from 2.47 on");
    let port = bed.get(&format!("/network/v2.0/ports?device_id={server}")).await["ports"][0].take();
    assert_eq!((&port["status"], &port["device_owner"]), (&json!("ACTIVE"), &json!("compute:nova")));
    let groups = bed.get(&format!("/compute/v2.1/os-server-groups/{group}")).await;
    assert_eq!(groups["server_group"]["members"], json!([server]));
    let topology = bed.admin("GET", "topology", None).await.expect(200);
    let behind = &topology["servers"][&server];
    assert_eq!(behind["image"]["kubernetes_version"], "v1.34.10");
    assert_eq!(behind["user_data"], json!(b"#cloud-config"));
}

#[tokio::test]
async fn a_port_is_bound_once() {
    let (bed, port) = bed_with_port().await;
    let one = bed.server("one", json!({"networks": [{"port": port}]})).await;
    in_time(bed.wait_status(&one, "ACTIVE")).await;
    let body = bed.server_body("one", json!({"networks": [{"port": port}]})).await;
    let error = bed.call("POST", "/compute/v2.1/servers", Some(body)).await.expect(409);
    assert_eq!(error["conflictingRequest"]["message"], format!("Port {port} is still in use."));
    assert_eq!(bed.cloud.model().servers.len(), 1);
}

#[tokio::test]
async fn what_a_server_names_must_exist() {
    let (bed, port) = bed_with_port().await;
    let nothing = "0b6a3dd1-9fe4-4bd7-9df2-7b8ff9b8d0d0";
    let long = "A".repeat(65_536);
    let wide = "ä".repeat(65_536);
    let cases: [(Value, &str); 12] = [
        (json!({"imageRef": nothing}), "Can not find requested image"),
        (json!({"flavorRef": "none"}), "Flavor none could not be found."),
        (json!({"key_name": "none"}), "Invalid key_name provided."),
        (json!({"networks": [{"port": nothing}]}), "could not be found"),
        (json!({"networks": [{"uuid": nothing}]}), "could not be found"),
        (json!({"availability_zone": "mars"}), "The requested availability zone is not available"),
        (json!({"user_data": long}), "is too long"),
        (json!({"user_data": format!("A{wide}")}), "is too long"),
        (json!({"user_data": "no base64!"}), "is not a 'base64'"),
        (json!({"colour": "red"}), "Additional properties are not allowed"),
        (json!({"tags": ["x".repeat(61)]}), "is invalid"),
        (json!({"tags": ["a/b"]}), "is invalid"),
    ];
    for (change, words) in cases {
        let mut body = bed.server_body("x", json!({"networks": [{"port": port}]})).await;
        body["server"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let error = bed.call("POST", "/compute/v2.1/servers", Some(body)).await.expect(400);
        let message = error["badRequest"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{change}: {message}");
    }
    assert!(bed.cloud.model().servers.is_empty());
    let port = bed.get(&format!("/network/v2.0/ports/{port}")).await;
    assert_eq!(port["port"]["device_id"], "", "a refused server holds no port");
}

#[tokio::test]
async fn a_deleted_server_gives_its_port_back() {
    let (bed, port) = bed_with_port().await;
    let network = bed.get(&format!("/network/v2.0/ports/{port}")).await["port"]["network_id"].take();
    let server = bed.server("one", json!({"networks": [{"port": port}, {"uuid": network}]})).await;
    in_time(bed.wait_status(&server, "ACTIVE")).await;
    assert_eq!(plain_ports(&bed), 2);
    let path = format!("/compute/v2.1/servers/{server}");
    bed.delete(&path).await.expect(204);
    in_time(bed.wait_gone(&path)).await;
    assert!(
        bed.delete(&path).await.expect(404)["itemNotFound"]["message"].as_str().unwrap().contains(&server)
    );
    assert_eq!(plain_ports(&bed), 1, "the port that was made for it went with it");
    let view = bed.get(&format!("/network/v2.0/ports/{port}")).await["port"].take();
    assert_eq!((&view["device_id"], &view["status"]), (&json!(""), &json!("DOWN")));
    bed.server("two", json!({"networks": [{"port": port}]})).await;
}

#[tokio::test]
async fn stop_start_and_reboot() {
    let (bed, port) = bed_with_port().await;
    let server = bed.server("one", json!({"networks": [{"port": port}]})).await;
    in_time(bed.wait_status(&server, "ACTIVE")).await;
    let path = format!("/compute/v2.1/servers/{server}/action");
    bed.call("POST", &path, Some(json!({"os-stop": null}))).await.expect(202);
    in_time(bed.wait_status(&server, "SHUTOFF")).await;
    let error = bed.call("POST", &path, Some(json!({"os-stop": null}))).await.expect(409);
    assert!(
        error["conflictingRequest"]["message"].as_str().unwrap().contains("while it is in vm_state stopped")
    );
    bed.call("POST", &path, Some(json!({"os-start": null}))).await.expect(202);
    in_time(bed.wait_status(&server, "ACTIVE")).await;
    bed.call("POST", &path, Some(json!({"reboot": {"type": "HARD"}}))).await.expect(202);
    in_time(bed.wait_status(&server, "ACTIVE")).await;
    let console =
        bed.call("POST", &path, Some(json!({"os-getConsoleOutput": {"length": 10}}))).await.expect(200);
    assert!(console["output"].as_str().unwrap().contains(&server));
}

#[tokio::test]
async fn shapes_follow_the_microversion() {
    let (bed, port) = bed_with_port().await;
    let server = bed.server("one", json!({"networks": [{"port": port}]})).await;
    let path = format!("/compute/v2.1/servers/{server}");
    let show = async |header: (&str, &str)| {
        let headers = [("X-Auth-Token", bed.token.as_str()), header];
        send(&bed.cloud, "GET", &path, &headers, None).await.unwrap()
    };
    let old = show(("X-OpenStack-Nova-API-Version", "2.1")).await.expect(200)["server"].take();
    assert!(old.get("tags").is_none() && old["flavor"].get("id").is_some());
    let new = show(("OpenStack-API-Version", "compute 2.71")).await;
    assert_eq!(new.header("openstack-api-version"), "compute 2.71");
    assert_eq!(new.expect(200)["server"]["server_groups"], json!([]));
    let error = show(("X-OpenStack-Nova-API-Version", "2.999")).await.expect(406);
    assert_eq!(error["computeFault"]["code"], 406);
    let body = bed.server_body("two", json!({"tags": ["t"], "networks": "none"})).await;
    let headers = [("X-Auth-Token", bed.token.as_str()), ("X-OpenStack-Nova-API-Version", "2.38")];
    send(&bed.cloud, "POST", "/compute/v2.1/servers", &headers, Some(&body)).await.unwrap().expect(400);
    let document = send(&bed.cloud, "GET", "/compute/", &[], None).await.unwrap().expect(200);
    let current = &document["versions"][1];
    assert_eq!((&current["min_version"], &current["version"]), (&json!("2.1"), &json!("2.90")));
}

/// A client that takes one for the other believes that its objects are gone.
#[tokio::test]
async fn a_path_that_leads_nowhere_is_no_missing_object() {
    let bed = start().await;
    for path in ["/compute/v2.1/nowhere", "/compute/v2.1/servers/x/nowhere", "/network/v2.0/extensions/x"] {
        let error = bed.call("GET", path, None).await.expect(404);
        assert_eq!(
            (&error["code"], &error["title"]),
            (&json!("404 Not Found"), &json!("Not Found")),
            "{path}"
        );
    }
    let answer = bed.call("GET", "/network/v2.0/nowhere", None).await;
    assert_eq!(neutron_error(answer, 404), "HTTPNotFound");
    let error = bed.call("GET", "/compute/v2.1/os-availability-zone/detail", None).await.expect(403);
    assert!(error["forbidden"]["message"].as_str().unwrap().contains("os-availability-zone:detail"));
}

#[tokio::test]
async fn servers_of_others_are_not_there() {
    let (bed, port) = bed_with_port().await;
    let server = bed.server("one", json!({"networks": [{"port": port}]})).await;
    let other = log_in(&bed.cloud, "other").await;
    let path = format!("/compute/v2.1/servers/{server}");
    for method in ["GET", "DELETE"] {
        bed.call_as(&other, method, &path, None).await.expect(404);
    }
    let list = bed.call_as(&other, "GET", "/compute/v2.1/servers", None).await.expect(200);
    assert_eq!(list["servers"], json!([]));
    let all = "/compute/v2.1/servers/detail?all_tenants=1";
    let error = bed.call_as(&other, "GET", all, None).await.expect(403);
    assert!(error["forbidden"]["message"].as_str().unwrap().contains("get_all_tenants"));
    let admin = log_in(&bed.cloud, "admin").await;
    let list = bed.call_as(&admin, "GET", all, None).await.expect(200);
    assert_eq!(list["servers"][0]["id"], json!(server));
}

#[tokio::test]
async fn metadata_tags_and_names_change() {
    let (bed, port) = bed_with_port().await;
    let server = bed.server("one", json!({"networks": [{"port": port}]})).await;
    let path = format!("/compute/v2.1/servers/{server}");
    bed.call("POST", &format!("{path}/metadata"), Some(json!({"metadata": {"a": "1"}}))).await.expect(200);
    bed.call("PUT", &format!("{path}/metadata/b"), Some(json!({"meta": {"b": "2"}}))).await.expect(200);
    assert_eq!(bed.get(&format!("{path}/metadata")).await["metadata"], json!({"a": "1", "b": "2"}));
    bed.call("PUT", &format!("{path}/tags"), Some(json!({"tags": ["x", "y"]}))).await.expect(200);
    bed.delete(&format!("{path}/tags/x")).await.expect(204);
    let found = bed.get("/compute/v2.1/servers?tags=y&name=%5Eone%24").await;
    assert_eq!(found["servers"].as_array().unwrap().len(), 1);
    bed.call("PUT", &path, Some(json!({"server": {"name": "renamed"}}))).await.expect(200);
    assert_eq!(bed.get("/compute/v2.1/servers?name=%5Eone%24").await["servers"], json!([]));
}

#[tokio::test]
async fn quotas_are_forbidden_not_conflicting() {
    let mut config = Config::for_tests();
    config.quota.instances = 1;
    let bed = start_with(config, RecordingDriver::new()).await;
    bed.server("one", json!({"networks": "none"})).await;
    let body = bed.server_body("two", json!({"networks": "none"})).await;
    let error = bed.call("POST", "/compute/v2.1/servers", Some(body)).await.expect(403);
    let words = "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances";
    assert_eq!(error["forbidden"]["message"], words);
}

/// Real Nova takes both, and the one that comes too late frees the port of the other.
#[tokio::test]
async fn two_servers_can_be_given_one_port_while_ports_are_bound_late() {
    let config = Config { ports_bound_after_milliseconds: 600_000, ..Config::for_tests() };
    let bed = start_with(config, RecordingDriver::new()).await;
    let (network, _) = bed.network("net", "10.0.0.0/24").await;
    let port = id(&bed.make("ports", "port", json!({"network_id": network})).await);
    let path = format!("/network/v2.0/ports/{port}");
    let first = bed.server("first", json!({"networks": [{"port": port}]})).await;
    assert_eq!(bed.get(&path).await["port"]["device_id"], "");
    let second = bed.server("second", json!({"networks": [{"port": port}]})).await;
    let later = async || bed.admin("POST", "clock", Some(json!({"advance_seconds": 600}))).await.expect(204);
    later().await;
    in_time(bed.wait_status(&first, "ACTIVE")).await;
    let failed = in_time(bed.wait_status(&second, "ERROR")).await;
    assert_eq!(failed["fault"]["message"], format!("Port {port} is still in use."));
    assert_eq!(bed.get(&path).await["port"]["device_id"], "", "the clean-up took it from the first");
    let third = bed.server("third", json!({"networks": [{"port": port}]})).await;
    later().await;
    in_time(bed.wait_status(&third, "ACTIVE")).await;
    assert_eq!(bed.get(&path).await["port"]["device_id"], third);
    let fourth = bed.server_body("fourth", json!({"networks": [{"port": port}]})).await;
    bed.call("POST", "/compute/v2.1/servers", Some(fourth)).await.expect(409);
}

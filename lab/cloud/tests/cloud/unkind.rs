//! What the real services do and a kind imitation would not.

use hangar_cloud::Config;
use hangar_cloud::config::FlavorSeed;
use hangar_cloud::driver::RecordingDriver;
use serde_json::{Value, json};

use crate::client::{Bed, id, in_time, neutron_error, send, start, start_with};

async fn arm(bed: &Bed, rule: Value) {
    bed.admin("POST", "faults", Some(rule)).await.expect(204);
}

async fn names(bed: &Bed, collection: &str) -> usize {
    bed.get(&format!("/network/v2.0/{collection}")).await[collection].as_array().unwrap().len()
}

#[tokio::test]
async fn a_server_that_fails_takes_its_port_from_the_one_that_has_it() {
    let bed = start().await;
    let (network, _) = bed.network("net", "10.6.0.0/24").await;
    let port = id(&bed.make("ports", "port", json!({"network_id": network})).await);
    let path = format!("/network/v2.0/ports/{port}");
    let late = json!({"delay": {"milliseconds": 1}});
    arm(&bed, json!({"name": "late", "method": "POST", "path": "*/servers", "action": late})).await;
    let action = json!({"fail_server": {"message": "No valid host was found."}});
    let body = "\"unlucky\"";
    arm(&bed, json!({"name": "unlucky", "path": "*/servers", "body": body, "action": action})).await;
    // Both are asked for while nobody has the port.
    let networks = json!({"networks": [{"port": port}]});
    let (lucky, unlucky) =
        tokio::join!(bed.server("lucky", networks.clone()), bed.server("unlucky", networks));
    in_time(bed.wait_status(&unlucky, "ERROR")).await;
    in_time(bed.wait_status(&lucky, "ACTIVE")).await;
    let gone = format!("/compute/v2.1/servers/{unlucky}");
    bed.delete(&gone).await.expect(204);
    in_time(bed.wait_gone(&gone)).await;
    assert_eq!(bed.get(&path).await["port"]["device_id"], "", "its end frees the port, whoever has it");
    assert_eq!(bed.get(&path).await["port"]["status"], "DOWN");
}

#[tokio::test]
async fn two_creates_of_one_range_at_once_both_succeed() {
    let bed = start().await;
    let network = id(&bed.make("networks", "network", json!({"name": "net"})).await);
    let late = json!({"delay": {"milliseconds": 200}});
    arm(&bed, json!({"name": "late", "method": "POST", "path": "*/subnets", "times": 2, "action": late}))
        .await;
    let body = json!({"subnet": {"network_id": network, "cidr": "10.6.0.0/24", "ip_version": 4}});
    let call = || bed.call("POST", "/network/v2.0/subnets", Some(body.clone()));
    let (one, other) = tokio::join!(call(), call());
    one.expect(201);
    other.expect(201);
    assert_eq!(neutron_error(call().await, 400), "InvalidInput", "one after the other is refused");
    let several = json!({"subnets": [
        {"network_id": network, "cidr": "10.7.0.0/24", "ip_version": 4},
        {"network_id": network, "cidr": "10.7.0.0/24", "ip_version": 4},
    ]});
    bed.call("POST", "/network/v2.0/subnets", Some(several)).await.expect(400);
}

#[tokio::test]
async fn a_list_that_lags_shows_what_was() {
    let bed = start().await;
    let before = names(&bed, "networks").await;
    let lag = json!({"lag": {"milliseconds": 60_000}});
    arm(&bed, json!({"name": "lag", "method": "GET", "path": "*/networks", "action": lag})).await;
    let made = id(&bed.make("networks", "network", json!({"name": "new"})).await);
    assert_eq!(names(&bed, "networks").await, before);
    bed.get(&format!("/network/v2.0/networks/{made}")).await;
    bed.admin("POST", "clock", Some(json!({"advance_seconds": 61}))).await.expect(204);
    assert_eq!(names(&bed, "networks").await, before + 1);
    bed.delete(&format!("/network/v2.0/networks/{made}")).await.expect(204);
    assert_eq!(names(&bed, "networks").await, before + 1, "what is gone is still shown");
}

#[tokio::test]
async fn a_subnet_that_is_being_changed_is_a_conflict() {
    let bed = start().await;
    let (network, _) = bed.network("net", "10.6.0.0/24").await;
    arm(&bed, json!({"name": "busy", "path": "*/ports", "method": "POST", "action": "subnet_busy"})).await;
    let body = json!({"port": {"network_id": network}});
    let answer = bed.call("POST", "/network/v2.0/ports", Some(body)).await;
    assert_eq!(neutron_error(answer, 409), "SubnetInUse");
}

#[tokio::test]
async fn every_network_has_a_port_of_the_cloud_which_goes_with_it() {
    let bed = start().await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let found = bed.get(&format!("/network/v2.0/ports?network_id={network}")).await;
    let port = &found["ports"][0];
    assert_eq!(port["device_owner"], "network:distributed");
    assert_eq!(port["fixed_ips"], json!([{"subnet_id": subnet, "ip_address": "10.6.0.2"}]));
    bed.delete(&format!("/network/v2.0/ports/{}", port["id"].as_str().unwrap())).await.expect(409);
    bed.delete(&format!("/network/v2.0/subnets/{subnet}")).await.expect(204);
    bed.delete(&format!("/network/v2.0/networks/{network}")).await.expect(204);
    assert_eq!(names(&bed, "ports").await, 0);
}

#[tokio::test]
async fn nova_refuses_flavors_without_a_disk_odd_tags_and_unknown_zones() {
    let mut config = Config::for_tests();
    let diskless = FlavorSeed { name: "diskless".into(), disk: 0, ..config.flavors[0].clone() };
    config.flavors.push(diskless);
    let bed = start_with(config, RecordingDriver::new()).await;
    let flavors = bed.get("/compute/v2.1/flavors").await;
    let flavors = flavors["flavors"].as_array().unwrap();
    let flavor = flavors.iter().find(|flavor| flavor["name"] == "diskless").unwrap();
    let version = ("OpenStack-API-Version", "compute 2.53");
    for (more, status, words) in [
        (json!({"flavorRef": flavor["id"]}), 403, "zero disk"),
        (json!({"tags": ["with/slash"]}), 400, "with/slash"),
        (json!({"availability_zone": "moon"}), 400, "availability zone"),
    ] {
        let mut body = bed.server_body("one", json!({"networks": "none"})).await;
        body["server"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let headers = [("X-Auth-Token", bed.token.as_str()), version];
        let answer = send(&bed.cloud, "POST", "/compute/v2.1/servers", &headers, Some(&body)).await.unwrap();
        assert!(answer.text.contains(words), "{}", answer.text);
        answer.expect(status);
    }
    assert!(bed.cloud.model().servers.is_empty());
}

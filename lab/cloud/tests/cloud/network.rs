//! Neutron: networks, subnets, ports, tags, filters.

use serde_json::json;

use crate::client::{id, log_in, neutron_error, start};

#[tokio::test]
async fn a_network_with_subnet_and_port() {
    let bed = start().await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let view = bed.get(&format!("/network/v2.0/networks/{network}")).await["network"].take();
    assert_eq!(view["subnets"], json!([subnet]));
    assert_eq!(view["router:external"], false);
    let view = bed.get(&format!("/network/v2.0/subnets/{subnet}")).await["subnet"].take();
    assert_eq!(view["gateway_ip"], "10.6.0.1");
    assert_eq!(view["allocation_pools"], json!([{"start": "10.6.0.2", "end": "10.6.0.254"}]));
    let port = bed.make("ports", "port", json!({"network_id": network, "name": "p"})).await;
    assert_eq!(port["fixed_ips"], json!([{"subnet_id": subnet, "ip_address": "10.6.0.3"}]));
    assert_eq!(port["status"], "DOWN");
    let groups = bed.get("/network/v2.0/security-groups?name=default").await;
    assert_eq!(port["security_groups"], json!([groups["security_groups"][0]["id"]]));
    let second = bed.make("ports", "port", json!({"network_id": network})).await;
    assert_eq!(second["fixed_ips"][0]["ip_address"], "10.6.0.4");
    assert_ne!(second["mac_address"], port["mac_address"]);
}

#[tokio::test]
async fn names_need_not_be_unique_and_filters_find_all() {
    let bed = start().await;
    for description in ["one", "two"] {
        bed.make("networks", "network", json!({"name": "same", "description": description})).await;
    }
    let count = async |query: &str| {
        let found = bed.get(&format!("/network/v2.0/networks?{query}")).await;
        found["networks"].as_array().unwrap().len()
    };
    assert_eq!(count("name=same").await, 2);
    assert_eq!(count("name=same&description=two").await, 1);
    assert_eq!(count("description=one&description=two").await, 2, "of one filter given twice either will do");
    assert_eq!(count("name=sam").await, 0, "names match whole");
    assert_eq!(count("router:external=True").await, 1);
    let answer = bed.call("GET", "/network/v2.0/networks?colour=red", None).await;
    assert_eq!(neutron_error(answer, 400), "HTTPBadRequest");
}

#[tokio::test]
async fn tags_are_set_and_filtered() {
    let bed = start().await;
    let network = bed.make("networks", "network", json!({"name": "n"})).await;
    let path = format!("/network/v2.0/networks/{}/tags", id(&network));
    let tags = json!({"tags": ["a", "b"]});
    assert_eq!(bed.call("PUT", &path, Some(tags.clone())).await.expect(200), tags);
    bed.call("PUT", &format!("{path}/c"), None).await.expect(201);
    bed.call("DELETE", &format!("{path}/b"), None).await.expect(204);
    bed.call("GET", &format!("{path}/a"), None).await.expect(204);
    assert_eq!(neutron_error(bed.call("GET", &format!("{path}/b"), None).await, 404), "TagNotFound");
    for (query, count) in
        [("tags=a,c", 1), ("tags=a,b", 0), ("tags-any=b,c", 1), ("not-tags=a,c", 1), ("not-tags-any=z", 2)]
    {
        let found = bed.get(&format!("/network/v2.0/networks?{query}")).await;
        assert_eq!(found["networks"].as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn what_is_in_use_stays() {
    let bed = start().await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let port = id(&bed.make("ports", "port", json!({"network_id": network})).await);
    let answer = bed.delete(&format!("/network/v2.0/subnets/{subnet}")).await;
    assert_eq!(neutron_error(answer, 409), "SubnetInUse");
    let answer = bed.delete(&format!("/network/v2.0/networks/{network}")).await;
    assert!(answer.text.contains(&port), "the refusal names the ports: {}", answer.text);
    assert_eq!(neutron_error(answer, 409), "NetworkInUse");
    bed.delete(&format!("/network/v2.0/ports/{port}")).await.expect(204);
    bed.delete(&format!("/network/v2.0/networks/{network}")).await.expect(204);
    let answer = bed.call("GET", &format!("/network/v2.0/subnets/{subnet}"), None).await;
    assert_eq!(neutron_error(answer, 404), "SubnetNotFound");
}

#[tokio::test]
async fn other_projects_see_nothing() {
    let bed = start().await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let port = id(&bed.make("ports", "port", json!({"network_id": network})).await);
    let other = log_in(&bed.cloud, "other").await;
    for path in [format!("networks/{network}"), format!("subnets/{subnet}"), format!("ports/{port}")] {
        for method in ["GET", "DELETE"] {
            bed.call_as(&other, method, &format!("/network/v2.0/{path}"), None).await.expect(404);
        }
    }
    let answer =
        bed.call_as(&other, "POST", "/network/v2.0/ports", Some(json!({"port": {"network_id": network}})));
    assert_eq!(neutron_error(answer.await, 404), "NetworkNotFound");
    let external = bed.external().await;
    bed.call_as(&other, "GET", &format!("/network/v2.0/networks/{external}"), None).await.expect(200);
    let answer = bed.call_as(&other, "DELETE", &format!("/network/v2.0/networks/{external}"), None).await;
    assert_eq!(neutron_error(answer, 403), "PolicyNotAuthorized");
    let body = json!({"port": {"network_id": external}});
    let answer = bed.call_as(&other, "POST", "/network/v2.0/ports", Some(body)).await;
    assert_eq!(neutron_error(answer, 403), "HTTPForbidden");
    let subnets = bed.call_as(&other, "GET", "/network/v2.0/subnets", None).await.expect(200);
    assert_eq!(subnets["subnets"], json!([]), "subnets of the external network are hidden");
}

#[tokio::test]
async fn addresses_are_given_once() {
    let bed = start().await;
    let (network, subnet) = bed.network("tiny", "10.6.0.0/29").await;
    let fixed =
        json!({"network_id": network, "fixed_ips": [{"subnet_id": subnet, "ip_address": "10.6.0.4"}]});
    bed.make("ports", "port", fixed.clone()).await;
    let answer = bed.call("POST", "/network/v2.0/ports", Some(json!({"port": fixed}))).await;
    assert_eq!(neutron_error(answer, 409), "IpAddressAlreadyAllocated");
    let outside = json!({"port": {"network_id": network, "fixed_ips": [{"ip_address": "10.7.0.4"}]}});
    let answer = bed.call("POST", "/network/v2.0/ports", Some(outside)).await;
    assert_eq!(neutron_error(answer, 400), "InvalidIpForNetwork");
    for expected in ["10.6.0.3", "10.6.0.5", "10.6.0.6"] {
        let port = bed.make("ports", "port", json!({"network_id": network})).await;
        assert_eq!(port["fixed_ips"][0]["ip_address"], expected);
    }
    let answer =
        bed.call("POST", "/network/v2.0/ports", Some(json!({"port": {"network_id": network}}))).await;
    assert_eq!(neutron_error(answer, 409), "IpAddressGenerationFailure");
    let overlapping = json!({"subnet": {"network_id": network, "cidr": "10.6.0.0/24", "ip_version": 4}});
    let answer = bed.call("POST", "/network/v2.0/subnets", Some(overlapping)).await;
    assert_eq!(neutron_error(answer, 400), "InvalidInput");
}

#[tokio::test]
async fn a_port_keeps_what_it_was_made_with() {
    let bed = start().await;
    let (network, _) = bed.network("net", "10.6.0.0/24").await;
    let pairs = json!([{"ip_address": "10.244.0.0/16"}, {"ip_address": "10.6.0.99", "mac_address": "fa:16:3e:00:00:01"}]);
    let port = json!({"network_id": network, "allowed_address_pairs": pairs, "description": "owner 1", "security_groups": []});
    let port = bed.make("ports", "port", port).await;
    assert_eq!(port["allowed_address_pairs"][0]["ip_address"], "10.244.0.0/16");
    assert_eq!(port["allowed_address_pairs"][0]["mac_address"], port["mac_address"]);
    assert_eq!(port["allowed_address_pairs"][1]["ip_address"], "10.6.0.99");
    assert_eq!(port["security_groups"], json!([]));
    let address = port["fixed_ips"][0]["ip_address"].as_str().unwrap();
    for query in [
        "description=owner+1".to_owned(),
        format!("fixed_ips=ip_address={address}"),
        format!("network_id={network}&device_owner="),
    ] {
        let found = bed.get(&format!("/network/v2.0/ports?{query}")).await;
        assert_eq!(found["ports"].as_array().unwrap().len(), 1, "{query}");
    }
    let subnet = port["fixed_ips"][0]["subnet_id"].as_str().unwrap();
    for (other, count) in [(subnet, 1), ("0b6a3dd1-9fe4-4bd7-9df2-7b8ff9b8d0d0", 0)] {
        let query = format!("fixed_ips=ip_address={address}&fixed_ips=subnet_id={other}");
        let found = bed.get(&format!("/network/v2.0/ports?{query}")).await;
        assert_eq!(found["ports"].as_array().unwrap().len(), count, "both must fit");
    }
    let change = json!({"port": {"port_security_enabled": false}});
    let answer = bed.call("PUT", &format!("/network/v2.0/ports/{}", id(&port)), Some(change)).await;
    assert_eq!(neutron_error(answer, 409), "AddressPairAndPortSecurityRequired");
    let unchanged = bed.get(&format!("/network/v2.0/ports/{}", id(&port))).await;
    assert_eq!(unchanged["port"], port, "a refused update changes nothing");
}

#[tokio::test]
async fn what_is_not_understood_is_refused() {
    let bed = start().await;
    for (collection, body) in [
        ("networks", json!({"network": {"name": "x", "colour": "red"}})),
        ("networks", json!({"net": {}})),
        ("networks", json!({"network": {"admin_state_up": "maybe"}})),
        ("subnets", json!({"subnet": {"cidr": "10.0.0.0/24"}})),
        ("ports", json!({"port": {}})),
    ] {
        let answer = bed.call("POST", &format!("/network/v2.0/{collection}"), Some(body.clone())).await;
        assert_eq!(neutron_error(answer, 400), "HTTPBadRequest", "{body}");
    }
    bed.get("/network/v2.0/extensions/standard-attr-tag").await;
    bed.call("GET", "/network/v2.0/extensions/trunk", None).await.expect(404);
    bed.call("GET", "/network/v2.0/trunks", None).await.expect(404);
}

#[tokio::test]
async fn quotas_end_it() {
    let bed = start().await;
    bed.admin("PUT", "quotas/demo", Some(json!({"network": 1, "port": 0}))).await.expect(204);
    let (network, _) = bed.network("one", "10.6.0.0/24").await;
    let answer = bed.call("POST", "/network/v2.0/networks", Some(json!({"network": {}}))).await;
    assert!(answer.text.contains("Quota exceeded for resources: ['network']"), "{}", answer.text);
    assert_eq!(neutron_error(answer, 409), "OverQuota");
    let answer =
        bed.call("POST", "/network/v2.0/ports", Some(json!({"port": {"network_id": network}}))).await;
    assert_eq!(neutron_error(answer, 409), "OverQuota");
    let project = bed.cloud.model().projects.into_values().find(|project| project.name == "demo").unwrap();
    let details = bed.get(&format!("/network/v2.0/quotas/{}/details", project.id)).await;
    assert_eq!(details["quota"]["network"], json!({"used": 1, "limit": 1, "reserved": 0}));
}

#[tokio::test]
async fn several_at_once_are_all_or_none() {
    let bed = start().await;
    let good = json!({"networks": [{"name": "a"}, {"name": "b"}]});
    let made = bed.call("POST", "/network/v2.0/networks", Some(good)).await.expect(201);
    assert_eq!(made["networks"].as_array().unwrap().len(), 2);
    let bad = json!({"networks": [{"name": "c"}, {"colour": "red"}]});
    bed.call("POST", "/network/v2.0/networks", Some(bad)).await.expect(400);
    assert_eq!(bed.get("/network/v2.0/networks?name=c").await["networks"], json!([]));
}

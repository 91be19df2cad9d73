//! Neutron: routers and floating IPs.

use serde_json::{Value, json};

use crate::client::{Bed, id, neutron_error, start};

async fn router(bed: &Bed) -> (String, Value) {
    let gateway = json!({"network_id": bed.external().await});
    let router = bed.make("routers", "router", json!({"name": "r", "external_gateway_info": gateway})).await;
    (id(&router), router)
}

async fn interface(bed: &Bed, router: &str, verb: &str, subnet: &str) -> crate::client::Answer {
    let path = format!("/network/v2.0/routers/{router}/{verb}_router_interface");
    bed.call("PUT", &path, Some(json!({"subnet_id": subnet}))).await
}

#[tokio::test]
async fn a_router_joins_a_subnet_to_the_outside() {
    let bed = start().await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let (router, view) = router(&bed).await;
    assert_eq!(view["external_gateway_info"]["external_fixed_ips"][0]["ip_address"], "203.0.113.10");
    let leg = interface(&bed, &router, "add", &subnet).await.expect(200);
    assert_eq!(leg["network_id"], json!(network));
    let ports = bed.get(&format!("/network/v2.0/ports?device_id={router}")).await;
    assert_eq!(ports["ports"].as_array().unwrap().len(), 1, "the gateway's port is not the project's");
    assert_eq!(ports["ports"][0]["fixed_ips"][0]["ip_address"], "10.6.0.1");
    assert_eq!(ports["ports"][0]["device_owner"], "network:router_interface");
    let answer = interface(&bed, &router, "add", &subnet).await;
    assert!(answer.text.contains("already has a port on subnet"), "{}", answer.text);
    assert_eq!(neutron_error(answer, 400), "BadRequest");
}

#[tokio::test]
async fn a_router_goes_after_its_legs() {
    let bed = start().await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let (router, _) = router(&bed).await;
    let leg = interface(&bed, &router, "add", &subnet).await.expect(200);
    let port = leg["port_id"].as_str().unwrap();
    assert_eq!(
        neutron_error(bed.delete(&format!("/network/v2.0/routers/{router}")).await, 409),
        "RouterInUse"
    );
    assert_eq!(
        neutron_error(bed.delete(&format!("/network/v2.0/ports/{port}")).await, 409),
        "ServicePortInUse"
    );
    assert_eq!(
        neutron_error(bed.delete(&format!("/network/v2.0/subnets/{subnet}")).await, 409),
        "SubnetInUse"
    );
    assert_eq!(
        neutron_error(bed.delete(&format!("/network/v2.0/networks/{network}")).await, 409),
        "NetworkInUse"
    );
    interface(&bed, &router, "remove", &subnet).await.expect(200);
    let again = interface(&bed, &router, "remove", &subnet).await;
    assert_eq!(neutron_error(again, 404), "RouterInterfaceNotFoundForSubnet");
    bed.delete(&format!("/network/v2.0/routers/{router}")).await.expect(204);
    bed.delete(&format!("/network/v2.0/networks/{network}")).await.expect(204);
    let model = bed.cloud.model();
    assert!(model.ports.is_empty() && model.routers.is_empty(), "the gateway's port went with the router");
}

#[tokio::test]
async fn floating_ips_need_a_way_and_hold_it() {
    let bed = start().await;
    let (network, subnet) = bed.network("net", "10.6.0.0/24").await;
    let external = bed.external().await;
    let port = id(&bed.make("ports", "port", json!({"network_id": network})).await);
    let floating = bed.make("floatingips", "floatingip", json!({"floating_network_id": external})).await;
    assert_eq!((&floating["status"], &floating["port_id"]), (&json!("DOWN"), &Value::Null));
    let path = format!("/network/v2.0/floatingips/{}", id(&floating));
    let associate = json!({"floatingip": {"port_id": port}});
    let answer = bed.call("PUT", &path, Some(associate.clone())).await;
    assert_eq!(neutron_error(answer, 404), "ExternalGatewayForFloatingIPNotFound");
    let (router, _) = router(&bed).await;
    interface(&bed, &router, "add", &subnet).await.expect(200);
    let view = bed.call("PUT", &path, Some(associate)).await.expect(200)["floatingip"].take();
    assert_eq!((&view["status"], &view["fixed_ip_address"]), (&json!("ACTIVE"), &json!("10.6.0.3")));
    assert_eq!(view["router_id"], json!(router));
    let second = json!({"floatingip": {"floating_network_id": external, "port_id": port}});
    let answer = bed.call("POST", "/network/v2.0/floatingips", Some(second)).await;
    assert_eq!(neutron_error(answer, 409), "FloatingIPPortAlreadyAssociated");
    assert_eq!(bed.cloud.model().floating_ips.len(), 1, "a refused one takes no address");
    let answer = interface(&bed, &router, "remove", &subnet).await;
    assert_eq!(neutron_error(answer, 409), "RouterInterfaceInUseByFloatingIP");
    let clear = json!({"router": {"external_gateway_info": null}});
    let answer = bed.call("PUT", &format!("/network/v2.0/routers/{router}"), Some(clear)).await;
    assert_eq!(neutron_error(answer, 409), "RouterExternalGatewayInUseByFloatingIp");
    bed.delete(&format!("/network/v2.0/ports/{port}")).await.expect(204);
    let view = bed.get(&path).await["floatingip"].take();
    assert_eq!(view["port_id"], Value::Null, "it outlives the port");
    bed.delete(&path).await.expect(204);
    interface(&bed, &router, "remove", &subnet).await.expect(200);
}

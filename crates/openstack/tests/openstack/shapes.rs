//! Tests that the bodies of requests and answers have the documented format.

use hangar_openstack::{
    AddressPair, ExternalGateway, FixedIpRequest, PortCreate, PortId, RouterCreate, SecurityGroupRuleCreate,
    ServerCreate, ServerId, ServerNetwork, SubnetCreate,
};
use serde_json::json;

use crate::fixture::Cloud;

#[tokio::test]
async fn neutron_bodies_are_as_documented() {
    let cloud = Cloud::start().await;
    cloud.on(
        "POST /network/v2.0/subnets",
        1,
        201,
        &json!({ "subnet": { "id": "s", "network_id": "n", "cidr": "10.6.0.0/24", "ip_version": 4, "gateway_ip": "10.6.0.1",
            "allocation_pools": [{ "start": "10.6.0.2", "end": "10.6.0.254" }], "dns_nameservers": [], "tags": [],
            "name": "x", "description": "", "enable_dhcp": true, "host_routes": [], "ipv6_ra_mode": null } }),
    );
    cloud.on(
        "POST /network/v2.0/ports",
        1,
        201,
        &json!({ "port": { "id": "p", "network_id": "n", "device_id": "", "device_owner": "", "status": "DOWN",
            "fixed_ips": [{ "subnet_id": "s", "ip_address": "10.6.0.9" }], "mac_address": "fa:16:3e:00:00:01",
            "allowed_address_pairs": [{ "ip_address": "10.0.0.0/8", "mac_address": "fa:16:3e:00:00:01" }],
            "security_groups": ["g"], "binding:vnic_type": "normal", "port_security_enabled": true } }),
    );
    let router = json!({ "router": { "id": "r", "name": "x", "external_gateway_info": {
        "network_id": "ext", "enable_snat": true, "external_fixed_ips": [{ "subnet_id": "e", "ip_address": "203.0.113.7" }],
    } } });
    cloud.on("POST /network/v2.0/routers", 1, 201, &router);
    cloud.on(
        "POST /network/v2.0/security-group-rules",
        1,
        201,
        &json!({ "security_group_rule": { "id": "u", "security_group_id": "g", "direction": "ingress",
            "ethertype": "IPv4", "protocol": "4", "port_range_min": null, "port_range_max": null } }),
    );
    let network = cloud.session().network();
    let mut subnet = SubnetCreate::new("x", "n".into(), "10.6.0.0/24".parse().unwrap());
    subnet.description = "owner".to_owned();
    subnet.dns_nameservers = vec!["1.1.1.1".parse().unwrap()];
    assert_eq!(network.create(&subnet).await.unwrap().cidr.to_string(), "10.6.0.0/24");
    let mut port = PortCreate::new("w-0", "n".into());
    port.fixed_ips = vec![FixedIpRequest { subnet_id: Some("s".into()), ip_address: None }];
    port.security_group_ids = Some(vec!["g".into()]);
    port.allowed_address_pairs = vec![AddressPair { ip_address: "10.0.0.0/8".to_owned(), mac_address: None }];
    assert_eq!(network.create(&port).await.unwrap().id, PortId::from("p"));
    let gateway = ExternalGateway { network_id: "ext".into(), addresses: Vec::new() };
    let router =
        RouterCreate { name: "x".to_owned(), external_gateway: Some(gateway), ..RouterCreate::default() };
    let made = network.create(&router).await.unwrap();
    assert_eq!(made.external_gateway.unwrap().addresses[0].ip_address, Some("203.0.113.7".parse().unwrap()));
    let rule = SecurityGroupRuleCreate {
        security_group_id: "g".into(),
        direction: "ingress".to_owned(),
        ethertype: "IPv4".to_owned(),
        protocol: Some("4".to_owned()),
        port_range_min: None,
        port_range_max: None,
        remote_ip_prefix: None,
        remote_group_id: Some("g".into()),
        description: "IP-in-IP".to_owned(),
    };
    network.create(&rule).await.unwrap();
    let bodies: Vec<_> = cloud.requests().iter().map(crate::fixture::Seen::json).collect();
    assert_eq!(
        bodies,
        [
            json!({ "subnet": { "name": "x", "description": "owner", "network_id": "n", "cidr": "10.6.0.0/24",
                "ip_version": 4, "dns_nameservers": ["1.1.1.1"] } }),
            json!({ "port": { "name": "w-0", "description": "", "network_id": "n", "fixed_ips": [{ "subnet_id": "s" }],
                "security_groups": ["g"], "allowed_address_pairs": [{ "ip_address": "10.0.0.0/8" }] } }),
            json!({ "router": { "name": "x", "description": "", "external_gateway_info": { "network_id": "ext" } } }),
            json!({ "security_group_rule": { "security_group_id": "g", "direction": "ingress", "ethertype": "IPv4",
                "protocol": "4", "remote_group_id": "g", "description": "IP-in-IP" } }),
        ]
    );
}

#[tokio::test]
async fn zones_and_flavors_are_read_as_nova_writes_them() {
    let cloud = Cloud::start().await;
    cloud.on(
        "GET /compute/v2.1/os-availability-zone",
        1,
        200,
        &json!({ "availabilityZoneInfo": [{ "zoneName": "nova", "zoneState": { "available": true }, "hosts": null }] }),
    );
    cloud.on(
        "GET /compute/v2.1/flavors/detail",
        1,
        200,
        &json!({ "flavors": [{ "id": "1", "name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 1, "swap": "",
            "OS-FLV-EXT-DATA:ephemeral": 0, "rxtx_factor": 1.0, "os-flavor-access:is_public": true, "links": [] }] }),
    );
    let session = cloud.session();
    assert_eq!(session.compute().availability_zones().await.unwrap()[0].name, "nova");
    assert_eq!(session.compute().flavors().await.unwrap()[0].name, "m1.tiny");
}

#[tokio::test]
async fn a_server_is_made_read_and_deleted() {
    let cloud = Cloud::start().await;
    let missing = json!({ "itemNotFound": { "code": 404, "message": "Instance s could not be found." } });
    cloud.on(
        "POST /compute/v2.1/servers",
        1,
        202,
        &json!({ "server": { "id": "s", "links": [], "OS-DCF:diskConfig": "MANUAL", "adminPass": "x", "security_groups": [] } }),
    );
    cloud.on("GET /compute/v2.1/servers/s", 1, 404, &missing);
    cloud.on("DELETE /compute/v2.1/servers/s", 1, 204, &json!({}));
    cloud.on("DELETE /compute/v2.1/servers/s", 1, 404, &missing);
    let compute = cloud.session().compute();
    let mut server = ServerCreate::new("w-0", "1".into(), "i".into());
    server.networks = vec![ServerNetwork::Port("p".into())];
    let id = compute.create_server(&server).await.unwrap();
    assert_eq!(id, ServerId::from("s"));
    assert_eq!(compute.server(&id).await.unwrap(), None);
    compute.delete_server(&id).await.unwrap();
    compute.delete_server(&id).await.unwrap();
}

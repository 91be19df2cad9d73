//! Neutron: security groups and their rules.

use serde_json::{Value, json};

use crate::client::{id, log_in, neutron_error, start};

#[tokio::test]
async fn each_project_has_a_default_group() {
    let bed = start().await;
    let groups = bed.get("/network/v2.0/security-groups").await["security_groups"].take();
    assert_eq!(groups.as_array().unwrap().len(), 1);
    assert_eq!(groups[0]["security_group_rules"].as_array().unwrap().len(), 4);
    let answer = bed.delete(&format!("/network/v2.0/security-groups/{}", id(&groups[0]))).await;
    assert_eq!(neutron_error(answer, 409), "SecurityGroupCannotRemoveDefault");
    let other = log_in(&bed.cloud, "other").await;
    let path = format!("/network/v2.0/security-groups/{}", id(&groups[0]));
    bed.call_as(&other, "GET", &path, None).await.expect(404);
    let answer = bed.call(
        "POST",
        "/network/v2.0/security-groups",
        Some(json!({"security_group": {"name": "default"}})),
    );
    assert_eq!(neutron_error(answer.await, 409), "SecurityGroupDefaultAlreadyExists");
}

#[tokio::test]
async fn rules_are_checked_and_unique() {
    let bed = start().await;
    let group = id(&bed.make("security-groups", "security_group", json!({"name": "g"})).await);
    let rule = |more: Value| {
        let mut rule = json!({"security_group_id": group, "direction": "ingress", "ethertype": "IPv4"});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"security_group_rule": rule})
    };
    let path = "/network/v2.0/security-group-rules";
    let ssh = json!({"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "0.0.0.0/0"});
    bed.call("POST", path, Some(rule(ssh.clone()))).await.expect(201);
    assert_eq!(neutron_error(bed.call("POST", path, Some(rule(ssh))).await, 409), "SecurityGroupRuleExists");
    let in_ip = bed.call("POST", path, Some(rule(json!({"protocol": "4"})))).await.expect(201);
    assert_eq!(in_ip["security_group_rule"]["protocol"], "4", "numbers stay as they were given");
    for (more, name) in [
        (
            json!({"protocol": "tcp", "port_range_min": 9, "port_range_max": 8}),
            "SecurityGroupInvalidPortRange",
        ),
        (json!({"port_range_min": 9, "port_range_max": 9}), "SecurityGroupProtocolRequiredWithPorts"),
        (json!({"protocol": "256"}), "SecurityGroupRuleInvalidProtocol"),
        (json!({"protocol": "ipv6-icmp"}), "SecurityGroupEthertypeConflictWithProtocol"),
        (
            json!({"protocol": "tcp", "port_range_min": 0, "port_range_max": 0}),
            "SecurityGroupInvalidPortValue",
        ),
        (json!({"protocol": "icmp", "port_range_min": 300}), "SecurityGroupInvalidIcmpValue"),
        (json!({"remote_ip_prefix": "fd00::/8"}), "SecurityGroupRuleParameterConflict"),
        (
            json!({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": group}),
            "SecurityGroupMultipleRemoteEntites",
        ),
    ] {
        let answer = bed.call("POST", path, Some(rule(more.clone()))).await;
        assert_eq!(neutron_error(answer, 400), name, "{more}");
    }
    let every = json!({"protocol": "udp", "port_range_min": 1, "port_range_max": 65535, "remote_ip_prefix": "0.0.0.0/0"});
    let made = bed.call("POST", path, Some(rule(every))).await.expect(201)["security_group_rule"].take();
    assert_eq!(made["port_range_max"], Value::Null, "every port is no ports");
    let answer = bed.call("POST", path, Some(rule(json!({"protocol": "17"})))).await;
    assert_eq!(neutron_error(answer, 409), "SecurityGroupRuleExists");
    bed.delete(&format!("{path}/{}", id(&made))).await.expect(204);
    let six = |protocol: &str| rule(json!({"ethertype": "IPv6", "protocol": protocol}));
    let made = bed.call("POST", path, Some(six("icmp"))).await.expect(201);
    assert_eq!(made["security_group_rule"]["protocol"], "ipv6-icmp", "it has one name");
    let answer = bed.call("POST", path, Some(six("ipv6-icmp"))).await;
    assert_eq!(neutron_error(answer, 409), "SecurityGroupRuleExists");
    let query = format!("{path}?security_group_id={group}&direction=ingress&ethertype=IPv4");
    let listed = bed.get(&query).await;
    assert_eq!(listed["security_group_rules"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_group_that_a_port_has_stays_and_takes_rules_about_it_along() {
    let bed = start().await;
    let one = id(&bed.make("security-groups", "security_group", json!({"name": "one"})).await);
    let two = id(&bed.make("security-groups", "security_group", json!({"name": "two"})).await);
    let rule = json!({"security_group_id": two, "direction": "ingress", "remote_group_id": one});
    let rule = id(&bed.make("security-group-rules", "security_group_rule", rule).await);
    let (network, _) = bed.network("net", "10.6.0.0/24").await;
    let port = id(&bed.make("ports", "port", json!({"network_id": network, "security_groups": [one]})).await);
    let answer = bed.delete(&format!("/network/v2.0/security-groups/{one}")).await;
    assert_eq!(neutron_error(answer, 409), "SecurityGroupInUse");
    bed.delete(&format!("/network/v2.0/ports/{port}")).await.expect(204);
    bed.delete(&format!("/network/v2.0/security-groups/{one}")).await.expect(204);
    bed.call("GET", &format!("/network/v2.0/security-group-rules/{rule}"), None).await.expect(404);
}

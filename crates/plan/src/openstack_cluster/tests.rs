//! Scenarios over a small cloud in memory: goldens of steps and conditions, and the crash sweep over creation and
//! deletion.

mod cloud;
mod ownership;

use super::*;
use crate::flow::crash::{World, sweep};
use crate::flow::{Identified as _, Read, Wake};
use crate::openstack::{Group, KnownRule, Port, REQUESTED_ANNOTATION, Router, Subnet};
use cloud::*;

#[test]
fn a_managed_network_with_groups() {
    insta::assert_snapshot!(Cloud::new(MANAGED).golden());
}

#[test]
fn an_existing_network() {
    insta::assert_snapshot!(Cloud::new(EXISTING).with_shared().golden());
}

#[test]
fn deletion_from_the_outside_in() {
    let mut cloud = Cloud::new(MANAGED).with_shared();
    cloud.settle_all();
    let mut cloud = cloud.deleted();
    insta::assert_snapshot!(cloud.golden());
    assert_eq!(
        (cloud.networks.len(), cloud.groups.len(), cloud.is_released),
        (1, 0, true),
        "only the shared one"
    );
}

#[test]
fn a_network_whose_subnet_was_taken_out_of_the_specification_is_deleted_too() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    cloud.object.as_mut().unwrap().spec.managed_subnets.clear();
    cloud.settle_all();
    assert_eq!(cloud.condition("NetworkReady").0, "NoNetwork");
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert!(cloud.is_released);
    assert!(cloud.networks.is_empty() && cloud.subnets.is_empty() && cloud.routers.is_empty());
}

#[test]
fn making_survives_a_crash_anywhere() {
    let swept = sweep(&Cloud::new(MANAGED), 200).unwrap();
    assert!(swept.trace.len() > 25, "{}", swept.trace.len());
    assert_eq!(swept.points, swept.trace.len() * 4);
}

#[test]
fn deleting_survives_a_crash_anywhere() {
    let mut cloud = Cloud::new(MANAGED).with_shared();
    cloud.settle_all();
    let swept = sweep(&cloud.deleted(), 200).unwrap();
    let trace: Vec<String> = swept.trace.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(trace.join("\n"));
}

/// What still came after its object was let go would be nobody's.
#[test]
fn a_deletion_waits_for_what_may_come_late() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    let requested = |cloud: &mut Cloud, note: &str| {
        let annotations = cloud.object.as_mut().unwrap().metadata.annotations.as_mut().unwrap();
        annotations.insert(REQUESTED_ANNOTATION.to_owned(), note.to_owned());
    };
    let mut settled = cloud.clone();
    requested(&mut settled, "2026-03-01T11:58:30Z router");
    assert_eq!(settled.settle_all(), ["settle creation self: done"]);
    requested(&mut settled, "2026-03-01T11:58:30Z router");
    let mut settled = settled.deleted();
    settled.settle_all();
    assert!(settled.is_released);

    requested(&mut cloud, "2026-03-01T11:58:31Z router");
    assert_eq!(cloud.settle_all(), [""; 0], "nothing waits for it while the cluster is kept");
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert_eq!((cloud.networks.len(), cloud.groups.len()), (0, 0));
    assert_eq!(
        cloud.condition("Ready"),
        (
            "Deleting".to_owned(),
            "waiting for the router that was asked for to be listed, or to be certain not to come: the answer was lost (the cloud must act)"
                .to_owned()
        )
    );
    assert_eq!(cloud.observe().plan().wake, Wake::after(cloud.observe().now, Duration::from_secs(1)));
    // It comes.
    cloud.routers.push(Router { id: "id-800".into(), ..Router::default() });
    assert!(cloud.settle_all()[0].starts_with("delete router"));
    assert!(!cloud.is_released && cloud.routers.is_empty());
}

#[test]
fn a_second_look_changes_nothing() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    let before = cloud.status().clone();
    assert!(before.ready);
    assert_eq!(cloud.settle_all(), Vec::<String>::new());
    assert_eq!(*cloud.status(), before);
}

#[test]
fn what_was_made_twice_is_swept() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    cloud.networks.push(network("id-900", "k8s-clusterapi-cluster-default-demo"));
    cloud.routers.push(Router { id: "id-901".into(), ..Router::default() });
    let group = Group { id: "id-902".into(), ..cloud.groups[1].clone() };
    cloud.groups.push(group);
    let kept = cloud.status().network.clone();
    assert_eq!(cloud.settle_all().len(), 3);
    assert_eq!((cloud.networks.len(), cloud.routers.len(), cloud.groups.len()), (1, 1, 2));
    assert_eq!(cloud.status().network, kept, "the recorded one stays");
}

#[test]
fn rules_added_by_hand_are_removed_and_missing_ones_made_again() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    let group = &mut cloud.groups[1];
    let removed = group.rules.remove(3);
    let by_hand = crate::openstack::GroupRule { protocol: Some("icmp".to_owned()), ..removed.rule };
    group.rules.push(KnownRule { id: "id-950".into(), rule: by_hand });
    let count = group.rules.len();
    let trace = cloud.settle_all();
    assert_eq!(trace.len(), 2, "{trace:#?}");
    assert_eq!(cloud.groups[1].rules.len(), count);
    assert!(!cloud.groups[1].rules.iter().any(|known| known.id.as_str() == "id-950"));
}

/// Neutron writes one address as a range, and knows several names of a protocol.
#[test]
fn rules_in_the_spelling_of_the_cloud_stay() {
    let rules = "
  - {name: a, direction: ingress, protocol: tcp, portRangeMin: 22, portRangeMax: 22, remoteIPPrefix: 10.1.2.3}
  - {name: b, direction: ingress, etherType: IPv6, protocol: icmp}
";
    let mut cloud = Cloud::new(&format!("{}{rules}", MANAGED.trim_end()));
    cloud.settle_all();
    let mut changed = 0;
    for known in cloud.groups.iter_mut().flat_map(|group| &mut group.rules) {
        let rule = &mut known.rule;
        if rule.remote_ip_prefix == crate::openstack::range("10.1.2.3") {
            rule.protocol = Some("6".to_owned());
            changed += 1;
        }
        if rule.ether_type == "IPv6" && rule.protocol.as_deref() == Some("icmp") {
            rule.protocol = Some("ipv6-icmp".to_owned());
            changed += 1;
        }
    }
    assert_eq!(changed, 4, "two rules in two groups");
    assert_eq!(cloud.settle_all(), [""; 0]);
}

/// Left out of the call, a port that is none would open all of them.
#[test]
fn a_rule_with_a_port_that_is_none_is_not_made() {
    let rule =
        "\n  - {name: far, direction: ingress, protocol: tcp, portRangeMin: 70000, portRangeMax: 70000}\n";
    let mut cloud = Cloud::new(&format!("{}{rule}", MANAGED.trim_end()));
    let trace = cloud.settle_all();
    assert!(!trace.iter().any(|step| step.starts_with("create security-group-rule")), "{trace:#?}");
    let (reason, message) = cloud.condition("SecurityGroupsReady");
    assert_eq!(reason, "InvalidRule");
    let field = "spec.managedSecurityGroups.allNodesSecurityGroupRules[far]: ports are from 0 to 65535";
    assert!(message.contains(field), "{message}");
}

#[test]
fn a_value_that_is_no_address_is_named_and_nothing_is_made() {
    let mut cloud = Cloud::new(&MANAGED.replace("[192.0.2.53]", "[192.0.2.53, dns]"));
    let trace = cloud.settle_all();
    assert!(!trace.iter().any(|step| step.starts_with("create network")), "{trace:#?}");
    let (reason, message) = cloud.condition("NetworkReady");
    assert_eq!(reason, "InvalidSpecification");
    assert!(message.contains("spec.managedSubnets[0].dnsNameservers[1]: \"dns\""), "{message}");
}

#[test]
fn name_servers_follow_the_specification() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    cloud.object.as_mut().unwrap().spec.managed_subnets[0].dns_nameservers = vec!["192.0.2.54".to_owned()];
    assert_eq!(cloud.settle_all(), ["update subnet k8s-clusterapi-cluster-default-demo: done"]);
    assert_eq!(cloud.subnets[0].dns_nameservers, [std::net::Ipv4Addr::new(192, 0, 2, 54)]);
    cloud.object.as_mut().unwrap().spec.managed_subnets[0].dns_nameservers = vec!["2001:DB8::53".to_owned()];
    cloud.settle_all();
    cloud.subnets[0].dns_nameservers = vec!["2001:db8::53".parse().unwrap()];
    assert_eq!(cloud.settle_all(), [""; 0], "the same address in another spelling");
}

#[test]
fn waiting_for_the_endpoint_is_no_error_where_somebody_else_writes_it() {
    let without_flag = MANAGED.replace("disableAPIServerFloatingIP: true", "");
    let cases = [
        (MANAGED.to_owned(), ControlPlane::Machines, true, "WaitingForControlPlaneEndpoint"),
        (MANAGED.to_owned(), ControlPlane::Unknown, true, "WaitingForControlPlaneEndpoint"),
        (without_flag.clone(), ControlPlane::External, true, "WaitingForControlPlaneEndpoint"),
        (without_flag.clone(), ControlPlane::Unknown, false, "WaitingForControlPlane"),
        (without_flag.clone(), ControlPlane::Machines, false, "Unsupported"),
        (
            format!("{MANAGED}\napiServerLoadBalancer: {{enabled: true}}"),
            ControlPlane::External,
            false,
            "Unsupported",
        ),
        (
            format!("{MANAGED}\napiServerLoadBalancer: {{enabled: false}}"),
            ControlPlane::External,
            true,
            "WaitingForControlPlaneEndpoint",
        ),
        (
            format!("{without_flag}\ncontrolPlaneEndpoint: {{host: api.example, port: 443}}"),
            ControlPlane::Machines,
            true,
            "",
        ),
    ];
    for (spec, control_plane, is_ready, reason) in cases {
        let mut cloud = Cloud { control_plane, ..Cloud::new(&spec) };
        let trace = cloud.settle_all();
        assert!(!trace.iter().any(|step| step.contains("floating")), "{trace:#?}");
        assert_eq!(
            (cloud.status().ready, cloud.condition("APIEndpointReady").0.as_str()),
            (is_ready, reason),
            "{spec}"
        );
    }
}

#[test]
fn an_ambiguous_or_missing_network_is_named() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.externals.push(network("external-2", "other"));
    cloud.settle_all();
    let (reason, message) = cloud.condition("RouterReady");
    assert_eq!(reason, "ExternalNetworkAmbiguous");
    assert!(message.contains("public (external), other (external-2)"), "{message}");
    assert!(!cloud.status().ready && cloud.networks.len() == 1, "the network does not wait for it");
    cloud.externals.pop();
    cloud.settle_all();
    assert!(cloud.status().ready, "cleared when fixed");

    let mut cloud = Cloud::new(EXISTING);
    cloud.settle_all();
    assert_eq!(cloud.condition("NetworkReady").0, "NetworkNotFound");
    assert_eq!(cloud.condition("RouterReady").0, "RouterNotFound");
    let mut cloud = Cloud::new(EXISTING).with_shared();
    let second = Subnet { id: "shared-subnet-2".into(), ..cloud.subnets[0].clone() };
    cloud.subnets.push(second);
    cloud.settle_all();
    let (reason, message) = cloud.condition("NetworkReady");
    assert!(reason == "SubnetAmbiguous" && message.contains("2 IPv4 subnets match"), "{reason} {message}");
}

#[test]
fn nothing_is_made_from_an_unknown_read() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    for part in 0..4 {
        let mut observed = cloud.observe();
        let facts = observed.cloud.facts_mut().unwrap();
        match part {
            0 => facts.networks = Read::unknown("503"),
            1 => facts.subnets = Read::unknown("503"),
            2 => facts.routers = Read::unknown("503"),
            _ => facts.groups = Read::unknown("503"),
        }
        let plan = checked(&observed);
        assert!(plan.steps.is_empty(), "{:?}", plan.steps);
        assert!(plan.status.ready, "what was ready stays usable");
        let ready = plan.status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
        assert_eq!(ready.status, "Unknown");
        let deleting = cloud.clone().deleted();
        let mut observed = deleting.observe();
        observed.cloud.facts_mut().unwrap().routers = Read::unknown("503");
        assert!(checked(&observed).steps.is_empty());
    }
}

#[test]
fn a_quota_is_said_in_the_words_of_the_cloud() {
    let cloud = Cloud::new(MANAGED);
    let mut observed = cloud.observe();
    claim(&mut observed);
    let step = checked(&observed).steps.iter().next().unwrap().clone();
    observed.fold(&step, &Outcome::refused("Quota exceeded for resources: ['network']."));
    let status = checked(&observed).status;
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!(
        (ready.reason.as_deref(), ready.severity.as_deref()),
        (Some("OpenStackRefused"), Some("Error"))
    );
    assert!(ready.message.as_deref().unwrap().contains("Quota exceeded for resources: ['network']"));
    observed.fold(&step, &Outcome::failed("CloudUnavailable", "503"));
    assert!(
        checked(&observed)
            .status
            .conditions
            .iter()
            .any(|condition| condition.reason.as_deref() == Some("CloudUnavailable"))
    );
}

#[test]
fn machines_and_leftovers_keep_the_network_and_are_named() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    let mut cloud = cloud.deleted();
    cloud.machines.push("worker-a".to_owned());
    assert!(cloud.settle_all().is_empty());
    let (reason, message) = cloud.condition("Ready");
    assert!(reason == "WaitingForMachines" && message.contains("worker-a"), "{reason} {message}");
    cloud.machines.clear();
    let network_id = cloud.networks[0].id.clone();
    cloud.strangers.push(Port {
        id: "p".into(),
        name: "lb".to_owned(),
        network_id,
        device_owner: "Octavia".to_owned(),
        ..Port::default()
    });
    let trace = cloud.settle_all();
    assert!(trace.last().unwrap().contains("refused"), "{trace:#?}");
    let (_, message) = cloud.condition("NetworkReady");
    assert!(message.contains("still on it: lb p (Octavia)"), "{message}");
    cloud.strangers.clear();
    cloud.settle_all();
    assert!(cloud.is_released);
}

#[test]
fn bad_credentials_are_said_and_stop_everything() {
    let mut observed = Cloud::new(MANAGED).observe();
    claim(&mut observed);
    observed.cloud = Access::Trouble(crate::openstack::CloudTrouble {
        reason: crate::openstack::conditions::cloud::UNAUTHORIZED,
        message: "The request you have made requires authentication.".to_owned(),
        actor: hangar_api::conditions::Actor::ClusterOwner,
    });
    let plan = checked(&observed);
    assert!(plan.steps.is_empty());
    insta::assert_snapshot!(serde_saphyr::to_string(&plan.status).unwrap());
}

#[test]
fn nothing_happens_while_paused_or_managed_by_others() {
    for annotation in ["cluster.x-k8s.io/paused", "cluster.x-k8s.io/managed-by"] {
        let mut cloud = Cloud::new(MANAGED);
        let meta = &mut cloud.object.as_mut().unwrap().metadata;
        meta.annotations = Some([(annotation.to_owned(), String::new())].into());
        assert!(cloud.settle_all().is_empty());
    }
}

#[test]
fn a_copied_owner_id_gives_no_right_to_what_carries_it() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    for cloud in [cloud.clone(), cloud.deleted()] {
        let mut observed = cloud.observe();
        observed.copied_from = Some("default/first".to_owned());
        let plan = checked(&observed);
        let steps: Vec<String> = plan.steps.iter().map(|step| step.id().to_string()).collect();
        let is_deleting = observed.object.metadata.deletion_timestamp.is_some();
        assert_eq!(steps, if is_deleting { vec!["release object self"] } else { vec![] });
    }
}

#[test]
fn names_are_pinned() {
    assert_eq!(resource_name("default", "basic-1"), "k8s-clusterapi-cluster-default-basic-1");
    assert_eq!(group_name("ns", "demo", Role::Worker), "k8s-cluster-ns-demo-secgroup-worker");
    assert_eq!(group_name("ns", "demo", Role::ControlPlane), "k8s-cluster-ns-demo-secgroup-controlplane");
}

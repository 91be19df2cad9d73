//! The life of a control plane, stage by stage, as goldens. What an epoch renders never changes: if a golden of objects
//! has to change, a new epoch is needed.

use serde_json::json;

use super::super::*;
use super::checker::checked;
use super::fixture::{
    ADDRESS, all_ready, api_server_ready, created, days, delete, etcd_started, secret, settle,
};
use super::golden;
use crate::flow::{Read, Wake};

#[test]
fn created_and_not_claimed() {
    insta::assert_snapshot!(golden::full(&checked(&created(&json!({})))));
}

#[test]
fn created_and_claimed() {
    let mut observed = created(&json!({}));
    let plan = checked(&observed);
    let claim = plan.steps.iter().next().unwrap();
    observed.fold(claim, &crate::flow::Outcome::Done);
    insta::assert_snapshot!(golden::brief(&checked(&observed)));
    // Certificates follow their authorities in the same pass.
    settle(&mut observed);
    insta::assert_snapshot!("created_and_minted", golden::brief(&checked(&observed)));
}

#[test]
fn etcd_has_begun() {
    insta::assert_snapshot!(golden::brief(&checked(&etcd_started(&json!({})))));
}

#[test]
fn the_first_api_server_is_ready() {
    insta::assert_snapshot!(golden::brief(&checked(&api_server_ready(&json!({})))));
}

#[test]
fn everything_is_ready() {
    let observed = all_ready(&json!({}));
    let plan = checked(&observed);
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    insta::assert_snapshot!(golden::full(&plan));
    let tenant = tenant_rights(&observed).into_iter().chain(tenant_objects(&observed));
    let tenant = tenant.map(|object| serde_json::to_value(object).unwrap());
    insta::assert_snapshot!("the_tenant", golden::documents(tenant));
}

#[test]
fn highly_available_with_everything_set() {
    let spec = json!({
        "version": "v1.37.1",
        "replicas": 3,
        "certSANs": ["api.example.org", "203.0.113.9"],
        "etcd": {"replicas": 3, "storageClassName": "fast", "volumeSize": "20Gi", "args": {"heartbeat-interval": "200"}},
        "exposure": {"loadBalancer": {"class": "example.org/lb", "annotations": {"a": "b"}, "sourceRanges": ["10.0.0.0/8"]}},
        "certificates": {"leafCertificateDuration": "720h"},
        "deployment": {
            "apiServer": {
                "args": {"audit-log-path": "-", "etcd-servers": "https://elsewhere"},
                "priorityClassName": "high",
                "mounts": {"pki": {"path": "/etc/more", "secret": {"secretName": "more"}}},
            },
            "controllerManager": {"replicas": 2, "image": {"registry": "registry.example.org", "tag": "v9"}},
            "scheduler": {"resources": {"limits": {"memory": "1Gi"}}},
        },
        "kubeProxy": {"disabled": true},
        "imageRegistry": "registry.example.org",
        "imagePullSecrets": [{"name": "mirror"}],
        "placement": {
            "nodeSelector": {"topology.kubernetes.io/zone": "a"},
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "noisy"}}},
            ]}},
        },
        "coredns": {"replicas": 3},
    });
    let observed = all_ready(&spec);
    insta::assert_snapshot!(golden::full(&checked(&observed)));
}

/// With the goldens above every renderer of the epoch, in each of its ways.
#[test]
fn reached_by_node_ports_and_in_two_families() {
    let spec = json!({
        "exposure": {
            "type": "NodePort",
            "nodeHost": "nodes.example.org",
            "nodePort": {"addresses": ["192.0.2.1", "2001:db8::1"], "port": 31000},
        },
        "controlPlaneEndpoint": {"host": "api.example.org", "port": 31000},
    });
    let mut observed = api_server_ready(&spec);
    for (read, name, port) in
        [(&mut observed.service, "https", 31000), (&mut observed.tunnel, "konnectivity", 31001)]
    {
        if let Read::One(service) = read {
            service.node_ports.insert(name.to_owned(), port);
        }
    }
    let brief = golden::brief(&checked(&observed));
    let services = checked(&observed).objects.into_iter();
    let services = services.filter(|object| object.types.as_ref().unwrap().kind == "Service");
    let objects = services.chain(tenant_objects(&observed));
    let objects = golden::documents(objects.map(|object| serde_json::to_value(object).unwrap()));
    insta::assert_snapshot!(format!("{brief}{objects}"));
}

#[test]
fn a_certificate_is_near_its_end() {
    let mut observed = all_ready(&json!({}));
    let end = observed.now.checked_add(days(100)).unwrap();
    let facts = secret(&mut observed, Material::Scheduler);
    facts.not_after = Some(end);
    facts.not_before = Some(end.checked_sub(days(365)).unwrap());
    let plan = checked(&observed);
    insta::assert_snapshot!(golden::brief(&plan));
    // What is there still works: nobody has to worry.
    let valid = plan
        .status
        .conditions
        .iter()
        .find(|condition| condition.type_ == conditions::certificates_valid::TYPE);
    assert_eq!(valid.unwrap().status, "True");
}

#[test]
fn the_address_comes_late() {
    let mut observed = all_ready(&json!({}));
    let before = checked(&observed);
    observed.control_plane.spec.settings.control_plane_endpoint = None;
    if let Read::One(service) = &mut observed.service {
        service.ingress_ips.clear();
        service.ingress_hostnames.clear();
    }
    if let Read::One(cluster) = &mut observed.cluster {
        cluster.endpoint.host.clear();
    }
    settle(&mut observed);
    let without = checked(&observed);
    insta::assert_snapshot!(golden::brief(&without));
    if let Read::One(service) = &mut observed.service {
        service.ingress_ips.push(ADDRESS.to_owned());
    }
    insta::assert_snapshot!("the_late_address_is_there", golden::brief(&checked(&observed)));
    settle(&mut observed);
    // Nothing that runs was changed by it.
    assert_eq!(checked(&observed).objects, without.objects);
    assert_eq!(before.objects, without.objects);
}

#[test]
fn paused() {
    let mut observed = all_ready(&json!({}));
    if let Read::One(cluster) = &mut observed.cluster {
        cluster.is_paused = true;
    }
    secret(&mut observed, Material::Scheduler).intent = None;
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty() && plan.wake == Wake::OnChange);
    insta::assert_snapshot!(golden::brief(&plan));
    // Deletion waits, too.
    delete(&mut observed);
    assert!(checked(&observed).steps.is_empty());
}

#[test]
fn deleting() {
    let mut observed = all_ready(&json!({}));
    delete(&mut observed);
    let mut stages = vec![golden::brief(&checked(&observed))];
    for read in [&mut observed.api_server, &mut observed.controller_manager, &mut observed.scheduler] {
        *read = Read::Absent;
    }
    stages.push(golden::brief(&checked(&observed)));
    observed.etcd = Read::Absent;
    (observed.service, observed.tunnel) = (Read::Absent, Read::Absent);
    stages.push(golden::brief(&checked(&observed)));
    observed.etcd_claims = Read::Absent;
    stages.push(golden::brief(&checked(&observed)));
    for read in observed.secrets.values_mut() {
        *read = Read::Absent;
    }
    stages.push(golden::brief(&checked(&observed)));
    insta::assert_snapshot!(stages.join(""));
}

//! Whose a network is: credentials of another project, objects of another provider, and what was made twice.

use super::super::*;
use super::cloud::*;
use crate::flow::Identified as _;
use crate::flow::crash::World as _;
use crate::openstack::{OWNER_ID_ANNOTATION, PROJECT_ANNOTATION, Port, Router};

fn steps(observed: &Observed) -> Vec<String> {
    observed.plan().steps.iter().map(|step| step.id().to_string()).collect()
}

fn told(observed: &Observed) -> (String, String) {
    let conditions = observed.plan().status.conditions;
    let ready = conditions.into_iter().find(|condition| condition.r#type == "Ready").unwrap();
    (ready.reason.unwrap_or_default(), ready.message.unwrap_or_default())
}

#[test]
fn with_credentials_of_another_project_nothing_is_made_deleted_or_released() {
    let mut cloud = Cloud { project: Some("one/project-1".to_owned()), ..Cloud::new(MANAGED) };
    let done = cloud.settle_all();
    assert_eq!(done[..2], ["claim object self: done", "record project self: done"]);
    let annotations = cloud.object.as_ref().unwrap().metadata.annotations.clone().unwrap();
    assert_eq!(annotations[PROJECT_ANNOTATION], "one/project-1");
    assert!(cloud.status().ready);
    let hidden = Cloud { object: cloud.object.clone(), ..Cloud::new(MANAGED) };
    let hidden = Cloud { project: Some("one/project-2".to_owned()), ..hidden };
    for elsewhere in [hidden.clone(), hidden.deleted()] {
        assert_eq!(steps(&elsewhere.observe()), Vec::<String>::new());
        let (reason, message) = told(&elsewhere.observe());
        assert_eq!(reason, "OtherProject");
        assert!(message.contains("one/project-1") && message.contains("one/project-2"), "{message}");
    }
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert!(cloud.is_released && cloud.networks.is_empty());
}

#[test]
fn what_another_provider_made_is_held() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    let metadata = &mut cloud.object.as_mut().unwrap().metadata;
    metadata.annotations.as_mut().unwrap().remove(OWNER_ID_ANNOTATION);
    for mut cloud in [cloud.clone(), cloud.deleted()] {
        let observed = Observed { cloud: Access::NotAsked, ..cloud.observe() };
        assert_eq!((observed.stage(), observed.wanted()), (Stage::MadeByAnother, None));
        assert_eq!(steps(&observed), Vec::<String>::new());
        let (reason, message) = told(&observed);
        assert_eq!(reason, "MadeByAnotherProvider");
        assert!(message.contains(OPENSTACK_CLUSTER_FINALIZER), "{message}");
        cloud.object.as_mut().unwrap().status = None;
        let expected = if cloud.object.as_ref().unwrap().metadata.deletion_timestamp.is_some() {
            Stage::Release
        } else {
            Stage::Claim
        };
        assert_eq!(cloud.observe().stage(), expected, "nothing was ever made");
    }
}

/// Deleting the connected one is refused, and the other cannot be connected: its address is taken.
#[test]
fn of_two_routers_the_connected_one_is_kept() {
    let mut cloud = Cloud::new(MANAGED);
    cloud.settle_all();
    let router = cloud.routers[0].clone();
    // Another with a lower id, and the record of it: a status that was written before the connection.
    cloud.routers.push(Router { id: "id-0".into(), ..router.clone() });
    let status = cloud.object.as_mut().unwrap().status.as_mut().unwrap();
    status.router.as_mut().unwrap().id = "id-0".to_owned();
    cloud.settle_all();
    assert_eq!(cloud.routers, std::slice::from_ref(&router));
    assert_eq!(cloud.status().router.as_ref().unwrap().id, router.id.to_string());
    assert!(cloud.status().ready);
    let held: Vec<&Port> =
        cloud.interfaces.iter().filter(|port| port.device_id == router.id.as_str()).collect();
    assert_eq!(held.len(), 1);
}

#[test]
fn several_networks_or_routers_are_named() {
    let mut cloud = Cloud::new(EXISTING).with_shared();
    cloud.networks.push(network("shared-network-2", "shared"));
    cloud.routers.push(Router { id: "shared-router-2".into(), ..cloud.routers[0].clone() });
    cloud.settle_all();
    for (type_, reason, names) in [
        (
            "NetworkReady",
            "NetworkAmbiguous",
            "2 networks match: shared (shared-network), shared (shared-network-2)",
        ),
        (
            "RouterReady",
            "RouterAmbiguous",
            "2 routers match: shared (shared-router), shared (shared-router-2)",
        ),
    ] {
        let (found, message) = cloud.condition(type_);
        assert!(found == reason && message.contains(names), "{found}: {message}");
    }
}

#[test]
fn the_endpoint_of_the_cluster_counts() {
    let mut observed = Cloud::new(MANAGED).observe();
    let mut said = |has_endpoint| {
        for cluster in observed.cluster.iter_mut() {
            cluster.has_endpoint = has_endpoint;
        }
        observed.object.metadata.finalizers = Some(vec![OPENSTACK_CLUSTER_FINALIZER.to_owned()]);
        let owner = (OWNER_ID_ANNOTATION.to_owned(), "owner-1".to_owned());
        observed.object.metadata.annotations = Some([owner].into());
        let conditions = observed.plan().status.conditions;
        conditions.into_iter().find(|condition| condition.r#type == "APIEndpointReady").unwrap().status
    };
    assert_eq!((said(false), said(true)), ("False".to_owned(), "True".to_owned()));
}

#[test]
fn with_an_endpoint_that_cannot_be_made_the_cloud_is_not_asked() {
    let spec = format!("{MANAGED}\napiServerLoadBalancer: {{enabled: true}}\n");
    let mut cloud = Cloud::new(&spec);
    assert_eq!(cloud.settle_all(), ["claim object self: done"]);
    assert_eq!(cloud.condition("APIEndpointReady").0, "Unsupported");
    assert_eq!(cloud.condition("Ready").0, "Unsupported");
    let observed = Observed { cloud: Access::NotAsked, ..cloud.observe() };
    assert_eq!((observed.stage(), observed.wanted()), (Stage::Unsupported, None));
    cloud.object.as_mut().unwrap().spec.api_server_load_balancer = None;
    cloud.settle_all();
    assert!(cloud.status().ready);
}

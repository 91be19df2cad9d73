//! Whose a server is: credentials of another project, objects of another provider, and servers that will not go.

use jiff::SignedDuration;

use super::super::*;
use super::cloud::*;
use crate::flow::crash::World as _;
use crate::flow::{Identified as _, Read};
use crate::openstack::{OWNER_ID_ANNOTATION, PROJECT_ANNOTATION};

fn steps(observed: &Observed) -> Vec<String> {
    checked(observed).steps.iter().map(|step| step.id().to_string()).collect()
}

/// The reason and the message of `Ready`.
fn told(observed: &Observed) -> (String, String) {
    let conditions = checked(observed).status.conditions;
    let ready = conditions.into_iter().find(|condition| condition.r#type == "Ready").unwrap();
    (ready.reason.unwrap_or_default(), ready.message.unwrap_or_default())
}

#[test]
fn the_project_is_recorded_before_anything_is_made() {
    let mut cloud = Cloud { project: Some("one/project-1".to_owned()), ..Cloud::new(WORKER) };
    let done = cloud.settle_all();
    assert_eq!(
        done[..3],
        ["claim object self: done", "record project self: done", "create port worker-a-0: done"]
    );
    assert_eq!(cloud.object.metadata.annotations.as_ref().unwrap()[PROJECT_ANNOTATION], "one/project-1");
    assert!(cloud.is_ready_with_its_ports());
}

#[test]
fn with_credentials_of_another_project_nothing_is_made_deleted_or_released() {
    for place in ["one/project-2", "two/project-1"] {
        let mut cloud = Cloud { project: Some("one/project-1".to_owned()), ..Cloud::new(WORKER) };
        cloud.settle_all();
        cloud.project = Some(place.to_owned());
        // They see nothing of it.
        let (servers, ports) = (std::mem::take(&mut cloud.servers), std::mem::take(&mut cloud.ports));
        for mut elsewhere in [cloud.clone(), cloud.clone().deleted()] {
            assert_eq!(steps(&elsewhere.observe()), Vec::<String>::new());
            let (reason, message) = told(&elsewhere.observe());
            assert_eq!(reason, "OtherProject");
            assert!(message.contains("one/project-1") && message.contains(place), "{message}");
            (elsewhere.servers, elsewhere.ports) = (servers.clone(), ports.clone());
            elsewhere.project = Some("one/project-1".to_owned());
            let is_deleted = elsewhere.object.metadata.deletion_timestamp.is_some();
            elsewhere.settle_all();
            assert_eq!(elsewhere.is_released, is_deleted, "it goes on with the right ones");
            assert_eq!(elsewhere.servers.is_empty(), is_deleted);
        }
    }
}

/// The finalizer is the same, so that such an object would be ours by all that is on it.
#[test]
fn what_another_provider_made_is_held() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    cloud.object.metadata.annotations.as_mut().unwrap().remove(OWNER_ID_ANNOTATION);
    cloud.servers.clear();
    cloud.ports.clear();
    let without_status = |mut cloud: Cloud| {
        cloud.object.status = None;
        cloud
    };
    let without_provider_id = |mut cloud: Cloud| {
        cloud.object.spec.provider_id = None;
        if let Some(status) = &mut cloud.object.status {
            status.ready = None;
        }
        cloud
    };
    for cloud in [without_status(cloud.clone()), without_provider_id(cloud.clone()), cloud.clone()] {
        for cloud in [cloud.clone(), cloud.deleted()] {
            let observed = Observed { cloud: Access::NotAsked, ..cloud.observe() };
            assert_eq!((observed.stage(), observed.wanted()), (Stage::MadeByAnother, None));
            assert_eq!(steps(&observed), Vec::<String>::new());
            let (reason, message) = told(&observed);
            assert_eq!(reason, "MadeByAnotherProvider");
            assert!(message.contains(OPENSTACK_MACHINE_FINALIZER), "{message}");
        }
    }
    let nothing = without_provider_id(without_status(cloud)).deleted();
    assert_eq!(nothing.observe().stage(), Stage::Release, "nothing was ever made");
}

/// A move keeps the provider id and not the status.
#[test]
fn a_server_is_known_by_its_provider_id() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let id = cloud.observe().recorded_id();
    assert!(id.is_some());
    cloud.object.status = None;
    assert_eq!(cloud.observe().recorded_id(), id);
    cloud.object.spec.provider_id = Some("openstack:///".to_owned());
    assert_eq!(cloud.observe().recorded_id(), None);
}

#[test]
fn a_server_that_will_not_go_is_asked_again_after_minutes_and_rarely() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let mut cloud = cloud.deleted();
    cloud.servers[0].is_going = true;
    cloud.servers[0].updated = Some(cloud.now);
    for (minutes, expected) in
        [(0, vec![]), (4, vec![]), (5, vec!["delete server worker-a"]), (600, vec!["delete server worker-a"])]
    {
        let mut observed = cloud.observe();
        observed.now = cloud.now + SignedDuration::from_mins(minutes);
        assert_eq!(steps(&observed), expected, "{minutes}");
        let plan = checked(&observed);
        let Some(step) = plan.steps.iter().next() else { continue };
        observed.fold(step, &Outcome::Done);
        assert!(checked(&observed).steps.is_empty(), "once in a pass");
    }
}

#[test]
fn a_port_that_got_no_address_is_replaced_once_the_network_has_a_subnet() {
    let mut cloud = Cloud::new(WORKER);
    cloud.missing.insert("subnet of the network");
    assert_eq!(cloud.settle_all(), ["claim object self: done"]);
    let (reason, message) = told(&cloud.observe());
    assert_eq!(reason, "InvalidMachineSpec");
    assert!(message.contains("spec.ports[0].network: the network has no subnet"), "{message}");

    cloud.missing.clear();
    cloud.refuses = Some("Port requires a FixedIP in order to be used.");
    let mut observed = cloud.observe();
    cloud.pass(&mut observed, |_, _| {});
    cloud.ports[0].has_no_address = true;
    let old = cloud.ports[0].id.clone();
    cloud.settle_all();
    assert!(cloud.is_ready_with_its_ports());
    assert_ne!(cloud.ports[0].id, old);
    assert_eq!(cloud.ports.len(), 1);
}

#[test]
fn an_image_that_is_missing_is_told_with_what_it_was_looked_for_by() {
    let mut cloud = Cloud::new(WORKER);
    cloud.missing.insert("image");
    cloud.settle_all();
    let (_, message) = told(&cloud.observe());
    assert!(message.contains("spec.image: no image with name \""), "{message}");
    assert!(
        matches!(cloud.observe().cloud, Access::Facts(ref facts) if !matches!(facts.servers, Read::Unknown(_)))
    );
}

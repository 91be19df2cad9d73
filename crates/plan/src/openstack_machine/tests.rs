//! Scenarios over a small cloud in memory: goldens of steps and conditions, and the crash sweep over creation and
//! deletion.

mod cloud;
mod late;
mod ownership;

use super::*;
use crate::flow::crash::{World, sweep};
use crate::flow::{Identified as _, Read};
use crate::openstack::{CloudTrouble, Port, Server};
use cloud::*;

#[test]
fn a_worker() {
    insta::assert_snapshot!(Cloud::new(WORKER).golden());
}

#[test]
fn a_machine_with_two_ports() {
    insta::assert_snapshot!(Cloud::new(TWO_PORTS).golden());
}

#[test]
fn the_server_that_is_asked_for() {
    let mut cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    let mut asked = Vec::new();
    cloud.pass(&mut observed, |step, _| asked.push(format!("{step:#?}")));
    insta::assert_snapshot!(asked.join("\n"));
}

#[test]
fn deletion_takes_the_server_then_the_ports() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    let mut cloud = cloud.deleted();
    assert_eq!(
        cloud.settle_all(),
        [
            "delete server worker-a: done",
            "delete port worker-a-1: done",
            "delete port worker-a-main: done",
            "release object self: done"
        ]
    );
    assert!(cloud.ports.is_empty() && cloud.servers.is_empty());
}

#[test]
fn making_survives_a_crash_anywhere() {
    for spec in [WORKER, TWO_PORTS] {
        let swept = sweep(&Cloud::new(spec), 100).unwrap();
        assert!(swept.points >= 20, "{swept:?}");
    }
}

#[test]
fn deleting_survives_a_crash_anywhere() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    assert_eq!(sweep(&cloud.deleted(), 100).unwrap().points, 16);
}

#[test]
fn deleting_before_anything_was_made_only_lets_go() {
    let mut cloud = Cloud::new(WORKER);
    cloud.object.metadata.finalizers = Some(vec![OPENSTACK_MACHINE_FINALIZER.to_owned()]);
    let mut cloud = cloud.deleted();
    assert_eq!(cloud.settle_all(), ["release object self: done"]);
}

#[test]
fn everything_that_is_missing_is_told_together_and_nothing_is_made() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.missing = ["image", "network", "group"].into();
    cloud.ambiguous = ["flavor", "subnet"].into();
    cloud.data_length = 49_153;
    assert_eq!(cloud.settle_all(), ["claim object self: done"]);
    insta::assert_snapshot!(cloud.condition().2);
    cloud.missing.clear();
    cloud.ambiguous.clear();
    cloud.data_length = 100;
    cloud.settle_all();
    assert_eq!(cloud.condition().0, "True", "cleared when fixed");
}

#[test]
fn a_read_that_failed_is_not_a_missing_image() {
    let cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    claim(&mut observed);
    observed.cloud.facts_mut().unwrap().preflight.as_mut().unwrap().image = Read::unknown("503 from glance");
    let plan = checked(&observed);
    assert!(plan.steps.is_empty());
    let ready = plan.status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!(ready.status, "Unknown");
    observed.cloud.facts_mut().unwrap().servers = Read::unknown("503 from nova");
    assert!(checked(&observed).steps.is_empty());
}

#[test]
fn a_failed_server_says_why_and_is_left_to_others() {
    let mut cloud = Cloud { becomes: "ERROR", ..Cloud::new(WORKER) };
    cloud.settle_all();
    let (status, reason, message) = cloud.condition();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "InstanceStateError"));
    assert!(message.contains("No valid host was found"), "{message}");
    assert_eq!((cloud.servers.len(), &cloud.object.spec.provider_id), (1, &None));
    assert_eq!(cloud.status().failure_reason, None, "nothing is terminal");
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert!(cloud.is_released && cloud.ports.is_empty(), "it can still be deleted");
}

#[test]
fn a_server_that_was_deleted_is_not_made_again() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    cloud.servers.clear();
    cloud.ports[0].device_id.clear();
    assert!(cloud.settle_all().is_empty());
    assert_eq!(cloud.condition().1, "InstanceDeleted");
    cloud.object.status = None;
    assert!(cloud.settle_all().is_empty(), "the provider id remembers it after a move");
}

#[test]
fn other_states_are_no_failure() {
    for state in ["SHUTOFF", "MIGRATING", "VERIFY_RESIZE"] {
        let mut cloud = Cloud { becomes: state, ..Cloud::new(WORKER) };
        cloud.settle_all();
        let (status, _, message) = cloud.condition();
        assert!(status == "Unknown" && message.contains(state), "{status} {message}");
    }
    let mut cloud = Cloud { becomes: "SOFT_DELETED", ..Cloud::new(WORKER) };
    cloud.settle_all();
    assert_eq!(cloud.condition().1, "InstanceDeleted");
    cloud.ports[0].device_id.clear();
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert!(cloud.is_released, "a cloud that keeps deleted servers for a while does not stop us");
}

#[test]
fn a_port_whose_server_is_not_listed_yet_stops_a_second_server() {
    let mut cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    cloud.pass(&mut observed, |_, _| {});
    let hidden = std::mem::take(&mut cloud.servers);
    let observed = cloud.observe();
    assert!(checked(&observed).steps.is_empty(), "the list lags behind");
    cloud.servers = hidden;
    cloud.settle_all();
    assert_eq!((cloud.servers.len(), cloud.ports.len()), (1, 1));
}

#[test]
fn only_what_is_made_or_deleted_is_looked_for_anew() {
    let wanted = |cloud: &Cloud| Observed { cloud: Access::NotAsked, ..cloud.observe() }.wanted();
    let asked = |is_deleting, is_live| Some(Wanted::Servers { is_deleting, is_live });
    for becomes in ["ACTIVE", "ERROR", "SOFT_DELETED"] {
        let mut cloud = Cloud { becomes, ..Cloud::new(WORKER) };
        let mut observed = cloud.observe();
        cloud.pass(&mut observed, |_, _| {});
        cloud.object.status = Some(checked(&observed).status);
        assert_eq!(wanted(&cloud), asked(false, true), "it is being built");
        cloud.settle_all();
        assert_eq!(wanted(&cloud), asked(false, false), "{becomes}");
        assert_eq!(wanted(&cloud.deleted()), asked(true, true));
    }
}

#[test]
fn a_server_is_not_ready_without_one_of_its_ports() {
    let mut cloud = Cloud::new(TWO_PORTS);
    let mut observed = cloud.observe();
    cloud.pass(&mut observed, |_, _| {});
    let device = std::mem::take(&mut cloud.ports[1].device_id);
    cloud.settle_all();
    let (status, _, message) = cloud.condition();
    assert!(status == "False" && message.contains(&cloud.ports[1].name), "{status} {message}");
    assert_eq!((cloud.status().ready, &cloud.object.spec.provider_id), (None, &None));
    cloud.ports[1].device_id = device;
    cloud.settle_all();
    assert_eq!(cloud.status().ready, Some(true));
}

#[test]
fn a_port_that_comes_late_is_taken_away_while_the_server_runs() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let late = Port { id: "late".into(), device_id: String::new(), ..cloud.ports[0].clone() };
    cloud.ports.push(late);
    assert_eq!(cloud.settle_all(), ["delete port worker-a-0 (extra 1): done"]);
    assert_eq!((cloud.ports.len(), cloud.status().ready), (1, Some(true)));
}

#[test]
fn duplicates_are_swept_and_the_bound_ones_kept() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let bound = cloud.servers[0].id.clone();
    cloud.servers.insert(
        0,
        Server {
            id: "id-0".into(),
            name: "worker-a".to_owned(),
            status: "ACTIVE".to_owned(),
            ..Server::default()
        },
    );
    cloud.settle_all();
    assert_eq!(cloud.servers.iter().map(|server| server.id.clone()).collect::<Vec<_>>(), [bound]);

    let mut cloud = Cloud::new(WORKER);
    for id in ["id-91", "id-90"] {
        cloud.ports.push(Port { id: id.into(), name: "worker-a-0".to_owned(), ..Port::default() });
    }
    cloud.settle_all();
    assert_eq!((cloud.ports.len(), cloud.servers.len()), (1, 1));
}

#[test]
fn refusals_are_said_in_the_words_of_the_cloud() {
    let cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    claim(&mut observed);
    let step = checked(&observed).steps.iter().next().unwrap().clone();
    observed.fold(&step, &Outcome::refused("Quota exceeded for resources: ['port']."));
    let status = checked(&observed).status;
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!(ready.reason.as_deref(), Some("PortCreateFailed"));
    assert!(ready.message.as_deref().unwrap().contains("Quota exceeded for resources: ['port']"));
}

#[test]
fn it_waits_for_the_cluster_and_the_bootstrap_data() {
    let mut cloud = Cloud { is_provisioned: false, ..Cloud::new(WORKER) };
    assert!(cloud.settle_all().is_empty());
    assert_eq!(cloud.condition().1, "WaitingForClusterInfrastructure");
    let mut cloud = Cloud { has_data: false, ..Cloud::new(WORKER) };
    assert!(cloud.settle_all().is_empty());
    assert_eq!(cloud.condition().1, "WaitingForBootstrapData");
}

#[test]
fn what_is_not_supported_is_named_before_anything_is_made() {
    let spec = format!("{WORKER}\nrootVolume: {{sizeGiB: 10}}\nports: [{{trunk: true, hostID: x}}]");
    let mut cloud = Cloud::new(&spec);
    assert!(cloud.settle_all().is_empty());
    let (_, reason, message) = cloud.condition();
    assert_eq!(reason, "InvalidMachineSpec");
    for field in ["spec.rootVolume", "spec.ports[0].trunk", "spec.ports[0].hostID"] {
        assert!(message.contains(field), "{message}");
    }
}

/// Those that exist have the old names: looked for by new ones they would be left behind.
#[test]
fn ports_cannot_be_changed_under_a_machine() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    let given = cloud.object.spec.ports.clone();
    for edited in [Vec::new(), given[..1].to_vec(), [&given[..], &given[1..]].concat()] {
        cloud.object.spec.ports = edited;
        for mut cloud in [cloud.clone(), cloud.clone().deleted()] {
            assert_eq!(cloud.settle_all(), [""; 0], "nothing is made and nothing is deleted");
            let (_, reason, message) = cloud.condition();
            assert_eq!(reason, "PortsChanged");
            assert!(message.contains("worker-a-1, worker-a-main"), "{message}");
        }
    }
    let mut fewer_words = given.clone();
    fewer_words[1].description = None;
    cloud.object.spec.ports = fewer_words;
    let mut cloud = cloud.deleted();
    assert_eq!(cloud.settle_all().last().unwrap(), "release object self: done");
    assert!(cloud.ports.is_empty() && cloud.servers.is_empty());
}

#[test]
fn two_ports_of_one_name_are_refused() {
    let spec = format!("{WORKER}\nports: [{{nameSuffix: '1'}}, {{}}, {{nameSuffix: x}}]");
    let mut cloud = Cloud::new(&spec);
    assert!(cloud.settle_all().is_empty());
    let (_, reason, message) = cloud.condition();
    assert_eq!(reason, "InvalidMachineSpec");
    assert!(message.contains("spec.ports[1].nameSuffix: another port is called \"1\" already"), "{message}");
}

/// A server that the cloud keeps for a while is no server, but it was listed.
#[test]
fn a_soft_deleted_server_does_not_keep_another_from_being_made() {
    let mut cloud = Cloud::new(WORKER);
    let gone = Server { id: "old".into(), status: "SOFT_DELETED".to_owned(), ..Server::default() };
    let trace = cloud.settle_all();
    assert!(!trace.is_empty());
    cloud.object.status = None;
    cloud.object.spec.provider_id = None;
    let wanted = |server: Server| {
        let mut observed = cloud.observe();
        let facts = observed.cloud.facts_mut().unwrap();
        (facts.servers, facts.preflight) = (Read::One(server), None);
        observed.wanted()
    };
    assert_eq!(wanted(gone.clone()), Some(Wanted::Preflight));
    let lives = Server { status: "ACTIVE".to_owned(), ..gone };
    assert_eq!(wanted(lives), None);
}

#[test]
fn bad_credentials_keep_even_a_deletion_waiting() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let mut observed = cloud.deleted().observe();
    observed.cloud = Access::Trouble(CloudTrouble {
        reason: crate::openstack::conditions::cloud::CREDENTIALS_NOT_FOUND,
        message: "there is no Secret cloud".to_owned(),
        actor: hangar_api::conditions::Actor::ClusterOwner,
    });
    let plan = checked(&observed);
    assert!(plan.steps.is_empty());
    assert!(
        plan.status
            .conditions
            .iter()
            .any(|condition| condition.reason.as_deref() == Some("CredentialsNotFound"))
    );
}

#[test]
fn a_copied_owner_id_gives_no_right_to_what_carries_it() {
    let mut cloud = Cloud::new(WORKER);
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
fn provider_ids_have_the_region_of_the_machine_alone() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    assert_eq!(cloud.object.spec.provider_id.as_deref(), Some("openstack:///id-4"));
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    assert!(cloud.object.spec.provider_id.as_deref().unwrap().starts_with("openstack://RegionOne/id-"));
}

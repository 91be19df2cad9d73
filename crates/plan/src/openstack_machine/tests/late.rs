//! Requests for a server whose answers are lost, and which the cloud accepts late or never.

use crate::flow::Wake;
use hangar_api::infrastructure::v1beta1::OpenStackMachine;
use jiff::{SignedDuration, Timestamp};

use super::super::*;
use super::cloud::*;
use crate::flow::crash::{World, sweep};
use crate::flow::{Frontier, Identified as _};
use crate::openstack::{REQUESTED_ANNOTATION, SERVER_REQUESTED_ANNOTATION, server_requested_at};

/// Later than any run.
const NEVER: usize = 1000;

fn requested_at(object: &OpenStackMachine) -> Option<Timestamp> {
    server_requested_at(object.metadata.annotations.as_ref())
}

/// A worker after the pass that lost the answer.
fn lost(lateness: usize) -> Cloud {
    let mut cloud = Cloud { lateness: Some(lateness), ..Cloud::new(WORKER) };
    let mut observed = cloud.observe();
    cloud.pass(&mut observed, |_, _| {});
    assert!(cloud.servers.is_empty() && requested_at(&cloud.object).is_some());
    cloud
}

#[test]
fn a_lost_request_settles_before_its_ports_are_replaced_and_another_is_sent() {
    let mut cloud = lost(NEVER);
    let old = cloud.ports[0].id.clone();
    for seconds in [0, 89, -89] {
        let mut observed = cloud.observe();
        observed.now += SignedDuration::from_secs(seconds);
        let plan = checked(&observed);
        assert!(plan.steps.is_empty(), "{seconds}: {:?}", plan.steps);
        let ready = plan.status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
        assert!(ready.message.as_deref().unwrap().contains("to be certain not to come"), "{ready:?}");
        assert!(plan.wake.sooner(Wake::after(observed.now, POLL)) == plan.wake, "it is looked for meanwhile");
    }
    cloud.now += SignedDuration::from_secs(90);
    assert_eq!(
        cloud.settle_all(),
        [
            "delete port worker-a-0: done",
            "settle request self: done",
            "create port worker-a-0: done",
            "tag port worker-a-0: done",
            "create server worker-a: done",
            "settle request self: done",
            "record object self: done",
        ]
    );
    assert_ne!(cloud.ports[0].id, old);
    assert_eq!((cloud.servers.len(), requested_at(&cloud.object)), (1, None));
}

/// The end is either the one of every day, or a server that lost its port to us and is told as such.
#[derive(Clone)]
struct Late(Cloud);

impl World for Late {
    type Observation = Observed;
    type Step = Step;
    type EndState = (bool, bool);

    fn observe(&self) -> Observed {
        self.0.observe()
    }

    fn plan(&self, observed: &Observed) -> Frontier<Step> {
        self.0.plan(observed)
    }

    fn run(&mut self, step: &Step) -> Outcome {
        self.0.run(step)
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        observed.fold(step, outcome);
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn end_state(&self) -> (bool, bool) {
        let is_settled = self.0.is_released || requested_at(&self.0.object).is_none();
        let count = usize::from(!self.0.is_released);
        assert!(is_settled && self.0.servers.len() == count, "{:?}", self.0.servers);
        (self.0.is_ready_with_its_ports(), self.0.is_released)
    }
}

#[test]
fn a_request_that_comes_late_leaves_one_server_whatever_crashes() {
    for spec in [WORKER, TWO_PORTS] {
        for lateness in (0..20).chain([NEVER]) {
            let cloud = Cloud { lateness: Some(lateness), ..Cloud::new(spec) };
            let swept = sweep(&Late(cloud), 100).unwrap();
            assert!(swept.points >= 20, "{swept:?}");
        }
    }
}

#[test]
fn a_deletion_outlives_a_request_that_comes_late() {
    for lateness in (0..10).chain([NEVER]) {
        let cloud = lost(lateness).deleted();
        sweep(&Late(cloud.clone()), 100).unwrap();
        let mut cloud = cloud;
        let mut observed = cloud.observe();
        cloud.pass(&mut observed, |_, _| {});
        assert!(!cloud.is_released, "one may still come");
        cloud.settle_all();
        assert!(cloud.is_released && cloud.servers.is_empty() && cloud.ports.is_empty());
    }
}

#[test]
fn a_refusal_neither_waits_nor_replaces_ports() {
    let mut cloud = Cloud { refuses: Some("Quota exceeded for cores"), ..Cloud::new(WORKER) };
    let mut observed = cloud.observe();
    cloud.pass(&mut observed, |_, _| {});
    assert_eq!((cloud.servers.len(), requested_at(&cloud.object)), (0, None));
    let port = cloud.ports[0].id.clone();
    assert_eq!(cloud.settle_all()[0], "create server worker-a: done");
    assert_eq!((cloud.ports[0].id.clone(), cloud.servers.len()), (port, 1));
}

#[test]
fn the_note_is_pinned() {
    assert_eq!(SERVER_REQUESTED_ANNOTATION, "hangar.cluster.x-k8s.io/server-requested-at");
    let cloud = lost(NEVER);
    assert_eq!(
        cloud.object.metadata.annotations.unwrap()[SERVER_REQUESTED_ANNOTATION],
        "2026-03-01T12:00:00Z"
    );
    let mut unreadable = lost(NEVER);
    let annotations = unreadable.object.metadata.annotations.as_mut().unwrap();
    annotations.insert(SERVER_REQUESTED_ANNOTATION.to_owned(), "yesterday".to_owned());
    let steps: Vec<String> =
        checked(&unreadable.observe()).steps.iter().map(|step| step.id().to_string()).collect();
    assert_eq!(steps, ["delete port worker-a-0"], "long ago");
}

/// A port that still came after its object was let go would be nobody's.
#[test]
fn a_deletion_waits_for_a_port_that_may_come_late() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let annotations = cloud.object.metadata.annotations.as_mut().unwrap();
    annotations.insert(REQUESTED_ANNOTATION.to_owned(), format!("{} port", cloud.now));
    let mut kept = cloud.clone();
    assert_eq!(kept.settle_all(), [""; 0], "nothing waits for it while the machine is kept");
    kept.now += SignedDuration::from_secs(90);
    assert_eq!(kept.settle_all(), ["settle creation self: done"]);
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert!(!cloud.is_released && cloud.ports.is_empty() && cloud.servers.is_empty());
    let plan = checked(&cloud.observe());
    let ready = plan.status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!(
        ready.message.as_deref().unwrap(),
        "waiting for the port that was asked for to be listed, or to be certain not to come: the answer was lost (the cloud must act)"
    );
    assert!(plan.wake.sooner(Wake::after(cloud.now, POLL)) == plan.wake, "it is looked for meanwhile");
    cloud.now += SignedDuration::from_secs(90);
    cloud.settle_all();
    assert!(cloud.is_released);
}

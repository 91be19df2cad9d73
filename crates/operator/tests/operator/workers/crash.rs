//! The crash sweep over writes to the cloud: the whole manager is dropped right after a call to the cloud was done,
//! with and without its answer, and a new manager must reach the same end.
//!
//! A run without faults records every write by name; then a manager is killed at each of them, in a world of its own. A
//! point that is never reached fails the test. All points take minutes, so a sample is tried, the same in every run;
//! `HANGAR_SWEEP=all` tries all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_openstack::{Answer, Call, CallGate, Delivery};
use kube::api::DeleteParams;
use tokio_util::sync::CancellationToken;

use super::cloud::{inventory, start};
use super::servers::{BOTH, machine_status, ready_cluster, server, worker};
use super::world::{Running, Seen, World, eventually};

mod unkind;

const MACHINES: [&str; 3] = ["worker-a", "worker-b", "worker-c"];

/// What is struck was carried out before: nothing comes late here, and nobody waits for it long.
const SETTLED: Duration = Duration::from_secs(3);

/// A write, and its number among those of its name.
type Point = (String, usize);

/// Records writes; strikes once.
#[derive(Clone, Default)]
struct Strikes {
    seen: Arc<Mutex<Vec<Point>>>,
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    armed: Option<(Point, bool)>,
    /// What differs from run to run in a name.
    namespace: String,
    dead: CancellationToken,
}

impl CallGate for Strikes {
    fn before(&self, _call: &Call, _limit: Duration) -> Result<(), &'static str> {
        if self.dead.is_cancelled() { Err("this manager is dead") } else { Ok(()) }
    }

    fn after(&self, call: &Call, answer: Answer, _took: Duration) -> Delivery {
        if self.dead.is_cancelled() {
            return Delivery::Withhold("this manager is dead");
        }
        if !call.verb.is_write() || !answer.is_success() {
            return Delivery::Deliver;
        }
        let name = call.without_id().to_string().replace(&self.namespace, "ns");
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        let point = (name, *count);
        self.seen.lock().unwrap().push(point.clone());
        match &self.armed {
            Some((armed, is_answered)) if *armed == point => {
                self.dead.cancel();
                if *is_answered { Delivery::Deliver } else { Delivery::Withhold("the answer was lost") }
            }
            _ => Delivery::Deliver,
        }
    }
}

/// Makes a cluster with three machines, takes all away again, and says what was held in between.
async fn story(
    world: &World,
    cloud: &hangar_cloud::Handle,
    strikes: &Strikes,
) -> BTreeMap<String, Vec<String>> {
    let start = |gates| Running::settling(BOTH, gates, &Seen::new(), SETTLED);
    let mut manager = Some(start(vec![Arc::new(strikes.clone())]));
    let mut replaced = None;
    let made = async {
        ready_cluster(world, cloud).await;
        for name in MACHINES {
            server(world, name, worker()).await;
        }
        for name in MACHINES {
            eventually("the server runs", async || machine_status(world, name).await.ready == Some(true))
                .await;
        }
        let held = inventory(cloud);
        for_each_deleted(world).await;
        held
    };
    tokio::pin!(made);
    let held = loop {
        tokio::select! {
            held = &mut made => break held,
            () = strikes.dead.cancelled(), if manager.is_some() => {
                // The old one is gone before the new one begins.
                drop(manager.take());
                replaced = Some(start(Vec::new()));
            }
        }
    };
    drop(replaced);
    held.into_iter()
        .map(|(kind, names)| (kind, names.iter().map(|name| name.replace(&world.namespace, "ns")).collect()))
        .collect()
}

async fn for_each_deleted(world: &World) {
    futures::future::join_all(MACHINES.map(|name| world.delete::<OpenStackMachine>(name))).await;
    world.api::<OpenStackCluster>().delete("demo", &DeleteParams::default()).await.unwrap();
    eventually("the cluster is gone", async || {
        world.api::<OpenStackCluster>().get_opt("demo").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_dies_after_any_call_leaves_nothing_twice_and_nothing_behind() {
    let turn = World::new("sweep").await;
    let cloud = start().await;
    let recording = Strikes { namespace: turn.namespace.clone(), ..Strikes::default() };
    let expected = story(&turn, &cloud, &recording).await;
    assert!(inventory(&cloud).is_empty());
    let points = recording.seen.lock().unwrap().clone();
    assert!(points.len() >= 40, "{points:#?}");

    let all = std::env::var("HANGAR_SWEEP").is_ok_and(|value| value == "all");
    let cases: Vec<(Point, bool)> =
        points.iter().flat_map(|point| [(point.clone(), true), (point.clone(), false)]).collect();
    // Rules are many and alike; the rest is struck in turn, once with and once without its answer.
    let chosen = cases.into_iter().enumerate().filter(|(index, ((name, _), _))| {
        all || if name.contains("security-group-rule") { index % 31 == 0 } else { index % 5 == 0 }
    });
    for (_, case) in chosen {
        let world = World::beside("sweep").await;
        let cloud = start().await;
        let strikes =
            Strikes { armed: Some(case.clone()), namespace: world.namespace.clone(), ..Strikes::default() };
        let held = story(&world, &cloud, &strikes).await;
        assert!(strikes.dead.is_cancelled(), "{case:?} was never reached");
        assert_eq!(held, expected, "{case:?}");
        assert!(inventory(&cloud).is_empty(), "{case:?}: {:?}", inventory(&cloud));
    }
    drop(turn);
}

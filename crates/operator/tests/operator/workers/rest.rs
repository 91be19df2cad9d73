//! How many calls a project at rest costs.

use std::time::{Duration, Instant};

use hangar_api::infrastructure::v1beta1::OpenStackMachine;
use hangar_cloud::Handle;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use super::cloud::{managed, start};
use super::servers::{BOTH, ready_cluster_with, server, worker};
use super::world::{Running, Seen, World, eventually};
use crate::load::size;

/// Machines of the smaller project.
const FEW: usize = 2;

async fn grow(world: &World, cloud: &Handle, count: usize) {
    let mut spec = managed();
    spec["managedSubnets"][0]["cidr"] = json!("10.6.0.0/16");
    ready_cluster_with(world, cloud, spec).await;
    for number in 0..count {
        server(world, &format!("worker-{number}"), worker()).await;
    }
    eventually("all servers run", async || {
        // Asking costs the API server more than answering the controllers, where there are many.
        tokio::time::sleep(Duration::from_millis(u64::try_from(5 * count).unwrap())).await;
        let all = world.api::<OpenStackMachine>().list(&ListParams::default()).await.unwrap();
        let is_ready =
            |one: &&OpenStackMachine| one.status.as_ref().is_some_and(|status| status.ready == Some(true));
        all.iter().filter(is_ready).count() == count
    })
    .await;
}

/// Every Machine is woken, and looked at.
async fn look_at_all(worlds: &[&World], seen: &Seen, turn: usize) {
    let (before, mut woken) = (seen.passes("openstack-machine"), 0);
    for world in worlds {
        for one in world.api::<OpenStackMachine>().list(&ListParams::default()).await.unwrap() {
            let note = json!({"metadata": {"annotations": {"example.com/wake": turn.to_string()}}});
            world.merge::<OpenStackMachine>(&one.name_any(), note).await;
            woken += 1;
        }
    }
    eventually("all were looked at", async || seen.passes("openstack-machine") >= before + woken).await;
}

/// Further pages of a list are not counted: they are what a large answer costs.
fn calls(cloud: &Handle) -> usize {
    cloud.calls().iter().filter(|call| !call.path.contains("marker=")).count()
}

/// The lists that all machines of a project share.
fn lists(cloud: &Handle) -> usize {
    let is_shared = |path: &str| {
        path.contains("/servers/detail") || (path.contains("/ports?") && path.contains("project_id="))
    };
    cloud.calls().iter().filter(|call| is_shared(&call.path) && !call.path.contains("marker=")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_at_rest_is_read_by_lists() {
    let turn = World::new("rest").await;
    let (few, many) = (World::beside("few").await, World::beside("many").await);
    let (small, large, seen) = (start().await, start().await, Seen::new());
    let _running = Running::seen(BOTH, Vec::new(), &seen);
    let count = size(20, 1000);
    futures::join!(grow(&few, &small, FEW), grow(&many, &large, count));
    let grown = (calls(&small), calls(&large));
    // What was written last is looked at until it counts.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let (before, begun) = ((calls(&small), calls(&large)), Instant::now());
    let listed = (lists(&small), lists(&large));
    for turn in 0..3 {
        look_at_all(&[&few, &many], &seen, turn).await;
        tokio::time::sleep(Duration::from_secs(12)).await;
    }
    let after = (calls(&small) - before.0, calls(&large) - before.1);
    println!("until all run: {FEW} machines {} calls, {count} machines {} calls", grown.0, grown.1);
    println!("three looks at each: {FEW} machines {} calls, {count} machines {} calls", after.0, after.1);
    // Two lists at the beginning and each half minute, however many are looked at meanwhile.
    let most = 2 * (2 + usize::try_from(begun.elapsed().as_secs()).unwrap() / 30);
    let listed = (lists(&small) - listed.0, lists(&large) - listed.1);
    assert!((1..=most).contains(&listed.0) && (1..=most).contains(&listed.1), "{listed:?} lists of {most}");
    drop(turn);
}

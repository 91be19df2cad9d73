//! Clouds that refuse calls or are slow: how often they are called, and what is left in them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_cloud::Handle;
use hangar_cloud::fault::{Armed, Effect, FaultRule};
use kube::api::DeleteParams;
use serde_json::json;

use super::cloud::{inventory, managed, start};
use super::servers::{BOTH, machine_status, new_cluster, ready_cluster, server, worker};
use super::world::{Running, Seen, World, eventually};

fn posts(path: &str, times: Option<u32>, effect: Effect) -> FaultRule {
    let (name, method) = (path.to_owned(), Some("POST".to_owned()));
    FaultRule { name, method, path: Some(format!("*/{path}")), body: None, skip: 0, times, effect }
}

/// Tries of a step that fit into a time: 1, 2, 4 ... 60 s apart, each wait a fifth shorter at most.
fn tries_within(length: Duration) -> usize {
    let (mut next, mut wait, mut tries) = (0.0, 1.0, 0);
    while next <= length.as_secs_f64() {
        tries += 1;
        next += wait * 0.8;
        wait = f64::min(wait * 2.0, 60.0);
    }
    tries
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_tried_rarely_and_leave_nothing() {
    let (world, cloud, seen) = (World::new("refusals").await, start().await, Seen::new());
    let _running = Running::seen(BOTH, Vec::new(), &seen);
    ready_cluster(&world, &cloud).await;
    let mut expected = inventory(&cloud);
    let began = Instant::now();
    cloud.arm(posts("servers", None, Effect::OverQuota));
    server(&world, "worker-a", worker()).await;
    eventually("it is refused", async || cloud.faults()[0].fired > 0).await;
    let before = seen.passes("openstack-machine");
    // In five bursts: runs without progress come at distances too, whatever wakes the object.
    for burst in 0..5 {
        let passes = seen.passes("openstack-machine");
        for wake in 0..10 {
            let note = json!({"metadata": {"annotations": {"example.com/wake": format!("{burst}-{wake}")}}});
            world.merge::<OpenStackMachine>("worker-a", note).await;
        }
        eventually("it is looked at", async || seen.passes("openstack-machine") > passes).await;
    }
    let fired = cloud.faults()[0].fired as usize;
    let most = tries_within(began.elapsed());
    let passes = seen.passes("openstack-machine") - before;
    println!("50 wakes, {passes} passes: {fired} refused POSTs of at most {most}");
    assert!(fired <= most, "{fired} tries, at most {most} by the table");
    assert!(passes >= 5, "{passes}");

    cloud.clear_faults();
    eventually("the server runs", async || machine_status(&world, "worker-a").await.ready == Some(true))
        .await;
    expected.insert("server".to_owned(), vec!["worker-a".to_owned()]);
    expected.entry("port".to_owned()).or_default().push("worker-a-0 compute:nova".to_owned());
    for names in expected.values_mut() {
        names.sort();
    }
    assert_eq!(inventory(&cloud), expected);
}

/// What a cloud holds, by names that do not depend on the namespace.
fn held(world: &World, cloud: &Handle) -> BTreeMap<String, Vec<String>> {
    let plain = |names: Vec<String>| names.iter().map(|name| name.replace(&world.namespace, "ns")).collect();
    inventory(cloud).into_iter().map(|(kind, names)| (kind, plain(names))).collect()
}

/// What a way to be slow is called, which calls it is about, how often, and what it does.
type Slowness = (&'static str, &'static [&'static str], Option<u32>, Option<Effect>);

/// A network has 15 s and the others have 30 s: after 20 s some callers have given up, after 35 s all have, and what they
/// asked for is there or comes nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_cloud_leaves_no_duplicates() {
    let all = &["networks", "routers", "servers"];
    leaves_what_a_quick_one_does(&[
        ("before", all, None, Some(Effect::Delay { milliseconds: 20_000 })),
        (
            "after",
            &["networks", "routers", "ports", "servers"],
            None,
            Some(Effect::DelayAfter { milliseconds: 20_000 }),
        ),
        ("late", &["networks", "servers"], Some(1), Some(Effect::Delay { milliseconds: 35_000 })),
        ("unheard", all, Some(1), Some(Effect::DelayAfter { milliseconds: 35_000 })),
    ])
    .await;
}

/// A port that comes after another was made in its place and has a server: nobody needs it, and it costs an address.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_comes_late_is_taken_away_while_the_server_runs() {
    let late = Effect::Delay { milliseconds: 35_000 };
    leaves_what_a_quick_one_does(&[("port", &["ports"], Some(1), Some(late))]).await;
}

/// The same machine in clouds that are slow in these ways, and in one that is not.
async fn leaves_what_a_quick_one_does(ways: &[Slowness]) {
    let turn = World::new("slow").await;
    let mut sites = Vec::new();
    for (name, paths, times, effect) in [("quick", &[][..], None, None)].iter().chain(ways) {
        let (world, cloud) = (World::beside(&format!("slow-{name}")).await, start().await);
        for path in *paths {
            cloud.arm(posts(path, *times, effect.clone().unwrap()));
        }
        sites.push((*name, world, cloud));
    }
    let _running = Running::start(BOTH, Vec::new());
    let grown = sites.iter().map(async |(_, world, cloud)| {
        ready_cluster(world, cloud).await;
        server(world, "worker-a", worker()).await;
        eventually("the server runs", async || machine_status(world, "worker-a").await.ready == Some(true))
            .await;
    });
    futures::future::join_all(grown).await;
    let expected = held(&sites[0].1, &sites[0].2);
    for (name, world, cloud) in &sites {
        let faults = cloud.faults();
        let count = |armed: &Armed| format!("{} {} of {}", armed.rule.name, armed.fired, armed.met);
        println!("{name}: delayed POSTs {:?}", faults.iter().map(count).collect::<Vec<_>>());
        assert!(faults.iter().all(|armed| armed.fired > 0), "a fault that never came proves nothing: {name}");
        // What came late is found by the next read and deleted: of the network a minute later, of the machine two.
        let note = json!({"metadata": {"annotations": {"example.com/sooner": "true"}}});
        world.merge::<OpenStackMachine>("worker-a", note).await;
        eventually(name, async || held(world, cloud) == expected).await;
    }
    drop(turn);
}

/// A manager ends while a cloud is at work for it, and the object is deleted. What was asked for comes when there is
/// nothing left to delete, and the next manager has waited for it.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_a_deletion_is_taken_away() {
    const LATE: Duration = Duration::from_secs(8);
    let (mut sites, ports) = (Vec::new(), "ports");
    let turn = World::new("late").await;
    for path in [ports, "networks", "subnets", "routers", "security-groups"] {
        sites.push((path, World::beside(&format!("late-{path}")).await, start().await));
    }
    let running = Running::start(BOTH, Vec::new());
    ready_cluster(&sites[0].1, &sites[0].2).await;
    let before: Vec<_> = sites.iter().map(|(_, _, cloud)| inventory(cloud)).collect();
    for (path, world, cloud) in &sites {
        cloud.arm(posts(path, Some(1), Effect::Delay { milliseconds: LATE.as_millis().try_into().unwrap() }));
        if *path == ports {
            server(world, "worker-a", worker()).await;
        } else {
            new_cluster(world, cloud, managed()).await;
        }
    }
    eventually("all are asked for", async || sites.iter().all(|(_, _, cloud)| cloud.faults()[0].fired > 0))
        .await;
    let comes = Instant::now() + LATE;
    drop(running);
    let end = DeleteParams::default();
    for (path, world, _) in &sites {
        if *path == ports {
            world.api::<OpenStackMachine>().delete("worker-a", &end).await.unwrap();
        } else {
            world.api::<OpenStackCluster>().delete("demo", &end).await.unwrap();
        }
    }
    // Longer than a busy host needs to send what was noted.
    let _running = Running::settling(BOTH, Vec::new(), &Seen::new(), LATE * 4);
    for (path, world, _) in &sites {
        eventually(path, async || {
            if *path == ports {
                world.api::<OpenStackMachine>().get_opt("worker-a").await.unwrap().is_none()
            } else {
                world.api::<OpenStackCluster>().get_opt("demo").await.unwrap().is_none()
            }
        })
        .await;
    }
    tokio::time::sleep_until((comes + Duration::from_secs(1)).into()).await;
    for ((path, _, cloud), before) in sites.iter().zip(before) {
        assert_eq!(inventory(cloud), before, "{path}");
    }
    drop(turn);
}

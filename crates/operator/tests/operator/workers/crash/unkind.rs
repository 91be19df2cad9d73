//! The sweep over unkind clouds: a cluster with three machines is made and deleted while calls meet what real clouds do to
//! them. In the end nothing exists twice, nothing is left, and no machine was called ready without its network.
//!
//! CI runs a sample of one cluster for each way to be unkind. `HANGAR_SWEEP=all` strikes every write in turn, in every way;
//! that takes the better part of an hour.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_cloud::Handle;
use hangar_cloud::fault::{Effect, FaultRule};
use serde_json::json;

use super::super::cloud::{inventory, start};
use super::super::servers::{BOTH, machine_status, ready_cluster, server, worker};
use super::super::world::{Running, World, eventually};
use super::MACHINES;

/// Clusters that are looked after at once.
const TOGETHER: usize = 8;

/// Every kind of write, and how often it is made at least.
const WRITES: [(&str, &str, u32); 17] = [
    ("POST", "*/networks", 1),
    ("POST", "*/subnets", 1),
    ("POST", "*/routers", 1),
    ("PUT", "*/add_router_interface", 1),
    ("PUT", "*/tags", 3),
    ("POST", "*/security-groups", 2),
    ("POST", "*/security-group-rules", 3),
    ("POST", "*/ports", 3),
    ("POST", "*/servers", 3),
    ("DELETE", "*/servers/*", 3),
    ("DELETE", "*/ports/*", 3),
    ("PUT", "*/remove_router_interface", 1),
    ("DELETE", "*/routers/*", 1),
    ("DELETE", "*/subnets/*", 1),
    ("DELETE", "*/networks/*", 1),
    ("DELETE", "*/security-groups/*", 2),
    ("GET", "*/servers/detail", 3),
];

/// Kinds of writes that meet the longest faults together.
const LONG: [(&str, &str); 4] =
    [("POST", "*/networks"), ("POST", "*/servers"), ("DELETE", "*/servers/*"), ("DELETE", "*/networks/*")];

fn rule(method: &str, path: &str, skip: u32, times: Option<u32>, effect: Effect) -> FaultRule {
    let name = format!("{method} {path} after {skip}");
    FaultRule {
        name,
        method: Some(method.to_owned()),
        path: Some(path.to_owned()),
        body: None,
        skip,
        times,
        effect,
    }
}

fn broken() -> Effect {
    Effect::Fail { status: 500, message: "The server has either erred".to_owned(), retry_after_seconds: None }
}

/// What a list shows is this old, of every kind.
fn lagging(milliseconds: u64) -> Vec<FaultRule> {
    let lists = ["networks", "subnets", "routers", "ports", "security-groups", "servers/detail"];
    let lag = || Effect::Lag { milliseconds };
    lists.map(|list| rule("GET", &format!("*/{list}"), 0, None, lag())).to_vec()
}

/// What happens to one call, by name.
type Strike = (&'static str, fn() -> Effect);

/// A way to be unkind, by name.
type Way = (String, Vec<FaultRule>);

fn sample() -> Vec<Way> {
    let strike = |effect: fn() -> Effect, times: u32, writes: &[(&str, &str, u32)]| -> Vec<FaultRule> {
        writes.iter().map(|(method, path, skip)| rule(method, path, *skip, Some(times), effect())).collect()
    };
    let busy = [("POST", "*/ports", 0), ("PUT", "*/add_router_interface", 0)];
    let lost = [
        ("POST", "*/servers", 1),
        ("POST", "*/ports", 2),
        ("POST", "*/routers", 0),
        ("DELETE", "*/servers/*", 0),
        ("DELETE", "*/ports/*", 1),
    ];
    let errors = [
        ("POST", "*/networks", 0),
        ("POST", "*/security-group-rules", 2),
        ("POST", "*/servers", 2),
        ("DELETE", "*/servers/*", 1),
        ("DELETE", "*/networks/*", 0),
    ];
    vec![
        ("lagging lists".to_owned(), lagging(2000)),
        ("a busy subnet".to_owned(), strike(|| Effect::SubnetBusy, 1, &busy)),
        ("lost answers".to_owned(), strike(|| Effect::CutAfter, 1, &lost)),
        ("errors".to_owned(), strike(broken, 1, &errors)),
    ]
}

/// Every write in turn, in every way; and ways that concern all calls.
fn everything() -> Vec<Way> {
    let retry_after = || Effect::TooManyRequests { retry_after_seconds: 60 };
    let effects: [Strike; 7] = [
        ("comes after its client gave up", || Effect::Delay { milliseconds: 35_000 }),
        ("is answered after 20 s", || Effect::DelayAfter { milliseconds: 20_000 }),
        ("is answered when nobody listens", || Effect::DelayAfter { milliseconds: 35_000 }),
        ("is cut", || Effect::CutAfter),
        ("fails", broken),
        ("meets a busy subnet", || Effect::SubnetBusy),
        ("asks for a minute", || Effect::TooManyRequests { retry_after_seconds: 60 }),
    ];
    let mut ways = vec![
        ("lagging lists".to_owned(), lagging(5000)),
        ("every answer after 20 s".to_owned(), {
            let slow = Effect::DelayAfter { milliseconds: 20_000 };
            ["servers", "networks", "routers", "ports"]
                .map(|path| rule("POST", &format!("*/{path}"), 0, None, slow.clone()))
                .to_vec()
        }),
        // Each of these takes a minute or more, and one comes after the other.
        (
            "a minute for some kinds".to_owned(),
            LONG.map(|(method, path)| rule(method, path, 0, Some(1), retry_after())).to_vec(),
        ),
        (
            "minutes of errors".to_owned(),
            LONG.map(|(method, path)| rule(method, path, 0, Some(6), broken())).to_vec(),
        ),
    ];
    for (method, path, count) in WRITES {
        for (what, effect) in &effects {
            for nth in 0..count {
                ways.push((
                    format!("{method} {path} {} {what}", nth + 1),
                    vec![rule(method, path, nth, Some(1), effect())],
                ));
            }
        }
    }
    ways
}

/// What a cloud holds, by names that do not depend on the namespace.
fn held(world: &World, cloud: &Handle) -> BTreeMap<String, Vec<String>> {
    let plain = |names: Vec<String>| names.iter().map(|name| name.replace(&world.namespace, "ns")).collect();
    inventory(cloud).into_iter().map(|(kind, names)| (kind, plain(names))).collect()
}

/// Which machines are called ready, each of which must have its port.
async fn ready(world: &World, cloud: &Handle, way: &str) -> usize {
    let mut count = 0;
    for name in MACHINES {
        let status = machine_status(world, name).await;
        if status.ready != Some(true) {
            continue;
        }
        let id = status.instance_id.unwrap();
        let ports = cloud.model().ports;
        assert!(
            ports.values().any(|port| port.device_id == id),
            "{way}: {name} is ready without its network"
        );
        count += 1;
    }
    count
}

async fn made(world: &World, cloud: &Handle, way: &str) {
    let began = Instant::now();
    ready_cluster(world, cloud).await;
    for name in MACHINES {
        server(world, name, worker()).await;
    }
    eventually(way, async || ready(world, cloud, way).await == MACHINES.len()).await;
    println!("{way}: made after {:?}", began.elapsed());
}

/// Something is found and removed later where it came late; looked for sooner here.
async fn becomes(world: &World, cloud: &Handle, expected: &BTreeMap<String, Vec<String>>, way: &str) {
    for turn in 0..300 {
        if held(world, cloud) == *expected {
            return;
        }
        if turn % 20 == 0 {
            let note = json!({"metadata": {"annotations": {"example.com/sooner": turn.to_string()}}});
            world.merge::<OpenStackCluster>("demo", note.clone()).await;
            for name in MACHINES {
                world.merge::<OpenStackMachine>(name, note.clone()).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("{way}: {:#?} is not {expected:#?}", held(world, cloud));
}

async fn unmade(world: &World, cloud: &Handle, way: &str) {
    let began = Instant::now();
    futures::future::join_all(MACHINES.map(|name| world.delete::<OpenStackMachine>(name))).await;
    world.delete::<OpenStackCluster>("demo").await;
    println!("{way}: unmade after {:?}", began.elapsed());
    assert!(inventory(cloud).is_empty(), "{way}: {:#?}", inventory(cloud));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unkind_cloud_leaves_nothing_twice_and_nothing_behind() {
    let turn = World::new("unkind").await;
    let is_all = std::env::var("HANGAR_SWEEP").is_ok_and(|value| value == "all");
    let ways = if is_all { everything() } else { sample() };
    let (kind, mut expected) = ([("kind".to_owned(), Vec::new())], None);
    for ways in ways.chunks(TOGETHER) {
        let mut sites = Vec::new();
        for (way, rules) in kind.iter().chain(ways) {
            let (world, cloud) = (World::beside("unkind").await, start().await);
            for rule in rules {
                cloud.arm(rule.clone());
            }
            sites.push((way, world, cloud));
        }
        let running = Running::start(BOTH, Vec::new());
        futures::future::join_all(sites.iter().map(|(way, world, cloud)| made(world, cloud, way))).await;
        let expected = expected.get_or_insert_with(|| held(&sites[0].1, &sites[0].2));
        let settled = sites.iter().map(|(way, world, cloud)| becomes(world, cloud, expected, way));
        futures::future::join_all(settled).await;
        futures::future::join_all(sites.iter().map(|(way, world, cloud)| unmade(world, cloud, way))).await;
        for (way, _, cloud) in &sites {
            let faults = cloud.faults();
            let silent: Vec<&str> = faults
                .iter()
                .filter(|armed| armed.fired == 0)
                .map(|armed| armed.rule.name.as_str())
                .collect();
            assert!(silent.is_empty(), "{way}: a fault that never came proves nothing: {silent:?}");
        }
        drop(running);
    }
    drop(turn);
}

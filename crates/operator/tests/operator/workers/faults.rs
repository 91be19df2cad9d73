//! A cloud that refuses calls, fails or does not answer: everything converges, and nothing exists twice.

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_cloud::fault::{Effect, FaultRule};

use super::cloud::{inventory, start};
use super::servers::{BOTH, condition, machine_status, ready_cluster, server, worker};
use super::world::{Running, World, eventually};

fn rule(name: &str, method: &str, path: &str, effect: Effect) -> FaultRule {
    FaultRule {
        name: name.to_owned(),
        method: Some(method.to_owned()),
        path: Some(path.to_owned()),
        body: None,
        skip: 0,
        times: Some(1),
        effect,
    }
}

/// A kind of fault, by name.
type Kind = (&'static str, fn() -> Effect);

/// Every kind of write is struck once, for each kind of fault.
#[tokio::test(flavor = "multi_thread")]
async fn every_write_goes_wrong_once() {
    let turn = World::new("faults").await;
    let kinds: [Kind; 5] = [
        ("cut-after", || Effect::CutAfter),
        ("cut-before", || Effect::CutBefore),
        ("too-many", || Effect::TooManyRequests { retry_after_seconds: 1 }),
        ("unavailable", || Effect::Fail {
            status: 503,
            message: "busy".to_owned(),
            retry_after_seconds: None,
        }),
        ("broken", || Effect::Fail { status: 500, message: "oops".to_owned(), retry_after_seconds: None }),
    ];
    let mut expected = None;
    for (kind, effect) in kinds {
        let world = World::beside(&format!("faults-{kind}")).await;
        let cloud = start().await;
        let paths = ["networks", "subnets", "routers", "security-groups", "security-group-rules", "ports"];
        for path in paths {
            cloud.arm(rule(&format!("{kind}-make-{path}"), "POST", &format!("*/{path}"), effect()));
            cloud.arm(rule(&format!("{kind}-delete-{path}"), "DELETE", &format!("*/{path}/*"), effect()));
        }
        cloud.arm(rule(&format!("{kind}-interface"), "PUT", "*_router_interface", effect()));
        cloud.arm(rule(&format!("{kind}-make-server"), "POST", "*/servers", effect()));
        cloud.arm(rule(&format!("{kind}-delete-server"), "DELETE", "*/servers/*", effect()));
        let running = Running::start(BOTH, Vec::new());
        ready_cluster(&world, &cloud).await;
        server(&world, "worker-a", worker()).await;
        eventually("the server runs", async || machine_status(&world, "worker-a").await.ready == Some(true))
            .await;
        let held: Vec<(String, Vec<String>)> = inventory(&cloud)
            .into_iter()
            .map(|(kind, names)| {
                (kind, names.iter().map(|name| name.replace(&world.namespace, "ns")).collect())
            })
            .collect();
        assert_eq!(*expected.get_or_insert(held.clone()), held, "{kind}");
        world.delete::<OpenStackMachine>("worker-a").await;
        world.delete::<OpenStackCluster>("demo").await;
        assert!(inventory(&cloud).is_empty(), "{kind}: {:?}", inventory(&cloud));
        let silent: Vec<String> = cloud
            .faults()
            .into_iter()
            .filter(|armed| armed.fired == 0 && !armed.rule.name.ends_with("delete-security-group-rules"))
            .map(|armed| armed.rule.name)
            .collect();
        assert!(silent.is_empty(), "a fault that never came proves nothing: {silent:?}");
        drop(running);
    }
    drop(turn);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_is_a_condition_that_clears_when_there_is_room() {
    let world = World::new("quota").await;
    let cloud = start().await;
    let _running = Running::start(BOTH, Vec::new());
    ready_cluster(&world, &cloud).await;
    cloud.arm(FaultRule { times: None, ..rule("full", "POST", "*/servers", Effect::OverQuota) });
    server(&world, "worker-a", worker()).await;
    eventually("it is told", async || {
        condition(&machine_status(&world, "worker-a").await).0 == "InstanceCreateFailed"
    })
    .await;
    let (_, message) = condition(&machine_status(&world, "worker-a").await);
    assert!(message.to_lowercase().contains("quota"), "{message}");
    assert_eq!(inventory(&cloud)["port"].iter().filter(|name| name.starts_with("worker-a")).count(), 1);
    cloud.clear_faults();
    eventually("the server runs", async || machine_status(&world, "worker-a").await.ready == Some(true))
        .await;
    assert_eq!(inventory(&cloud)["server"].len(), 1);
}

//! Many objects at once: how many calls they cost.

use hangar_api::cluster::v1beta2::MachineDeployment;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};

use crate::machines::delete_cluster;
use crate::stubs::{Manager, Providers, World, eventually, turn};

/// How many: few for every day, many where somebody asks for it with `HANGAR_LOAD=1`.
pub(crate) fn size(few: usize, many: usize) -> usize {
    if std::env::var_os("HANGAR_LOAD").is_some() { many } else { few }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_that_start_together_cost_the_tenant_one_watch() {
    let _turn = turn().await;
    let (world, count) = (World::new("load"), size(20, 200));
    let _providers = Providers::start(&world);
    let manager = Manager::start();
    world.cluster().await;
    world.parts_of_the_cluster().await;
    world.deployment(i32::try_from(count).unwrap()).await;
    eventually("all Machines run", async || world.running().await.len() == count).await;
    manager.rest().await;
    let counts = manager.tenant().counts();
    println!("{count} Machines: {counts:?}");
    let of = |kind: &str| counts.get(kind).copied().unwrap_or_default();
    // One of each, whatever the number of Machines. On a busy host a connection may break once, and starts over.
    assert!((1..=2).contains(&of("list nodes")), "{counts:?}");
    assert!((1..=2).contains(&of("watch nodes")), "{counts:?}");
    assert_eq!(of("get nodes"), 0, "{counts:?}");
    let patched = |name: &str| {
        let is_it = |(call, answer): &(hangar_kit::call::Call, hangar_kit::call::Answer)| {
            call.verb.is_write() && call.name.as_deref() == Some(name) && answer.is_success()
        };
        manager.tenant().calls().iter().filter(|one| is_it(one)).count()
    };
    for node in world.nodes().await {
        assert_eq!(patched(&node.name_any()), 1, "{}", node.name_any());
    }
    let api: Api<MachineDeployment> = world.api();
    api.delete("workers", &DeleteParams::default()).await.unwrap();
    eventually("the deployment is gone", async || api.get_opt("workers").await.unwrap().is_none()).await;
    delete_cluster(&world).await;
    manager.stop().await;
}

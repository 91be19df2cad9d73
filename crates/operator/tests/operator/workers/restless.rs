//! Nodes that never rest: what they say about themselves is written rarely, and little of it.

use std::time::Duration;

use hangar_api::cluster::v1beta2::Machine;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::shares::{CONTROLLERS, Site, good_tenant};
use super::tenants::Restless;
use super::world::{Running, Seen, World, eventually};
use crate::load::size;

/// A Node that was quiet may change so often before it counts as restless.
const FREE: usize = 20;
/// Then it is written so often in a minute: twice for its changes, and when it is looked at anyway.
const PER_MINUTE: usize = 8;
/// Bytes of a Machine, whatever its Node says.
const MACHINE: usize = 32 << 10;

/// Writes of a Machine and its status so far.
fn writes(seen: &Seen, machine: &Machine) -> usize {
    let calls = seen.management.calls();
    let is_its = |(call, answer): &&(hangar_kit::call::Call, hangar_kit::call::Answer)| {
        call.verb.is_write()
            && answer.is_success()
            && call.namespace == machine.namespace()
            && call.resource.starts_with("machines")
            && call.name == machine.metadata.name
    };
    calls.iter().filter(is_its).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_never_rest_cost_few_writes_and_leave_small_objects() {
    let turn = World::new("restless").await;
    let (site, seen) = (Site::new("restless").await, Seen::new());
    let _running = Running::seen(CONTROLLERS, Vec::new(), &seen);
    site.prepare(&good_tenant()).await;
    site.workers(2).await;
    eventually("two run", async || site.runs(2).await).await;
    site.rests(&seen).await;
    let api: Api<Machine> = site.world.api();
    let machines = api.list(&ListParams::default()).await.unwrap().items;
    let before: Vec<usize> = machines.iter().map(|machine| writes(&seen, machine)).collect();

    // From now on the tenant is another server, which knows the same Nodes.
    let (tenant, seconds) = (Restless::start().await, size(12, 180));
    let kubeconfig = json!({"stringData": {"value": tenant.kubeconfig()}});
    site.world.merge::<Secret>("demo-kubeconfig", kubeconfig).await;
    for machine in &machines {
        let note = json!({"metadata": {"annotations": {"example.com/wake": "now"}}});
        site.world.merge::<Machine>(&machine.name_any(), note).await;
    }
    eventually("they are restless", async || tenant.changed() > 0).await;
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let changes = tenant.changed() / machines.len();
    let most = FREE + (seconds * PER_MINUTE).div_ceil(60);
    for (machine, before) in machines.iter().zip(before) {
        let written = writes(&seen, machine) - before;
        let length = serde_json::to_vec(&api.get(&machine.name_any()).await.unwrap()).unwrap().len();
        println!(
            "{changes} changes of a MiB in {seconds} s: {written} writes of at most {most}, {length} bytes"
        );
        assert!(changes > 2 * most && (1..=most).contains(&written), "{changes} changes, {written} writes");
        assert!(length < MACHINE, "{length} bytes");
    }
    drop(turn);
}

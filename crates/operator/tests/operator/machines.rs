//! MachineDeployments, MachineSets and Machines with stub providers, and a tenant with real Nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_kit::metrics::Metrics;
use hangar_operator::controllers;
use hangar_plan::machine_set::machine_name;
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::sweep::{Extent, Manager as Swept, Scenario, Sweep};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::rights;
use crate::stubs::{
    BED, CONTROLLERS, Manager, Providers, World, eventually, handles, is_at_rest, text, turn,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_come_scale_roll_and_go() {
    let _turn = turn().await;
    let world = World::new("machines");
    let _providers = Providers::start(&world);
    let manager = Manager::start();
    world.cluster().await;
    world.parts_of_the_cluster().await;
    world.deployment(2).await;
    eventually("two Machines run", async || world.running().await.len() == 2).await;
    eventually("it is told", async || world.cluster_condition("WorkersAvailable").await.0 == "True").await;
    manager.rest().await;
    everything_belongs_together(&world).await;
    manager.stop().await;

    // Another manager finds everything as it should be.
    let manager = Manager::start();
    manager.rest().await;
    assert_eq!(manager.writes(), [] as [&str; 0]);

    let before: BTreeSet<String> = world.all::<Machine>().await.iter().map(ResourceExt::name_any).collect();
    world.patch::<MachineDeployment>("workers", json!({"spec": {"replicas": 3}})).await;
    eventually("three run", async || world.running().await.len() == 3).await;
    let after: BTreeSet<String> = world.all::<Machine>().await.iter().map(ResourceExt::name_any).collect();
    assert!(after.is_superset(&before), "{before:?} {after:?}");

    // In place: a label reaches Machines and Nodes, and no Machine is replaced.
    let labels =
        json!({"spec": {"template": {"metadata": {"labels": {"node.cluster.x-k8s.io/tier": "slow"}}}}});
    world.patch::<MachineDeployment>("workers", labels).await;
    eventually("the Nodes have the label", async || {
        let nodes = world.nodes().await;
        nodes.len() == 3 && nodes.iter().all(|node| node.labels()["node.cluster.x-k8s.io/tier"] == "slow")
    })
    .await;
    let same: BTreeSet<String> = world.all::<Machine>().await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(same, after);

    roll(&world, &manager, &after).await;
    assert!(!manager.asked("hostedcontrolplanes"), "where no Cluster has one, their kind may not be there");

    let api: Api<MachineDeployment> = world.api();
    api.delete("workers", &DeleteParams::default()).await.unwrap();
    eventually("the deployment is gone", async || api.get_opt("workers").await.unwrap().is_none()).await;
    assert!(world.all::<Machine>().await.is_empty() && world.all::<MachineSet>().await.is_empty());
    assert!(world.names("StubMachine").await.is_empty() && world.names("StubConfig").await.is_empty());
    assert!(world.nodes().await.is_empty(), "Nodes go with their Machines");
    delete_cluster(&world).await;
    manager.stop().await;
}

/// Owners, labels, references, facts.
async fn everything_belongs_together(world: &World) {
    for machine in world.all::<Machine>().await {
        let name = machine.name_any();
        assert_eq!(machine.owner_references()[0].kind, "MachineSet");
        assert_eq!(machine.spec.bootstrap.data_secret_name.as_ref(), Some(&name));
        for kind in ["StubMachine", "StubConfig"] {
            let object = world.stub(kind).get(&name).await.unwrap();
            let owners: Vec<&str> =
                object.owner_references().iter().map(|owner| owner.kind.as_str()).collect();
            assert_eq!(owners, ["Machine"], "{kind}");
            assert_eq!(object.labels()["cluster.x-k8s.io/cluster-name"], "demo");
            let from = &object.annotations()["cluster.x-k8s.io/cloned-from-name"];
            assert!(["small", "join"].contains(&from.as_str()), "{from}");
        }
        let server = world.stub("StubMachine").get(&name).await.unwrap();
        assert_eq!(server.data["spec"]["size"], "small");
        assert_eq!(server.data["spec"]["providerID"].as_str(), machine.spec.provider_id.as_deref());
        let status = machine.status.unwrap();
        assert_eq!(text(status.conditions.as_deref(), "UpToDate").0, "True");
        assert_eq!(status.addresses.unwrap()[0].address, "10.0.0.4");
    }
    for node in world.nodes().await {
        assert_eq!(node.labels()["node.cluster.x-k8s.io/tier"], "fast");
        assert_eq!(node.annotations()["cluster.x-k8s.io/cluster-name"], "demo");
        let taints = node.spec.unwrap().taints.unwrap_or_default();
        assert!(taints.iter().all(|taint| taint.key != "node.cluster.x-k8s.io/uninitialized"), "{taints:?}");
    }
}

/// Another template replaces every Machine once it exists, never with more than one above and none below.
async fn roll(world: &World, manager: &Manager, before: &BTreeSet<String>) {
    let changed = json!({"spec": {"template": {"spec": {"infrastructureRef": {"name": "later"}}}}});
    world.patch::<MachineDeployment>("workers", changed).await;
    eventually("it says which template is missing", async || {
        let status = world.api::<MachineDeployment>().get("workers").await.unwrap().status.unwrap();
        let (_, message) = text(status.conditions.as_deref(), "RollingOut");
        message.contains("StubMachineTemplate later, which spec.template.spec.infrastructureRef names")
    })
    .await;
    manager.rest().await;
    assert_eq!(world.all::<MachineSet>().await.len(), 1, "no set is made of a template that is missing");
    world.create_stub("StubMachineTemplate", "later", json!({"template": {"spec": {"size": "large"}}})).await;
    eventually("it goes on", async || world.all::<MachineSet>().await.len() == 2).await;
    let (mut most, mut least) = (0, usize::MAX);
    eventually("all are replaced", async || {
        most = most.max(world.all::<Machine>().await.len());
        let running = world.running().await;
        least = least.min(running.len());
        running.len() == 3 && running.iter().all(|one| !before.contains(&one.name_any()))
    })
    .await;
    assert!(most <= 4, "{most}");
    assert!(least >= 3, "{least}");
    eventually("the old set is gone", async || world.all::<MachineSet>().await.len() == 1).await;
    let sets = world.all::<MachineSet>().await;
    assert_eq!(sets[0].annotations()["machinedeployment.clusters.x-k8s.io/revision"], "2");
    eventually("everything of the old ones is gone", async || {
        world.names("StubMachine").await.len() == 3 && world.nodes().await.len() == 3
    })
    .await;
    for name in world.names("StubMachine").await {
        assert_eq!(world.stub("StubMachine").get(&name).await.unwrap().data["spec"]["size"], "large");
    }
}

/// Git and `kubectl apply` know no order, and what is fresh has no label of its Cluster yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_may_come_before_their_cluster() {
    let _turn = turn().await;
    for (name, is_deployment) in [("before-deployment", true), ("before-set", false)] {
        let world = World::new(name);
        let _providers = Providers::start(&world);
        let manager = Manager::start();
        if is_deployment {
            world.deployment(1).await;
        } else {
            world.set(1).await;
        }
        manager.rest().await;
        assert!(world.all::<Machine>().await.is_empty(), "there is nothing to join");
        world.cluster().await;
        world.parts_of_the_cluster().await;
        eventually("a Machine runs", async || world.running().await.len() == 1).await;
        keep_the_label(&world, &manager).await;
        delete_cluster(&world).await;
        manager.stop().await;
    }
}

/// A label that somebody removed is put back, and its Machine counts meanwhile: no other is made.
async fn keep_the_label(world: &World, manager: &Manager) {
    let name = world.running().await[0].name_any();
    let set = world.all::<MachineSet>().await[0].name_any();
    let without = json!({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": null}}});
    world.patch::<Machine>(&name, without.clone()).await;
    world.patch::<MachineSet>(&set, without).await;
    eventually("the labels are back", async || {
        let label = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get("cluster.x-k8s.io/cluster-name").is_some_and(|value| value == "demo")
        };
        label(world.all::<Machine>().await[0].labels()) && label(world.all::<MachineSet>().await[0].labels())
    })
    .await;
    manager.rest().await;
    let names: Vec<String> = world.all::<Machine>().await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, [name], "one Machine, the same");
}

pub(crate) async fn delete_cluster(world: &World) {
    let api: Api<Cluster> = world.api();
    api.delete("demo", &DeleteParams::default()).await.unwrap();
    eventually("the cluster is gone", async || api.get_opt("demo").await.unwrap().is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_holds_a_drain_and_a_deleted_cluster_does_not_drain() {
    let _turn = turn().await;
    let world = World::new("drain");
    let providers = Providers::start(&world);
    let manager = Manager::start();
    world.cluster().await;
    world.parts_of_the_cluster().await;
    world.deployment(1).await;
    eventually("one Machine runs", async || world.running().await.len() == 1).await;
    let machine = world.running().await.remove(0);
    let node = machine.status.clone().unwrap().node_ref.unwrap().name;
    pod(&world, &node).await;
    // Nobody computes this budget here, so it allows nothing.
    world
        .create::<PodDisruptionBudget>(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    let api: Api<Machine> = world.api();
    api.delete(&machine.name_any(), &DeleteParams::default()).await.unwrap();
    eventually("it says what holds it", async || {
        let status = api.get(&machine.name_any()).await.unwrap().status.unwrap_or_default();
        let (_, message) = text(status.conditions.as_deref(), "Deleting");
        message.contains(&format!("{}/web", world.namespace)) && message.contains("disruption budget")
    })
    .await;
    let server = world.stub("StubMachine").get(&machine.name_any()).await.unwrap();
    assert!(server.metadata.deletion_timestamp.is_none(), "the server waits for the drain");
    let cordoned = world.nodes().await.remove(0).spec.unwrap().unschedulable;
    assert_eq!(cordoned, Some(true));

    let budgets: Api<PodDisruptionBudget> = world.api();
    budgets.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("the pod is evicted and the Machine replaced", async || replaced(&world, &machine).await)
        .await;
    assert!(world.api::<Pod>().get_opt("web").await.unwrap().is_none());

    // With the whole cluster nobody waits for pods.
    let machine = world.running().await.remove(0);
    pod(&world, &machine.status.unwrap().node_ref.unwrap().name).await;
    world
        .create::<PodDisruptionBudget>(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    delete_cluster(&world).await;
    assert!(world.api::<Pod>().get_opt("web").await.unwrap().is_some());
    manager.stop().await;
    drop(providers);
}

/// Another Machine runs, and it has another name.
async fn replaced(world: &World, old: &Machine) -> bool {
    let running = world.running().await;
    running.len() == 1 && running[0].name_any() != old.name_any()
}

async fn pod(world: &World, node: &str) {
    world
        .create::<Pod>(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"nodeName": node, "containers": [{"name": "web", "image": "web"}]}}))
        .await;
    // A pod that does not run yet is no loss to a budget.
    let status = json!({"status": {"phase": "Running"}});
    world.api::<Pod>().patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// Which part of the workers' life is swept: those of a MachineSet, whose uid, and with it their names, is known before
/// the manager starts.
#[derive(Clone, Copy, PartialEq)]
enum Life {
    Birth,
    Death,
}

/// A world, and the name of its Machine.
struct Stage {
    world: World,
    machine: String,
    _providers: Providers,
}

impl Scenario for Life {
    type World = Stage;
    type State = BTreeSet<String>;

    async fn prepare(&self) -> Stage {
        wait(self.prepared())
    }

    fn aliases(&self, stage: &Stage) -> Vec<(String, String)> {
        vec![
            (stage.world.namespace.clone(), "ns".to_owned()),
            (stage.machine.clone(), "workers-0".to_owned()),
        ]
    }

    fn manager(&self, _: &Stage, client: Client) -> Swept {
        let metrics = Metrics::new();
        let handles = handles(client, &metrics);
        let main = async move {
            controllers::run(handles, &CONTROLLERS.join(",").parse().unwrap(), CancellationToken::new())
                .await
                .unwrap();
        };
        Swept::new(main, move || is_at_rest(&metrics))
    }

    async fn snapshot(&self, stage: &Stage) -> Self::State {
        wait(stage.world.described())
    }

    fn is_end(&self, state: &Self::State) -> bool {
        match self {
            Self::Birth => state.contains(r#"Machines ["Some(Running)"]"#),
            Self::Death => state.iter().all(|line| line.ends_with(" 0") || line == "Machines []"),
        }
    }
}

/// Async closures in a future make it impossible to say that it may move between threads.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(future))
}

impl Life {
    async fn prepared(self) -> Stage {
        clear().await;
        let world = World::new("crash");
        let providers = Providers::start(&world);
        world.cluster().await;
        world.parts_of_the_cluster().await;
        world.set(1).await;
        let set: MachineSet = world.api().get("workers").await.unwrap();
        let machine = machine_name(&set, 0).unwrap();
        if self == Self::Death {
            let manager = Manager::start();
            eventually("it lives", async || world.running().await.len() == 1).await;
            manager.rest().await;
            manager.stop().await;
            world.api::<Cluster>().delete("demo", &DeleteParams::default()).await.unwrap();
        }
        Stage { world, machine, _providers: providers }
    }
}

async fn release<K>(client: &Client)
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let all: Api<K> = Api::all(client.clone());
    for one in all.list(&ListParams::default()).await.unwrap() {
        let api: Api<K> = Api::namespaced(client.clone(), one.meta().namespace.as_deref().unwrap());
        let name = one.meta().name.clone().unwrap();
        let _ = api.delete(&name, &DeleteParams::default()).await;
        let released = json!({"metadata": {"finalizers": null}});
        let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(released)).await;
    }
}

/// Takes away what earlier cases left, without ceremony: the next manager would look after it.
async fn clear() {
    let client = BED.client();
    release::<Cluster>(&client).await;
    release::<MachineDeployment>(&client).await;
    release::<MachineSet>(&client).await;
    release::<Machine>(&client).await;
}

async fn sweep(life: Life, cases: usize) {
    let _turn = turn().await;
    let extent = Extent::sample(cases, Duration::from_secs(90), 1);
    let config = rights::config(&BED, &CONTROLLERS.join(","), &Namespaces::All);
    // How often a status is written depends on what is seen together.
    let sweep = Sweep::new(config, extent).counting(|call| {
        let is_status = call.resource.ends_with("/status");
        call.verb.is_write() && !is_status && !call.resource.starts_with("events")
    });
    let report = sweep.run(&life).await.unwrap();
    assert!(!report.tried.is_empty());
    assert_eq!(report.verdict(), Ok(()));
    wait(clear());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_birth_of_workers_survives_a_crash() {
    sweep(Life::Birth, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_death_of_workers_survives_a_crash() {
    sweep(Life::Death, 6).await;
}

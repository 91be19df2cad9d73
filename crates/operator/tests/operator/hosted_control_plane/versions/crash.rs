//! Crash sweep: the manager is killed after each of its writes while a control plane grows, is upgraded (with another
//! etcd), or comes back from an upgrade that did not become ready; the next one must reach the same end.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use hangar_kit::metrics::Metrics;
use hangar_operator::controllers;
use hangar_plan::hosted_control_plane::names::{ETCD_VERSION_ANNOTATION, SERVED_VERSION_ANNOTATION};
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::Port;
use hangar_testbed::sweep::{Extent, Manager as Swept, Scenario, Sweep};
use kube::Client;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::super::crash::{describe, is_point, wait};
use super::super::tenant::Tenant;
use super::super::world::{CONTROLLER, Manager, SWEPT, eventually, handles, is_at_rest, turn_to_sweep};
use super::{API_SERVER, CONTROLLERS, ETCD, NEW, NEW_ETCD, OLD, OLD_ETCD, Stage};
use crate::rights;

/// It takes long to start, so all worlds share it, one after the other.
static TENANT: OnceCell<Tenant> = OnceCell::const_new();
static PORT: LazyLock<Port> = LazyLock::new(|| Port::reserve().unwrap());

#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// From one API server to three.
    Scale,
    /// To a minor with another etcd.
    Upgrade,
    /// From an upgrade whose API server did not become ready.
    TakenBack,
}

impl Scenario for Change {
    type World = Stage;
    type State = BTreeSet<String>;

    async fn prepare(&self) -> Stage {
        wait(self.prepared())
    }

    fn aliases(&self, stage: &Stage) -> Vec<(String, String)> {
        vec![(stage.world.namespace.clone(), "ns".to_owned())]
    }

    fn manager(&self, _: &Stage, client: Client) -> Swept {
        let metrics = Metrics::new();
        let handles = handles(client, &metrics, None);
        let main = async move {
            controllers::run(handles, &CONTROLLER.parse().unwrap(), CancellationToken::new()).await.unwrap();
        };
        Swept::new(main, move || is_at_rest(&metrics))
    }

    async fn snapshot(&self, stage: &Stage) -> Self::State {
        wait(seen(stage))
    }

    fn is_end(&self, state: &Self::State) -> bool {
        let (servers, version, etcd) = match self {
            Self::Scale => (3, OLD, OLD_ETCD),
            Self::Upgrade => (1, NEW, NEW_ETCD),
            Self::TakenBack => (1, OLD, NEW_ETCD),
        };
        let lines = [
            "condition Ready True Ready".to_owned(),
            "condition RollingOut False NotRollingOut".to_owned(),
            "condition ScalingUp False NotScalingUp".to_owned(),
            format!("status {version}, {servers} ready"),
            format!("{servers} of {API_SERVER} on {version}, ready true"),
            format!("3 of {ETCD} on {etcd}, ready true"),
        ];
        let controllers = CONTROLLERS.map(|part| format!("1 of {part} on {version}, ready true"));
        lines.iter().chain(&controllers).all(|line| state.contains(line))
    }
}

impl Change {
    async fn prepared(self) -> Stage {
        let stage = Stage::new(&SWEPT, "versions", PORT.number(), json!({})).await;
        let manager = Manager::start_in(&stage.world.bed);
        stage.is_minted().await;
        let is_first = !TENANT.initialized();
        let tenant = TENANT.get_or_init(async || Tenant::start(&stage.world, PORT.number()).await).await;
        if !is_first {
            tenant.serve(&stage.world).await;
        }
        stage.is_ready().await;
        if self == Self::TakenBack {
            stage.actor.break_version(API_SERVER, NEW);
            stage.want(json!({"version": NEW})).await;
            eventually("it stops", async || stage.rolls("True", "Stopped", &["kube-apiserver: "]).await)
                .await;
        }
        manager.rest().await;
        manager.stop().await;
        stage
            .want(match self {
                Self::Scale => json!({"replicas": 3}),
                Self::Upgrade => json!({"version": NEW}),
                Self::TakenBack => json!({"version": OLD}),
            })
            .await;
        stage
    }
}

/// Everything there is, without what is random, and which versions run and are on record.
async fn seen(stage: &Stage) -> BTreeSet<String> {
    let mut all = describe(&stage.world).await;
    let status = stage.world.control_plane().await.status.unwrap_or_default();
    let (version, ready) = (status.version.unwrap_or_default(), status.ready_replicas.unwrap_or_default());
    all.insert(format!("status {version}, {ready} ready"));
    for name in [SERVED_VERSION_ANNOTATION, ETCD_VERSION_ANNOTATION] {
        all.insert(format!("record {name} {:?}", stage.recorded(name).await));
    }
    for part in [ETCD, API_SERVER].into_iter().chain(CONTROLLERS) {
        let pods = stage.pods(&[part]).await;
        let kinds: BTreeSet<_> = pods.iter().map(|(_, version, is_ready)| (version, is_ready)).collect();
        for (version, is_ready) in kinds {
            let number = pods.iter().filter(|pod| (&pod.1, &pod.2) == (version, is_ready)).count();
            all.insert(format!("{number} of {part} on {version}, ready {is_ready}"));
        }
    }
    all
}

async fn swept(change: Change, extent: Extent) {
    let config = rights::config(&SWEPT, CONTROLLER, &Namespaces::All);
    let report = Sweep::new(config, extent).counting(is_point).run(&change).await.unwrap();
    eprintln!("{change:?}: {report}");
    assert_eq!(report.verdict(), Ok(()));
}

/// The sample is of the change with the most steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_size_or_version_changes_leads_to_the_same_control_plane() {
    let _turn = turn_to_sweep().await;
    let extent = Extent::sample(2, Duration::from_secs(60), 1);
    if extent != Extent::All {
        return swept(Change::Upgrade, extent).await;
    }
    for change in [Change::Scale, Change::Upgrade, Change::TakenBack] {
        swept(change, extent.clone()).await;
    }
}

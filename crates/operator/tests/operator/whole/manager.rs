//! A whole manager in a runtime of its own, so that a test can kill it like a process.

use std::sync::Arc;
use std::time::Duration;

use hangar_kit::call::CallLog;
use hangar_kit::client::{ClientOptions, client};
use hangar_kit::leadership::Always;
use hangar_kit::metrics::{ControllerLabels, Metrics, ReconcileLabels};
use hangar_operator::{Handles, controllers};
use hangar_plan::controllers::Controller;
use hangar_plan::namespaces::Namespaces;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::strikes::Strikes;
use crate::hosted_control_plane::world::SWEPT;
use crate::rights::{self, Refusals, nothing_was_forbidden};

/// Tasks of a killed manager end at their next await.
const KILL_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Manager {
    runtime: Option<Runtime>,
    metrics: Metrics,
    strikes: Strikes,
}

impl Manager {
    /// Every controller, with gates at all transports.
    pub(super) fn start(strikes: &Strikes, calls: &CallLog) -> Self {
        Self::start_of("all", strikes, calls)
    }

    /// The same with chosen controllers.
    pub(crate) fn start_of(selection: &'static str, strikes: &Strikes, calls: &CallLog) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let metrics = Metrics::new();
        let config = rights::config(&SWEPT, selection, &Namespaces::All);
        let (kept, gates, calls) = (metrics.clone(), strikes.clone(), calls.clone());
        runtime.spawn(async move {
            let options = ClientOptions::default().gate(calls).gate(Refusals).gate(gates.gate("management"));
            let handles = Handles {
                client: client(config, &options).unwrap(),
                leadership: Arc::new(Always),
                metrics: kept,
                clock: hangar_kit::call::ServerClock::default(),
                namespaces: Namespaces::All,
                concurrency: 4,
                instance: "test".to_owned(),
                tenant_gates: vec![Arc::new(gates.gate("tenant"))],
                cloud_gates: vec![Arc::new(gates.gate("cloud"))],
                etcd_gates: vec![Arc::new(gates.gate("etcd"))],
                settling: crate::SETTLING,
                limits: Arc::default(),
                image: Some("hangar:test".to_owned()),
                own_namespace: None,
            };
            controllers::run(handles, &selection.parse().unwrap(), CancellationToken::new()).await.unwrap();
        });
        Self { runtime: Some(runtime), metrics, strikes: strikes.clone() }
    }

    /// True when it has nothing to do and called nobody for that long.
    pub(crate) fn has_rested(&self, length: Duration) -> bool {
        let queue = &self.metrics.queue;
        let is_idle = |controller: &Controller| {
            let labels = ControllerLabels { controller: controller.name() };
            [&queue.depth, &queue.running, &queue.failing]
                .iter()
                .all(|family| family.get_or_create(&labels).get() == 0)
        };
        self.strikes.quiet() >= length && Controller::ALL.iter().all(is_idle)
    }

    /// True when it has looked at something.
    pub(crate) fn has_looked(&self) -> bool {
        let total = |controller: &Controller| {
            let count = |result| {
                let labels = ReconcileLabels { controller: controller.name(), result };
                self.metrics.reconcile.total.get_or_create(&labels).get()
            };
            ["done", "waiting", "error"].map(count).iter().sum::<u64>()
        };
        Controller::ALL.iter().any(|controller| total(controller) > 0)
    }

    /// Ends it as a crash would: no call leaves it any more, and none of its tasks goes on.
    pub(crate) async fn kill(mut self) {
        self.strikes.kill();
        if let Some(runtime) = self.runtime.take() {
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(KILL_LIMIT)).await.unwrap();
        }
        nothing_was_forbidden();
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.strikes.kill();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

//! Long work on a real API server: a manager is killed in the middle, and the next one resumes from what was recorded.
//!
//! The toy copies items one by one, records how many in an annotation of its root object, and at the end the result.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hangar_kit::{
    Error, ObjectKey, Result,
    client::{ClientOptions, client},
    controller::{ControllerBuilder, Reconcile, Settled},
    leadership::Always,
    long_work::{LongWork, Progress, WorkState},
    watch::{Watch, WatchBuilder},
};
use hangar_plan::flow::{Failure, NotYet, Read};
use hangar_testbed::shared;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

use crate::world::{config_map, create, eventually};

const ITEMS: usize = 10;

/// What outlives a manager: how many items may be copied so far, which were, and how often a result was recorded.
#[derive(Clone)]
struct Outside {
    allowed: watch::Receiver<usize>,
    copied: Arc<Mutex<Vec<usize>>>,
    results: Arc<AtomicUsize>,
}

struct Copier {
    api: Api<ConfigMap>,
    maps: Watch<ConfigMap>,
    work: LongWork<usize>,
    outside: Outside,
}

async fn copy(
    api: Api<ConfigMap>,
    from: usize,
    mut outside: Outside,
    progress: Progress,
) -> Result<usize, Failure> {
    for item in from..ITEMS {
        outside.allowed.wait_for(|allowed| *allowed > item).await.unwrap();
        let copy = config_map(&format!("copy-{item}"), "");
        match api.create(&PostParams::default(), &copy).await {
            Ok(_) => outside.copied.lock().unwrap().push(item),
            // Copied before, and not recorded.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => {
                let message = error.to_string();
                return Err(Failure {
                    category: "CopyFailed",
                    message,
                    is_retryable: true,
                    retry_after: None,
                });
            }
        }
        progress.report((item + 1).to_string());
    }
    Ok(ITEMS)
}

impl Copier {
    async fn record(&self, name: &str, value: &str) -> Result<()> {
        let note = Patch::Merge(json!({"metadata": {"annotations": {name: value}}}));
        let noted = self.api.patch("root", &PatchParams::default(), &note).await;
        self.maps.written(noted.map_err(|source| Error::api("record", source))?);
        Ok(())
    }
}

impl Reconcile for Copier {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled> {
        let root = match self.maps.get(key) {
            Read::One(root) if key.name == "root" => root,
            _ => return Ok(Settled::done()),
        };
        let recorded = root.annotations().get("copied");
        if root.annotations().contains_key("result") {
            return Ok(Settled::done());
        }
        let waits = Settled::waits(NotYet::new("the copy", Duration::from_mins(10)));
        match self.work.state(key, "copy", &root.uid) {
            WorkState::None => {
                let from = recorded.map_or(0, |recorded| recorded.parse().unwrap());
                let (api, outside) = (self.api.clone(), self.outside.clone());
                self.work.start(key, "copy", &root.uid, move |progress| copy(api, from, outside, progress));
                Ok(waits)
            }
            WorkState::Running { progress: Some(progress), .. } if recorded != Some(&progress) => {
                self.record("copied", &progress).await?;
                Ok(waits.progressed(true))
            }
            WorkState::Waiting | WorkState::Running { .. } => Ok(waits),
            WorkState::Finished(result) => {
                self.outside.results.fetch_add(1, Ordering::SeqCst);
                self.record("result", &result.unwrap().to_string()).await?;
                self.work.forget(key, "copy");
                Ok(Settled::done().progressed(true))
            }
        }
    }
}

/// A whole manager in a runtime of its own.
fn manager(namespace: &str, outside: &Outside) -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let entered = runtime.enter();
    let stop = CancellationToken::new();
    let api: Api<ConfigMap> =
        Api::namespaced(client(shared().config(), &ClientOptions::default()).unwrap(), namespace);
    let maps = WatchBuilder::new("configmaps", api.clone()).start(&stop);
    let mut builder = ControllerBuilder::new("copier").roots(&maps, |_| true);
    let work = builder.long_work(4);
    runtime.spawn(builder.run(Copier { api, maps, work, outside: outside.clone() }, Always, stop));
    drop(entered);
    runtime
}

async fn kill(manager: Runtime) {
    tokio::task::spawn_blocking(move || manager.shutdown_timeout(Duration::from_secs(10))).await.unwrap();
}

#[tokio::test]
async fn a_manager_that_dies_in_the_middle_is_resumed_and_there_is_one_result() {
    let namespace = shared().namespace("long-work");
    let api: Api<ConfigMap> = Api::namespaced(shared().client(), &namespace);
    create(&api, &config_map("root", "")).await;
    let (allow, allowed) = watch::channel(4);
    let outside = Outside { allowed, copied: Arc::default(), results: Arc::default() };
    let noted = async |name: &str| api.get("root").await.unwrap().annotations().get(name).cloned();

    let first = manager(&namespace, &outside);
    eventually("four are recorded", async || noted("copied").await.as_deref() == Some("4")).await;
    allow.send(6).unwrap();
    eventually("two more are copied", async || outside.copied.lock().unwrap().len() == 6).await;
    kill(first).await;
    let recorded: usize = noted("copied").await.unwrap().parse().unwrap();
    assert!((4..=6).contains(&recorded) && noted("result").await.is_none());

    // Now what was recorded must not be looked at again: it would be copied a second time.
    for item in 0..recorded {
        api.delete(&format!("copy-{item}"), &kube::api::DeleteParams::default()).await.unwrap();
    }
    allow.send(ITEMS).unwrap();
    let second = manager(&namespace, &outside);
    eventually("there is a result", async || noted("result").await.is_some()).await;
    kill(second).await;
    assert_eq!(noted("result").await.as_deref(), Some("10"));
    assert_eq!(*outside.copied.lock().unwrap(), (0..ITEMS).collect::<Vec<_>>(), "each was copied once");

    // A third finds the result, and does nothing.
    let third = manager(&namespace, &outside);
    tokio::time::sleep(Duration::from_millis(500)).await;
    kill(third).await;
    assert_eq!(outside.results.load(Ordering::SeqCst), 1);
    assert_eq!(outside.copied.lock().unwrap().len(), ITEMS);
}

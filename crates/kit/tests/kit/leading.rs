//! Leading and not leading on a real API server: writes are fenced, and a new leader reconciles every root object.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use hangar_kit::{
    Error, ObjectKey, Result,
    call::{CallLog, FencingGate},
    client::{ClientOptions, client},
    controller::{ControllerBuilder, Reconcile, Settled},
    leadership::{Changed, Leadership},
    watch::WatchBuilder,
};
use hangar_testbed::shared;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{config_map, create, eventually};

/// A lease with as much left as it is told.
#[derive(Clone, Default)]
struct Left(Arc<Mutex<Option<Duration>>>);

impl Left {
    fn set(&self, left: Option<Duration>) {
        *self.0.lock().unwrap() = left;
    }
}

impl Leadership for Left {
    fn remaining(&self) -> Option<Duration> {
        *self.0.lock().unwrap()
    }

    fn changed(&self, _was_leading: bool) -> Changed<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_write_that_could_outlast_the_lease_is_not_sent_and_reads_are() {
    let limit = Duration::from_secs(10);
    let (left, sent) = (Left::default(), CallLog::default());
    // Gates are asked in order and told afterwards: the log hears only of calls that were sent.
    let options = ClientOptions::default()
        .call_limit(limit)
        .gate(FencingGate::new(left.clone(), limit))
        .gate(sent.clone());
    let fenced = client(shared().config(), &options).unwrap();
    let namespace = shared().namespace("fence");
    let plain: Api<ConfigMap> = Api::namespaced(shared().client(), &namespace);
    let fenced: Api<ConfigMap> = Api::namespaced(fenced, &namespace);
    let before = create(&plain, &config_map("a", "1")).await;

    for (remaining, why) in [
        (None, "not the leader"),
        (Some(limit.checked_sub(Duration::from_nanos(1)).unwrap()), "the lease ends before the call would"),
    ] {
        left.set(remaining);
        let value = Patch::Merge(json!({"data": {"value": "2"}}));
        let applied = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "2"}}));
        let refusals = [
            fenced.create(&PostParams::default(), &config_map("b", "1")).await.map(drop),
            fenced.replace("a", &PostParams::default(), &before).await.map(drop),
            fenced.patch("a", &PatchParams::default(), &value).await.map(drop),
            fenced.patch("a", &PatchParams::apply("test").force(), &applied).await.map(drop),
            fenced.delete("a", &DeleteParams::default()).await.map(drop),
            fenced.delete_collection(&DeleteParams::default(), &ListParams::default()).await.map(drop),
        ];
        for refusal in refusals {
            let text = refusal.unwrap_err().to_string();
            assert!(text.ends_with(why), "{text}");
        }
        assert_eq!(sent.take(), [], "nothing reached the network");
        assert!(fenced.get("a").await.is_ok() && fenced.list(&ListParams::default()).await.is_ok());
        let reads: Vec<String> = sent.take().iter().map(|call| call.verb.as_str().to_owned()).collect();
        assert_eq!(reads, ["get", "list"]);
    }
    let after = plain.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(after, [before], "nothing has changed");

    left.set(Some(limit));
    fenced.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
    assert!(plain.get("b").await.is_ok());
}

/// Counts reconciles by name.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<BTreeMap<String, usize>>>);

impl Counting {
    fn counts(&self) -> Vec<(String, usize)> {
        self.0.lock().unwrap().clone().into_iter().collect()
    }
}

impl Reconcile for Counting {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled> {
        *self.0.lock().unwrap().entry(key.name.clone()).or_default() += 1;
        Ok(Settled::done())
    }
}

#[tokio::test]
async fn each_time_we_begin_to_lead_every_root_is_looked_at_once() {
    let namespace = shared().namespace("roots");
    let api: Api<ConfigMap> = Api::namespaced(shared().client(), &namespace);
    for name in ["a", "b", "c"] {
        create(&api, &config_map(name, "1")).await;
    }
    let stop = CancellationToken::new();
    let maps = WatchBuilder::new("configmaps", api.clone()).start(&stop);
    let (lead, leadership) = tokio::sync::watch::channel(true);
    let counting = Counting::default();
    let controller = ControllerBuilder::new("roots").roots(&maps, |_| true);
    let queue = controller.queue();
    let running = tokio::spawn(controller.run(counting.clone(), leadership, stop.clone()));
    let times = |a, b, c| vec![("a".to_owned(), a), ("b".to_owned(), b), ("c".to_owned(), c)];
    let all_at = async |what: &str, expected: Vec<(String, usize)>| {
        eventually(what, async || counting.counts() == expected && queue.depth() == 0).await;
    };
    all_at("everything is looked at", times(1, 1, 1)).await;

    // Nothing changes, but whoever led meanwhile may have left anything half done.
    lead.send(false).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    lead.send(true).unwrap();
    all_at("everything is looked at again", times(2, 2, 2)).await;

    // What a follower hears and what it looks at anyway are one look, and no look before it leads.
    lead.send(false).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    api.patch("b", &PatchParams::default(), &Patch::Merge(json!({"data": {"value": "2"}}))).await.unwrap();
    eventually("the change is queued", async || queue.depth() == 1).await;
    assert_eq!(counting.counts(), times(2, 2, 2));
    lead.send(true).unwrap();
    all_at("everything is looked at a third time", times(3, 3, 3)).await;
    stop.cancel();
    assert_eq!(running.await.unwrap().done, 9);
}

//! A crash sweep in one process: a toy controller is killed after every write it makes, with and without the answer.
//!
//! The toy turns a root config map into one child per letter, removes children that are no longer wanted, and keeps a
//! finalizer. It uses the real loop, watches and applier; only the client's fault layer is different from production.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hangar_kit::{
    Error, ObjectKey, Result,
    apply::Applier,
    call::{
        Call, Verb,
        fault::{CallPoint, Strike},
    },
    controller::{ControllerBuilder, Load, Observer, Reconcile, Settled, Verdict},
    finalizer,
    leadership::Always,
    watch::{Kept, Watch, WatchBuilder},
};
use hangar_plan::flow::{Read, Unknown};
use hangar_testbed::{
    shared,
    sweep::{Case, Extent, Failure, Manager, Scenario, Sweep},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{config_map, create, labelled, owned};

const FINALIZER: &str = "hangar.cluster.x-k8s.io/toy";

/// How careful the toy is.
#[derive(Clone, Copy, PartialEq)]
enum Care {
    /// Finds its children by owner; their names come from their root.
    ByOwner,
    /// Believes only what it noted on the root, and invents names.
    ByNote,
}

struct Toy {
    client: Client,
    maps: Watch<ConfigMap>,
    care: Care,
}

fn undecidable(unknown: Unknown) -> Error {
    Error::Undecidable { what: "what is left over".to_owned(), unknown }
}

impl Toy {
    fn api(&self, key: &ObjectKey) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), key.namespace_or_empty())
    }

    async fn careful(&self, api: &Api<ConfigMap>, root: &Kept<ConfigMap>) -> Result<()> {
        let letters = root.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default();
        let mut wanted = BTreeSet::new();
        for letter in letters.chars() {
            let name = format!("{}-{letter}", root.key.name);
            let key = ObjectKey { namespace: root.key.namespace.clone(), name: name.clone() };
            let desired = owned(labelled(config_map(&name, &letter.to_string()), &[("toy", "child")]), root);
            let seen = self.maps.get(&key);
            let live = seen.as_ref().map(|kept| &kept.value);
            let applied = Applier::new("toy").apply(api, &desired, live).await?;
            if let Some(object) = applied.object() {
                self.maps.written(object);
            }
            wanted.insert(key);
        }
        let children = ObjectKey { namespace: root.key.namespace.clone(), name: "child".to_owned() };
        for kept in self.maps.by_label("toy", &children).known().map_err(undecidable)? {
            let is_ours = kept.owners.iter().any(|owner| owner.uid == root.uid);
            if is_ours && !kept.is_terminating && !wanted.contains(&kept.key) {
                let failed = |source| Error::api("delete a child", source);
                api.delete(&kept.key.name, &DeleteParams::default()).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    async fn careless(&self, api: &Api<ConfigMap>, root: &Kept<ConfigMap>) -> Result<()> {
        if root.metadata.annotations.iter().flatten().any(|(name, _)| name == "noted") {
            return Ok(());
        }
        let mut child = owned(labelled(config_map("", "x"), &[("toy", "child")]), root);
        child.metadata.name = None;
        child.metadata.generate_name = Some("child-".to_owned());
        let failed = |source| Error::api("create a child", source);
        api.create(&PostParams::default(), &child).await.map_err(failed)?;
        let note = Patch::Merge(json!({"metadata": {"annotations": {"noted": "yes"}}}));
        let noted = api.patch(&root.key.name, &PatchParams::default(), &note).await.map_err(failed)?;
        self.maps.written(noted);
        Ok(())
    }
}

impl Reconcile for Toy {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled> {
        let api = self.api(key);
        let Read::One(root) = self.maps.get(key) else {
            return Ok(Settled::done());
        };
        if let Some(changed) = finalizer::add(&api, &root.value, FINALIZER).await? {
            self.maps.written(changed);
            // The written object has come back to us by the queue.
            return Ok(Settled::done());
        }
        match self.care {
            Care::ByOwner => self.careful(&api, &root).await?,
            Care::ByNote => self.careless(&api, &root).await?,
        }
        Ok(Settled::done())
    }
}

/// What the loop says about itself.
#[derive(Default)]
struct Progress {
    done: AtomicUsize,
    busy: AtomicUsize,
}

impl Progress {
    /// True when it has looked at everything and has nothing to do.
    fn is_at_rest(&self) -> bool {
        self.done.load(Ordering::SeqCst) > 0 && self.busy.load(Ordering::SeqCst) == 0
    }
}

impl Observer for Progress {
    fn reconciled(&self, _: &'static str, _: &ObjectKey, verdict: Verdict, _: Duration) {
        if verdict == Verdict::Done {
            self.done.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn load(&self, _: &'static str, load: Load) {
        self.busy.store(load.ready + load.running + load.failing, Ordering::SeqCst);
    }
}

/// The toy in a namespace with a root that wants `ab` and, for the careful one, still has a child `c`.
struct Toys(Care);

impl Scenario for Toys {
    type World = String;
    type State = Vec<String>;

    async fn prepare(&self) -> String {
        let namespace = shared().namespace("crash");
        let api: Api<ConfigMap> = Api::namespaced(shared().client(), &namespace);
        let root = create(&api, &labelled(config_map("root", "ab"), &[("toy", "root")])).await;
        if self.0 == Care::ByOwner {
            create(&api, &owned(labelled(config_map("root-c", "c"), &[("toy", "child")]), &root)).await;
        }
        namespace
    }

    fn aliases(&self, namespace: &String) -> Vec<(String, String)> {
        vec![(namespace.clone(), "ns".to_owned())]
    }

    fn manager(&self, namespace: &String, client: Client) -> Manager {
        // Never cancelled: the kill does not depend on anybody's good will.
        let stop = CancellationToken::new();
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let maps = WatchBuilder::new("configmaps", api).labels("toy").index_label("toy").start(&stop);
        let is_root = |kept: &Arc<Kept<ConfigMap>>| kept.labels.get("toy").is_some_and(|role| role == "root");
        let progress = Arc::new(Progress::default());
        let controller =
            ControllerBuilder::new("toy").observer(progress.clone()).watches(&maps, move |change| {
                let sides = change.before.iter().chain(&change.after);
                if sides.clone().any(is_root) { change.itself() } else { change.controllers::<ConfigMap>() }
            });
        let toy = Toy { client, maps, care: self.0 };
        let main = async move {
            controller.run(toy, Always, stop).await;
        };
        Manager::new(main, move || progress.is_at_rest())
    }

    /// Everything in the namespace that matters, without what differs from run to run.
    async fn snapshot(&self, namespace: &String) -> Vec<String> {
        let api: Api<ConfigMap> = Api::namespaced(shared().client(), namespace);
        let all = api.list(&ListParams::default().labels("toy")).await.unwrap();
        let mut state: Vec<String> = all.items.into_iter().map(describe).collect();
        state.sort();
        state
    }

    /// Nobody else acts here.
    fn is_end(&self, _: &Vec<String>) -> bool {
        true
    }
}

fn describe(map: ConfigMap) -> String {
    let name = map.metadata.name.unwrap_or_default();
    let role = &map.metadata.labels.as_ref().unwrap()["toy"];
    // An invented name says nothing; that there is one more object does.
    let name = if map.metadata.generate_name.is_some() { "*".to_owned() } else { name };
    let owners: Vec<String> =
        map.metadata.owner_references.into_iter().flatten().map(|owner| owner.name).collect();
    let finalizers = map.metadata.finalizers.unwrap_or_default();
    format!("{role} {name} {:?} owners {owners:?} finalizers {finalizers:?}", map.data.unwrap_or_default())
}

fn all() -> Sweep {
    Sweep::new(shared().config(), Extent::All)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_after_any_call_leads_to_the_same_objects() {
    let report = all().run(&Toys(Care::ByOwner)).await.unwrap();
    let names: Vec<String> = report.points.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "patch configmaps ns/root #1",
            "apply configmaps ns/root-a #1",
            "apply configmaps ns/root-b #1",
            "delete configmaps ns/root-c #1",
        ]
    );
    assert_eq!((report.tried.len(), report.left_out()), (8, 0));
    assert_eq!(report.verdict(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_trusts_its_notes_is_caught() {
    let report = all().run(&Toys(Care::ByNote)).await.unwrap();
    let caught: Vec<String> = report
        .failures
        .iter()
        .filter(|(_, failure)| matches!(failure, Failure::Differs { .. }))
        .map(|(case, _)| case.to_string())
        .collect();
    let create = "create configmaps ns/child-* #1";
    assert_eq!(caught, [format!("{create} (AfterAnswer)"), format!("{create} (BeforeAnswer)")]);
    // The other writes repeat themselves harmlessly.
    assert_eq!((report.failures.len(), report.tried.len()), (2, 6), "{:?}", report.verdict());
    let text = report.verdict().unwrap_err();
    assert!(text.starts_with("2 of 6 cases at 3 writes:\n- create configmaps"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_point_that_never_comes_is_an_error() {
    let call = Call {
        verb: Verb::Apply,
        resource: "configmaps".to_owned(),
        namespace: Some("ns".to_owned()),
        name: Some("root-z".to_owned()),
        is_dry_run: false,
    };
    let case = Case { point: CallPoint { call, occurrence: 1 }, strike: Strike::AfterAnswer };
    let failure = all().strike(&Toys(Care::ByOwner), &case, &Vec::new()).await.unwrap_err();
    assert!(matches!(failure, Failure::NeverFired(_)), "{failure:?}");
    let text = failure.to_string();
    assert!(text.starts_with("armed at \"apply configmaps ns/root-z #1\""), "{text}");
    assert!(text.contains("apply configmaps ns/root-a #1"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_is_over_leaves_cases_out_but_never_all() {
    let extent = Extent::Sample { cases: 5, budget: Duration::ZERO, seed: 3 };
    let report = Sweep::new(shared().config(), extent).run(&Toys(Care::ByOwner)).await.unwrap();
    assert_eq!((report.tried.len(), report.left_out()), (1, 4));
    assert_eq!(report.verdict(), Ok(()));
}

/// A manager that writes twice in its first life, and once in the others, as one that sees more together.
struct Sometimes(Arc<AtomicUsize>);

impl Scenario for Sometimes {
    type World = String;
    type State = usize;

    async fn prepare(&self) -> String {
        let namespace = shared().namespace("sometimes");
        create(&Api::namespaced(shared().client(), &namespace), &config_map("root", "")).await;
        namespace
    }

    fn aliases(&self, namespace: &String) -> Vec<(String, String)> {
        vec![(namespace.clone(), "ns".to_owned())]
    }

    fn manager(&self, namespace: &String, client: Client) -> Manager {
        let api: Api<ConfigMap> = Api::namespaced(client, namespace);
        let writes = if self.0.fetch_add(1, Ordering::SeqCst) == 0 { 2 } else { 1 };
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let main = async move {
            for _ in 0..writes {
                let value = Patch::Merge(json!({"data": {"value": "written"}}));
                let _ = api.patch("root", &PatchParams::default(), &value).await;
            }
            done.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
        };
        Manager::new(main, move || is_done.load(Ordering::SeqCst))
    }

    async fn snapshot(&self, namespace: &String) -> usize {
        let api: Api<ConfigMap> = Api::namespaced(shared().client(), namespace);
        api.list(&ListParams::default()).await.unwrap().items.len()
    }

    fn is_end(&self, _: &usize) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repetition_that_does_not_come_again_is_told_and_no_error() {
    let report = all().run(&Sometimes(Arc::default())).await.unwrap();
    assert_eq!(report.verdict(), Ok(()));
    let text = "2 cases at 2 writes (2 more at repetitions that did not come again)";
    assert_eq!(report.to_string(), text);
}

/// A manager that ends by itself, one that never has to write, and one that never gets where it should.
#[derive(PartialEq)]
enum Idle {
    Ending,
    Content,
    Stuck,
}

impl Scenario for Idle {
    type World = ();
    type State = ();

    async fn prepare(&self) {}

    fn aliases(&self, (): &()) -> Vec<(String, String)> {
        Vec::new()
    }

    fn manager(&self, (): &(), _: Client) -> Manager {
        let ends = *self == Self::Ending;
        let main = async move {
            if !ends {
                std::future::pending::<()>().await;
            }
        };
        Manager::new(main, || true)
    }

    async fn snapshot(&self, (): &()) {}

    fn is_end(&self, (): &()) -> bool {
        *self != Self::Stuck
    }
}

#[tokio::test]
async fn a_sweep_that_compares_nothing_is_an_error() {
    let ended = all().run(&Idle::Ending).await.unwrap_err();
    assert!(matches!(ended, Failure::Ended { .. }), "{ended:?}");
    let idle = all().run(&Idle::Content).await.unwrap_err();
    assert!(matches!(idle, Failure::NothingToStrike), "{idle:?}");
    let stuck = all().patience(Duration::from_secs(5)).run(&Idle::Stuck).await.unwrap_err();
    assert!(matches!(stuck, Failure::Unfinished { .. }), "{stuck:?}");
}

//! Keeps stores of the kinds of other projects that a management cluster may have (`hangar_plan::neighbours`).
//!
//! The store of a kind is started when its CRD is there, and ended when that goes. Of each object its text is kept: there
//! are four for each control plane, and a parsed one takes much more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::metrics::WatchMetrics;
use hangar_kit::queue::WorkQueue;
use hangar_kit::watch::{Change, Kept, Watch, WatchBuilder};
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::Read;
use hangar_plan::neighbours::Neighbour;
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::kinds::Text;
use super::{Kind, Reach};
use crate::contracts::Contracts;

/// What is wrong with an object in the words of whoever enforces it: its condition `Valid` is False.
type Problem = Option<String>;

type Mapper = Arc<dyn Fn(&Change<Text<Problem>>) -> Vec<ObjectKey> + Send + Sync>;

/// Stores of the kinds that are there.
pub(crate) struct Neighbours {
    reach: Reach,
    metrics: WatchMetrics,
    contracts: Contracts,
    stop: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kinds: BTreeMap<Neighbour, (Watch<DynamicObject, Text<Problem>>, DropGuard)>,
    subscribers: Vec<(WorkQueue<ObjectKey>, Mapper)>,
}

impl Neighbours {
    pub(super) fn new(
        reach: Reach,
        metrics: WatchMetrics,
        contracts: Contracts,
        stop: CancellationToken,
    ) -> Self {
        Self { reach, metrics, contracts, stop, state: Mutex::default() }
    }

    /// Adds keys to a queue for each change of each of these kinds, and all keys when a kind comes or goes.
    pub(crate) fn feed(
        &self,
        queue: &WorkQueue<ObjectKey>,
        mapper: impl Fn(&Change<Text<Problem>>) -> Vec<ObjectKey> + Send + Sync + 'static,
        all: impl Fn() -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) {
        let mapper: Mapper = Arc::new(mapper);
        let mut state = self.state();
        for (watch, _) in state.kinds.values() {
            subscribe(watch, queue, &mapper);
        }
        state.subscribers.push((queue.clone(), mapper));
        let queue = queue.clone();
        self.contracts.on_neighbours(move || all().into_iter().for_each(|key| queue.add(key)));
    }

    /// The objects of a Cluster. Absent: there is no such kind.
    pub(crate) fn of_cluster(
        &self,
        kind: Neighbour,
        cluster: &ObjectKey,
    ) -> Read<Vec<Arc<Kept<Text<Problem>>>>> {
        let watch = match self.watch(kind) {
            Read::One(watch) => watch,
            Read::Unknown(unknown) => return Read::Unknown(unknown),
            Read::Absent | Read::Many(_) => return Read::Absent,
        };
        watch.by_label(CLUSTER_NAME_LABEL, cluster).known().map_or_else(Read::Unknown, Read::One)
    }

    /// True while a kind that is there, or whether it is, is being listed for the first time.
    pub(crate) fn is_starting(&self) -> bool {
        let is_starting =
            |watch: &Watch<DynamicObject, Text<Problem>>| !watch.is_synced() && watch.stats().errors == 0;
        self.contracts.is_starting()
            || Neighbour::ALL.into_iter().any(|kind| self.watch(kind).iter().any(is_starting))
    }

    /// Returns when every kind that is there is listed, or one cannot be.
    pub(super) async fn listed(&self) -> Result<(), Error> {
        for kind in Neighbour::ALL {
            if let Read::One(watch) = self.watch(kind) {
                watch.listed().await?;
            }
        }
        Ok(())
    }

    /// A kind that is there, for writing.
    pub(super) fn kind(&self, group: &str, kind: &str) -> Option<Read<Kind>> {
        let found = Neighbour::ALL.into_iter().find(|one| one.group() == group && one.kind() == kind)?;
        Some(self.watch(found).map(|watch| Kind::new(resource(found), vec![Box::new(watch)])))
    }

    /// The store of a kind, which is started or ended as its CRD is there or not.
    fn watch(&self, kind: Neighbour) -> Read<Watch<DynamicObject, Text<Problem>>> {
        let mut state = self.state();
        match self.contracts.has(kind) {
            Read::Unknown(unknown) => return Read::Unknown(unknown),
            Read::Absent | Read::Many(_) => {
                state.kinds.remove(&kind);
                return Read::Absent;
            }
            Read::One(()) => {}
        }
        if let Some((watch, _)) = state.kinds.get(&kind) {
            return Read::One(watch.clone());
        }
        let stop = self.stop.child_token();
        let builder = WatchBuilder::over(kind.plural(), self.reach.dynamic(&resource(kind)));
        let builder = builder.index_label(CLUSTER_NAME_LABEL).labels(CLUSTER_NAME_LABEL);
        let watch = builder.project(&stop, |object| text(&object));
        let counted = watch.clone();
        self.metrics.add(watch.name(), move || counted.stats());
        for (queue, mapper) in &state.subscribers {
            subscribe(&watch, queue, mapper);
        }
        state.kinds.insert(kind, (watch.clone(), stop.drop_guard()));
        Read::One(watch)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn subscribe(watch: &Watch<DynamicObject, Text<Problem>>, queue: &WorkQueue<ObjectKey>, mapper: &Mapper) {
    let mapper = Arc::clone(mapper);
    watch.feed(queue, move |change| mapper(change));
}

fn resource(kind: Neighbour) -> ApiResource {
    ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

fn text(object: &DynamicObject) -> Text<Problem> {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let is_invalid = |condition: &&Value| condition["type"] == "Valid" && condition["status"] == "False";
    let problem = conditions.into_iter().flatten().find(is_invalid);
    let problem = problem.map(|found| found["message"].as_str().unwrap_or("it is not valid").to_owned());
    Text::new(object, problem)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_kept_without_its_status_and_with_what_is_wrong() {
        let object = |status: Value| -> DynamicObject {
            serde_json::from_value(json!({
                "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
                "metadata": {"name": "a"}, "spec": {"endpointSelector": {}}, "status": status,
            }))
            .unwrap()
        };
        let valid =
            |status: &str| json!({"conditions": [{"type": "Valid", "status": status, "message": "no"}]});
        assert_eq!(text(&object(valid("True"))).facts, None);
        assert_eq!(text(&object(json!(null))).facts, None);
        let kept = text(&object(valid("False")));
        assert_eq!(kept.facts.as_deref(), Some("no"));
        assert!(!kept.object.contains("status") && kept.object.contains("endpointSelector"));
    }
}

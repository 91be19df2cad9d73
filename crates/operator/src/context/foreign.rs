//! Keeps stores of the objects that references name, whatever controller owns their kind.
//!
//! A Cluster refers to its infrastructure and control plane, and a Machine to its bootstrap configuration and server,
//! by group and kind alone. The labels of the kind's CRD say which version to read, and by which contract. The store of
//! a kind is started when the first reference names it; from then on its changes wake the controllers that subscribed
//! to foreign objects.
//!
//! Of an object only what the contract names is kept, and of a template what is cloned: many of these kinds have a store
//! of their own beside this one, and their objects may hold whole files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_api::contract::{Choice, Contract};
use hangar_api::naming;
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_kit::metrics::WatchMetrics;
use hangar_kit::queue::WorkQueue;
use hangar_kit::watch::{Change, Kept, Watch, WatchBuilder};
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::Read;
use hangar_plan::machine_set::clone_kind;
use hangar_plan::referred::{Referred, contract_fields};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::kinds::Partial;
use super::{Kind, Reach};
use crate::contracts::Contracts;

type Mapper = Arc<dyn Fn(&Change<DynamicObject>) -> Vec<ObjectKey> + Send + Sync>;

/// Stores of foreign kinds.
pub(crate) struct Foreign {
    reach: Reach,
    metrics: WatchMetrics,
    contracts: Contracts,
    stop: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kinds: BTreeMap<(String, String, String), Watch<DynamicObject>>,
    subscribers: Vec<(WorkQueue<ObjectKey>, Mapper)>,
}

impl Foreign {
    pub(super) fn new(
        reach: Reach,
        metrics: WatchMetrics,
        contracts: Contracts,
        stop: CancellationToken,
    ) -> Self {
        Self { reach, metrics, contracts, stop, state: Mutex::default() }
    }

    /// Adds keys to a queue for each change of each foreign kind, also of those that are named later.
    pub(crate) fn feed(
        &self,
        queue: &WorkQueue<ObjectKey>,
        mapper: impl Fn(&Change<DynamicObject>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        let mapper: Mapper = Arc::new(mapper);
        let mut state = self.state();
        for watch in state.kinds.values() {
            subscribe(watch, queue, &mapper);
        }
        state.subscribers.push((queue.clone(), mapper));
    }

    /// The version and contract of a kind, if its CRD names one.
    pub(crate) fn choice(&self, group: &str, kind: &str) -> Read<Choice> {
        self.contracts.choice(group, kind)
    }

    /// How to call the API of a kind.
    pub(crate) fn resource(&self, group: &str, kind: &str) -> Read<ApiResource> {
        self.choice(group, kind).map(|choice| resource(group, kind, &choice.version))
    }

    /// The object that a reference names, as plans see it.
    pub(crate) fn get(
        &self,
        namespace: &str,
        reference: &ContractVersionedObjectReference,
    ) -> Read<Referred> {
        self.kept(namespace, reference)
            .map(|(kept, contract)| Referred::new(kept.metadata.clone(), &kept.data, contract))
    }

    /// The same as the store of its kind shows it, with how to read it.
    pub(crate) fn kept(
        &self,
        namespace: &str,
        reference: &ContractVersionedObjectReference,
    ) -> Read<(Arc<Kept<DynamicObject>>, Contract)> {
        let choice = match self.choice(&reference.api_group, &reference.kind) {
            Read::One(choice) => choice,
            Read::Unknown(unknown) => return Read::Unknown(unknown),
            Read::Absent | Read::Many(_) => {
                let name = naming::custom_resource(&reference.api_group, &reference.kind);
                return Read::unknown(format!(
                    "the CRD {name} is not installed, or names no contract version"
                ));
            }
        };
        let resource = resource(&reference.api_group, &reference.kind, &choice.version);
        let key = ObjectKey { namespace: Some(namespace.to_owned()), name: reference.name.clone() };
        self.watch(&resource).get(&key).map(|object| (object, choice.contract))
    }

    /// The store of a kind, for read-your-writes and for lists.
    pub(crate) fn watch(&self, resource: &ApiResource) -> Watch<DynamicObject> {
        let kind = (resource.group.clone(), resource.kind.clone(), resource.version.clone());
        let mut state = self.state();
        if let Some(watch) = state.kinds.get(&kind) {
            return watch.clone();
        }
        let name = format!("foreign-{}", resource.plural);
        let is_template = clone_kind(&resource.kind).is_some();
        let essence = move |object| essence(object, is_template);
        let watch = WatchBuilder::over(name, self.reach.dynamic(resource)).project(&self.stop, essence);
        let counted = watch.clone();
        self.metrics.add(watch.name(), move || counted.stats());
        for (queue, mapper) in &state.subscribers {
            subscribe(&watch, queue, mapper);
        }
        state.kinds.insert(kind, watch.clone());
        watch
    }

    /// Returns when every store that was started is listed, or one cannot be.
    pub(super) async fn listed(&self) -> Result<(), Error> {
        let started: Vec<Watch<DynamicObject>> = self.state().kinds.values().cloned().collect();
        for watch in started {
            watch.listed().await?;
        }
        Ok(())
    }

    /// A kind by the contract of its CRD; its store is started.
    pub(super) fn kind(&self, group: &str, kind: &str) -> Read<Kind> {
        self.resource(group, kind).map(|resource| {
            let store = self.watch(&resource);
            Kind::new(resource, vec![Box::new(Partial(store))])
        })
    }

    /// The stores of a kind that references have started, in whatever version.
    pub(super) fn started(&self, group: &str, kind: &str) -> Vec<Watch<DynamicObject>> {
        let state = self.state();
        let of_kind = state.kinds.iter().filter(|((g, k, _), _)| g == group && k == kind);
        of_kind.map(|(_, watch)| watch.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept of an object.
fn essence(mut object: DynamicObject, is_template: bool) -> DynamicObject {
    object.data = if is_template {
        json!({ "spec": { "template": object.data.pointer_mut("/spec/template").map(Value::take) } })
    } else {
        contract_fields(&object.data)
    };
    object
}

fn subscribe(watch: &Watch<DynamicObject>, queue: &WorkQueue<ObjectKey>, mapper: &Mapper) {
    let mapper = Arc::clone(mapper);
    watch.feed(queue, move |change| mapper(change));
}

fn resource(group: &str, kind: &str, version: &str) -> ApiResource {
    let name = naming::custom_resource(group, kind);
    let plural = name.split('.').next().unwrap_or_default().to_owned();
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_not_kept_twice() {
        let object = |spec: Value| -> DynamicObject {
            let metadata = json!({"name": "a", "labels": {"x": "y"}});
            let status = json!({"dataSecretName": "a", "initialization": {"dataSecretCreated": true}});
            serde_json::from_value(
                json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
                "metadata": metadata, "spec": spec, "status": status}),
            )
            .unwrap()
        };
        let files = json!([{"path": "/a", "content": "x".repeat(100_000)}]);
        let whole = object(json!({"files": files, "providerID": "p"}));
        let kept = essence(whole.clone(), false);
        let size = |object: &DynamicObject| serde_json::to_string(object).unwrap().len();
        assert!(size(&whole) > 100_000 && size(&kept) < 400, "{}", size(&kept));
        assert_eq!(kept.metadata, whole.metadata);
        let referred =
            |object: DynamicObject| Referred::new(object.metadata, &object.data, Contract::V1Beta2);
        assert_eq!(referred(kept), referred(whole), "plans see the same");
        let template = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"files": files}});
        let whole = object(json!({"template": template}));
        assert_eq!(
            essence(whole, true).data,
            json!({"spec": {"template": template}}),
            "what is cloned is kept"
        );
    }
}

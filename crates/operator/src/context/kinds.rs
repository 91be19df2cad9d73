//! Knows for every kind of the management cluster how to call its API and which stores have its objects. It works for
//! kinds without a Rust type, too.

use hangar_kit::ObjectKey;
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::flow::{Read, dynamic};
use k8s_openapi::api::core::v1::Secret;
use kube::Resource;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta, PartialObjectMetaExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::watches::SecretFacts;

/// A kind with its stores: more than one where it is known by its type and by references.
pub(crate) struct Kind {
    resource: ApiResource,
    stores: Vec<Box<dyn Store>>,
}

impl Kind {
    pub(super) fn new(resource: ApiResource, stores: Vec<Box<dyn Store>>) -> Self {
        Self { resource, stores }
    }

    /// With more stores of the same kind.
    pub(super) fn with(mut self, stores: Vec<Watch<DynamicObject>>) -> Self {
        self.stores.extend(stores.into_iter().map(|store| Box::new(Partial(store)) as Box<dyn Store>));
        self
    }

    /// How to call its API.
    pub(crate) fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.resource.kind
    }

    /// The version of an object, if a store shows exactly that one.
    pub(crate) fn version(&self, key: &ObjectKey, uid: &str) -> Option<String> {
        let seen = self.stores.iter().filter_map(|store| store.version(key));
        seen.filter(|(present, _)| present == uid).map(|(_, version)| version).next()
    }

    /// An object as the stores show it.
    pub(crate) fn object(&self, key: &ObjectKey) -> Read<DynamicObject> {
        let none = || Read::unknown(format!("objects of kind {} are not watched", self.resource.kind));
        self.stores.first().map_or_else(none, |store| store.object(key))
    }

    /// Shows the stores what the API server answered.
    pub(crate) fn written(&self, object: &DynamicObject) {
        for store in &self.stores {
            store.written(object);
        }
    }

    /// Tells the stores that an object is gone.
    pub(crate) fn removed(&self, key: &ObjectKey, uid: &str) {
        for store in &self.stores {
            store.removed(key, uid);
        }
    }
}

/// A store of one kind.
pub(super) trait Store: Send + Sync {
    /// Uid and version of an object.
    fn version(&self, key: &ObjectKey) -> Option<(String, String)>;
    fn object(&self, key: &ObjectKey) -> Read<DynamicObject>;
    /// It was written.
    fn written(&self, object: &DynamicObject);
    /// It is gone.
    fn removed(&self, key: &ObjectKey, uid: &str);
}

fn version<F>(read: &Read<std::sync::Arc<Kept<F>>>) -> Option<(String, String)> {
    read.iter().next().map(|kept| (kept.uid.clone(), kept.resource_version.clone()))
}

impl<K> Store for Watch<K>
where
    K: Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn version(&self, key: &ObjectKey) -> Option<(String, String)> {
        version(&self.get(key))
    }

    fn object(&self, key: &ObjectKey) -> Read<DynamicObject> {
        self.get(key).map(|kept| dynamic(&kept.value))
    }

    fn written(&self, object: &DynamicObject) {
        // What our types cannot read, the watch will not show either.
        if let Ok(object) = serde_json::to_value(object).and_then(serde_json::from_value::<K>) {
            Self::written(self, object);
        }
    }

    fn removed(&self, key: &ObjectKey, uid: &str) {
        Self::removed(self, key, uid);
    }
}

/// What is kept of an object that plans apply: what they decide from, and all but its status as text, to tell whether it is
/// still as it was applied. A parsed object takes several times as much memory, and there are dozens of each control plane.
pub(crate) struct Text<F> {
    pub(super) object: Box<str>,
    pub(crate) facts: F,
}

impl<F> Text<F> {
    pub(super) fn new(object: &impl Serialize, facts: F) -> Self {
        let mut object = serde_json::to_value(object).unwrap_or_default();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        Self { object: object.to_string().into(), facts }
    }
}

impl<K, F> Store for Watch<K, Text<F>>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    F: Send + Sync + 'static,
{
    fn version(&self, key: &ObjectKey) -> Option<(String, String)> {
        version(&self.get(key))
    }

    fn object(&self, key: &ObjectKey) -> Read<DynamicObject> {
        match self.get(key) {
            Read::One(kept) => serde_json::from_str(&kept.object)
                .map_or_else(|error: serde_json::Error| Read::unknown(error.to_string()), Read::One),
            Read::Unknown(unknown) => Read::Unknown(unknown),
            Read::Absent | Read::Many(_) => Read::Absent,
        }
    }

    fn written(&self, object: &DynamicObject) {
        // What our types cannot read, the watch will not show either.
        if let Ok(object) = serde_json::to_value(object).and_then(serde_json::from_value::<K>) {
            Self::written(self, object);
        }
    }

    fn removed(&self, key: &ObjectKey, uid: &str) {
        Self::removed(self, key, uid);
    }
}

/// What is kept of an object that others make: what plans decide from.
pub(crate) struct Facts<F>(pub(crate) F);

impl<K, F> Store for Watch<K, Facts<F>>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    F: Send + Sync + 'static,
{
    fn version(&self, key: &ObjectKey) -> Option<(String, String)> {
        version(&self.get(key))
    }

    fn object(&self, _: &ObjectKey) -> Read<DynamicObject> {
        Read::unknown("only facts of these objects are kept")
    }

    fn written(&self, object: &DynamicObject) {
        if let Ok(object) = serde_json::to_value(object).and_then(serde_json::from_value::<K>) {
            Self::written(self, object);
        }
    }

    fn removed(&self, key: &ObjectKey, uid: &str) {
        Self::removed(self, key, uid);
    }
}

/// A store of a kind that references name, which keeps a part of each object.
pub(super) struct Partial(pub(super) Watch<DynamicObject>);

impl Store for Partial {
    fn version(&self, key: &ObjectKey) -> Option<(String, String)> {
        Store::version(&self.0, key)
    }

    fn object(&self, _: &ObjectKey) -> Read<DynamicObject> {
        Read::unknown("only what the contract names is watched")
    }

    fn written(&self, object: &DynamicObject) {
        self.0.written(object.clone());
    }

    fn removed(&self, key: &ObjectKey, uid: &str) {
        self.0.removed(key, uid);
    }
}

/// Of Secrets only the metadata is kept.
impl Store for Watch<PartialObjectMeta<Secret>, SecretFacts> {
    fn version(&self, key: &ObjectKey) -> Option<(String, String)> {
        version(&self.get(key))
    }

    fn object(&self, _: &ObjectKey) -> Read<DynamicObject> {
        Read::unknown("the content of Secrets is not watched")
    }

    fn written(&self, object: &DynamicObject) {
        Self::written(self, object.metadata.clone().into_response_partial());
    }

    fn removed(&self, key: &ObjectKey, uid: &str) {
        Self::removed(self, key, uid);
    }
}

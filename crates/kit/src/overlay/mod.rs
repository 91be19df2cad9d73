//! A management cluster for previews: reads come from a base, and writes stay in memory.
//!
//! [`Overlay::client`] is an ordinary client without a connection of its own. A GET is answered from what was written
//! here, else from the base, which is empty (offline) or a live API server. Every write (create, merge, apply, status,
//! delete) changes a copy in memory. So the controllers run unchanged, over their real stores, and what they would have
//! written is the difference between the base and the copy ([`Overlay::written`]).
//!
//! Invariants
//! - One function asks the base, and it can send nothing but GET.
//! - Ids are derived from names: the same input leads to the same objects.
//! - Watches stay open and send nothing: the base stays as it was listed, and controllers see their own writes by
//!   read-your-writes.

mod answer;
mod fields;
mod request;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_api::conversion::{NoVersions, convert};
use hangar_api::naming;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub use request::Place;

use answer::Refusal;

/// What the API server does to an object before it keeps it: defaults of the schema and of webhooks.
pub type Admit = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Above every version of a real API server, so that what is written here is always newer.
const FIRST_VERSION: u64 = 1 << 60;

/// The cluster. Cloning shares it.
#[derive(Clone)]
pub struct Overlay {
    inner: Arc<Inner>,
}

struct Inner {
    base: Base,
    admit: Admit,
    now: Timestamp,
    state: Mutex<State>,
}

enum Base {
    /// Nothing is there but these.
    Memory(BTreeMap<Place, Value>),
    /// A live API server; only [`Overlay::base`] uses it.
    Live(Client),
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Place, Written>,
    log: Vec<Written>,
    versions: u64,
}

/// An object that was written, before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub place: Place,
    /// As the base has it; none when it is new.
    pub before: Option<Value>,
    /// As it is now; none when it was deleted.
    pub after: Option<Value>,
}

impl Overlay {
    /// Over nothing but some objects that are there from the beginning.
    pub fn offline(present: impl IntoIterator<Item = Value>, now: Timestamp, admit: Admit) -> Self {
        let present = present.into_iter().filter_map(|object| Some((Place::of(&object)?, object)));
        Self::new(Base::Memory(present.collect()), now, admit)
    }

    /// Over a live API server, which is only read.
    pub fn live(client: Client, now: Timestamp, admit: Admit) -> Self {
        Self::new(Base::Live(client), now, admit)
    }

    fn new(base: Base, now: Timestamp, admit: Admit) -> Self {
        Self { inner: Arc::new(Inner { base, admit, now, state: Mutex::default() }) }
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        let overlay = self.clone();
        let service = tower::service_fn(move |request| {
            let overlay = overlay.clone();
            async move { overlay.answer(request).await }
        });
        Client::new(service, "default")
    }

    /// Writes what people would apply. Fields that they applied before and no longer have are taken away.
    pub async fn give(&self, mut object: Value) -> Result<(), String> {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let Some(place) = Place::of(&object) else { return Err("it lacks its kind or its name".to_owned()) };
        let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let given = async {
            match self.current(&place, &version).await? {
                None => self.create(&place, object).await,
                Some(mut present) => {
                    let owned = fields::by_people(&present);
                    fields::apply(&mut present, &object, &owned);
                    self.put(&place, present).await
                }
            }
        };
        given.await.map(|_| ()).map_err(|refusal| refusal.message)
    }

    /// Takes everything written so far for what was there before.
    pub fn settle(&self) {
        let mut state = self.state();
        for written in state.objects.values_mut() {
            written.before.clone_from(&written.after);
        }
        state.log.clear();
    }

    /// How many writes there were.
    pub fn count(&self) -> usize {
        self.state().log.len()
    }

    /// The writes since there were so many, in order, each with what it found and what it left.
    pub fn since(&self, count: usize) -> Vec<Written> {
        self.state().log.iter().skip(count).cloned().collect()
    }

    /// Everything that differs from the base.
    pub fn written(&self) -> Vec<Written> {
        let differs = |written: &&Written| written.before != written.after;
        self.state().objects.values().filter(differs).cloned().collect()
    }

    /// An object as it is now, in a version of its API.
    pub async fn get(&self, place: &Place, api_version: &str) -> Result<Option<Value>, String> {
        self.current(place, api_version).await.map_err(|refusal| refusal.message)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One object, as writes here left it or as the base has it.
    async fn current(&self, place: &Place, api_version: &str) -> Result<Option<Value>, Refusal> {
        let written = self.state().objects.get(place).map(|written| written.after.clone());
        let found = match written {
            Some(written) => written,
            None => match &self.inner.base {
                Base::Memory(present) => present.get(place).cloned(),
                Base::Live(_) => self.base(&place.path(api_version)).await?,
            },
        };
        found.map(|object| in_version(object, api_version)).transpose()
    }

    /// Asks the live base. Nothing else does, and this sends nothing but GET.
    async fn base(&self, path: &str) -> Result<Option<Value>, Refusal> {
        let Base::Live(client) = &self.inner.base else { return Ok(None) };
        let request = http::Request::get(path).body(Vec::new()).map_err(Refusal::malformed)?;
        match client.request::<Value>(request).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(kube::Error::Api(status)) => Err(Refusal { code: status.code, ..Refusal::malformed(status) }),
            Err(error) => Err(Refusal { code: 503, ..Refusal::malformed(error) }),
        }
    }

    async fn create(&self, place: &Place, mut object: Value) -> Result<Value, Refusal> {
        // Only status writers give a status, and nobody chooses an identity.
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        for field in ["uid", "resourceVersion", "generation", "selfLink", "deletionTimestamp"] {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove(field);
            }
        }
        object["metadata"]["namespace"] = json!(place.namespace);
        object["metadata"]["uid"] = json!(uid(place));
        object["metadata"]["creationTimestamp"] = json!(self.inner.now.to_string());
        object["metadata"]["generation"] = json!(0);
        self.put(place, object).await
    }

    /// Keeps an object; the API server's part of its metadata follows from what was there.
    async fn put(&self, place: &Place, mut object: Value) -> Result<Value, Refusal> {
        (self.inner.admit)(&mut object);
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let present = self.current(place, &api_version).await?;
        let content = |object: &Value| {
            let fields = object.as_object().into_iter().flatten();
            let own = fields.filter(|(name, _)| !["metadata", "status"].contains(&name.as_str()));
            own.map(|(name, value)| (name.clone(), value.clone())).collect::<BTreeMap<_, _>>()
        };
        if present.as_ref().map(content) != Some(content(&object)) {
            let generation = object["metadata"]["generation"].as_u64().unwrap_or_default();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        let is_over = !object["metadata"]["deletionTimestamp"].is_null()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        let mut state = self.state();
        state.versions += 1;
        object["metadata"]["resourceVersion"] = json!((FIRST_VERSION + state.versions).to_string());
        let after = (!is_over).then(|| object.clone());
        let written = Written { place: place.clone(), before: present, after };
        state.log.push(written.clone());
        let after = written.after.clone();
        state.objects.entry(place.clone()).or_insert(written).after = after;
        Ok(object)
    }

    async fn delete(&self, place: &Place, api_version: &str, is_foreground: bool) -> Result<Value, Refusal> {
        let Some(mut object) = self.current(place, api_version).await? else {
            return Err(Refusal::absent(place));
        };
        if is_foreground {
            let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            finalizers.push(json!("foregroundDeletion"));
            object["metadata"]["finalizers"] = json!(finalizers);
        }
        object["metadata"]["deletionTimestamp"] = json!(self.inner.now.to_string());
        self.put(place, object).await
    }
}

/// The object in another version of its API, where it has several.
fn in_version(object: Value, api_version: &str) -> Result<Value, Refusal> {
    if api_version.is_empty() || object["apiVersion"].as_str().is_none_or(|present| present == api_version) {
        return Ok(object);
    }
    convert(object, api_version, &NoVersions).map_err(Refusal::malformed)
}

/// An id that follows from the name.
fn uid(place: &Place) -> String {
    let [bytes @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _]: [u8; 32] =
        Sha256::digest(place.to_string().as_bytes()).into();
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// The plural of a kind.
fn plural(kind: &str) -> String {
    let name = naming::custom_resource("", kind);
    name.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;

//! One watch per kind, shared by all controllers.
//!
//! kube's shared reflector streams drop deletions and never report what vanished between two lists, and one subscriber
//! that stops polling freezes all others. So the fan-out is ours, on top of [`mod@kube::runtime::watcher`]:
//!
//! - a store with indexes by chosen labels,
//! - one [`Change`] for every apply, delete **and** every difference that a new list shows, given to each subscriber as
//!   keys in a set ([`WorkQueue`]): a slow one costs its distinct keys and blocks no other,
//! - read-your-writes: [`Watch::written`] shows what a write returned until the watch has caught up, so that a second
//!   reconcile never plans from before the first one's writes,
//! - projection: the object is turned into something small before it is kept; managedFields are always dropped,
//! - unknown reads: a read is `Unknown` before the first list and while the connection has been broken for longer than
//!   [`WatchBuilder::stale_after`],
//! - unreadable objects: an object that its type cannot read ([`Unreadable`]) fails alone. It is not absent: reads of it,
//!   and of lists that it belongs to, are `Unknown`; all others go on,
//! - places: a watch is over everything, or over some namespaces ([`WatchBuilder::over`]). Each namespace is a list and a
//!   connection of its own, so one that cannot be read (its rights were taken away, it is being deleted) is unknown alone.
//!
//! Any kind works: typed, `DynamicObject` with its `ApiResource`, `PartialObjectMeta<K>` for metadata alone (Secrets).
//!
//! After an error the watch starts over with a list instead of resuming. The watcher reports nothing when a resumed
//! watch succeeds, so it would not be known when the store is fresh again; a list shows that, and errors are rare.

mod drive;
mod item;
mod place;
mod share;
mod store;

use std::{
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hangar_plan::flow::{Read, Unknown};
use kube::{Api, Resource, core::ObjectMeta, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Notify, watch as channel},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

pub use hangar_plan::unreadable::Unreadable;
pub use share::Common;
pub use store::{Change, Kept, Owner, WatchStats};

use crate::{Error, ObjectKey, Result, backoff::Backoff, queue::WorkQueue};
use item::Item;
use place::Place;
use share::Share;
use store::{Entry, Store};

/// A connection that is broken for less than this is not yet stale: an API server that restarts behind a load balancer
/// is back within it, and answering Unknown meanwhile would only make conditions flicker.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// Between two looks at a list that is under way.
const LOOK: Duration = Duration::from_millis(1);

/// Objects in a page of a watch whose server is not trusted: large ones still fit into a small answer.
const PAGE: u32 = 25;

/// A place that changes are offered to. Must not block. Says whether it still wants to hear.
type Sink<F> = Box<dyn Fn(&Change<F>) -> bool + Send + Sync>;

/// About how many bytes something takes.
type Size<F> = fn(&F) -> usize;

/// What a kind's watch has seen. Cloning shares it.
pub struct Watch<K, F = K> {
    shared: Arc<Shared<F>>,
    project: Arc<dyn Fn(K) -> F + Send + Sync>,
    named: Option<fn(&K) -> &str>,
}

impl<K, F> Clone for Watch<K, F> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), project: Arc::clone(&self.project), named: self.named }
    }
}

struct Shared<F> {
    name: String,
    indexed_labels: Vec<String>,
    stale_after: Duration,
    limit: Option<usize>,
    places: Vec<Place<F>>,
    share: Option<(Share, Size<F>)>,
    sinks: Mutex<Vec<Sink<F>>>,
    synced: channel::Sender<bool>,
    hurry: Notify,
}

/// How to watch a kind.
pub struct WatchBuilder<K> {
    name: String,
    apis: Vec<Api<K>>,
    config: watcher::Config,
    indexed_labels: Vec<String>,
    named: Option<fn(&K) -> &str>,
    stale_after: Duration,
    limit: Option<usize>,
    backoff: Backoff,
}

impl<K> WatchBuilder<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A watch over what an API handle reaches. The name appears in logs, metrics and reasons.
    pub fn new(name: impl Into<String>, api: Api<K>) -> Self {
        Self::over(name, [api])
    }

    /// A watch over several namespaces, each by an API handle of its own.
    pub fn over(name: impl Into<String>, apis: impl IntoIterator<Item = Api<K>>) -> Self {
        Self {
            name: name.into(),
            apis: apis.into_iter().collect(),
            // The server decides when it ends: after half an hour or more. A connection that died shows earlier, because the
            // server says something every minute (`call::layer`).
            config: watcher::Config::default().timeout(0),
            indexed_labels: Vec::new(),
            named: None,
            stale_after: STALE_AFTER,
            limit: None,
            // Quicker than a reconcile's: an API server is back within seconds, and everybody waits for this.
            backoff: Backoff {
                first: Duration::from_millis(200),
                limit: Duration::from_secs(30),
                ..Backoff::default()
            },
        }
    }

    /// Only objects with these labels. Children are watched by our label, never all of a kind.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.config = self.config.labels(selector);
        self
    }

    /// Only the object of this name: rights can be limited to it.
    #[must_use]
    pub fn only(mut self, name: &str) -> Self {
        self.config = self.config.fields(&format!("metadata.name={name}"));
        self
    }

    /// Allows [`Watch::by_label`] with this label.
    #[must_use]
    pub fn index_label(mut self, label: impl Into<String>) -> Self {
        self.indexed_labels.push(label.into());
        self
    }

    /// Indexes objects as if their labels had this value, whatever they have: people can take a label away, and an object
    /// would be missing among those it belongs to.
    #[must_use]
    pub fn named(mut self, name: fn(&K) -> &str) -> Self {
        self.named = Some(name);
        self
    }

    /// How long the connection may be broken before reads become `Unknown`.
    #[must_use]
    pub fn stale_after(mut self, length: Duration) -> Self {
        self.stale_after = length;
        self
    }

    /// How long to wait after errors.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// For a server that is not trusted: pages are small, more objects than this are an error, and so are objects whose
    /// names no API server would allow. Owners are not kept: an object may name any number of them. Of an object that
    /// cannot be read only its identity is.
    #[must_use]
    pub fn bounded(mut self, objects: usize) -> Self {
        self.limit = Some(objects);
        self.config = self.config.page_size(PAGE);
        self
    }

    /// Starts watching and keeps whole objects, without managedFields.
    pub fn start(self, stop: &CancellationToken) -> Watch<K> {
        self.project(stop, |object| object)
    }

    /// Starts watching and keeps what the function makes of each object.
    pub fn project<F>(
        self,
        stop: &CancellationToken,
        project: impl Fn(K) -> F + Send + Sync + 'static,
    ) -> Watch<K, F>
    where
        F: Send + Sync + 'static,
    {
        self.begin(stop, project, None)
    }

    /// The same, of objects that take no more than this watch's share of what all have in common.
    pub fn project_within<F>(
        self,
        stop: &CancellationToken,
        project: impl Fn(K) -> F + Send + Sync + 'static,
        common: &Common,
        size: fn(&F) -> usize,
    ) -> Watch<K, F>
    where
        F: Send + Sync + 'static,
    {
        self.begin(stop, project, Some((common.share(), size)))
    }

    fn begin<F>(
        self,
        stop: &CancellationToken,
        project: impl Fn(K) -> F + Send + Sync + 'static,
        share: Option<(Share, Size<F>)>,
    ) -> Watch<K, F>
    where
        F: Send + Sync + 'static,
    {
        let shared = Arc::new(Shared {
            name: self.name,
            indexed_labels: self.indexed_labels,
            stale_after: self.stale_after,
            limit: self.limit,
            places: self.apis.iter().map(|api| Place::new(api.namespace())).collect(),
            share,
            sinks: Mutex::new(Vec::new()),
            synced: channel::Sender::new(false),
            hurry: Notify::new(),
        });
        let watch = Watch { shared, project: Arc::new(project), named: self.named };
        for (place, api) in self.apis.into_iter().enumerate() {
            let (config, backoff) = (self.config.clone(), self.backoff.clone());
            tokio::spawn(drive::supervise(api, config, backoff, watch.at(place), stop.clone()));
        }
        watch
    }
}

impl<K, F> Watch<K, F>
where
    K: Resource + 'static,
    F: Send + Sync + 'static,
{
    /// The name given when it was built.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// True once the first list is complete. Of several namespaces: once each was listed or failed to be, and one was
    /// listed; the others are unknown until they are.
    pub fn is_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits for the first list. A controller starts only when all its watches are synced.
    pub async fn synced(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.shared.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Waits for the first list, but not beyond its first failure: for whoever looks once and goes.
    pub async fn listed(&self) -> Result<()> {
        while !self.is_synced() {
            let stats = self.stats();
            if stats.errors > 0 {
                let unknown = Unknown::new(stats.last_error.unwrap_or_default());
                return Err(Error::Undecidable { what: self.name().to_owned(), unknown });
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Tries a broken connection again within a second, however long the pause would be: a caller needs it.
    pub fn hurry(&self) {
        self.shared.hurry.notify_waiters();
    }

    /// Why reads are unknown now, if they are, anywhere.
    pub fn freshness(&self) -> Result<(), Unknown> {
        self.shared.places.iter().try_for_each(|place| self.shared.freshness(&place.read()))
    }

    /// One object by name. One that cannot be read is unknown.
    pub fn get(&self, key: &ObjectKey) -> Read<Arc<Kept<F>>> {
        self.select(key.namespace.as_deref(), |store| Ok(store.get(key)?.into_iter().collect()))
    }

    /// Everything that can be read, in key order: for whom to wake, and for reports. Unknown if nothing can be. Who decides
    /// from what is not there asks for a namespace or a label.
    pub fn all(&self) -> Read<Arc<Kept<F>>> {
        let (mut found, mut unknown) = (Vec::new(), None);
        for place in &self.shared.places {
            let store = place.read();
            match self.shared.freshness(&store) {
                Ok(()) => found.push(store.all()),
                Err(why) => unknown = Some(why),
            }
        }
        match unknown {
            Some(unknown) if found.is_empty() => Read::Unknown(unknown),
            _ => Read::found(found.concat()),
        }
    }

    /// Everything in a namespace, in key order. Unknown if one cannot be read and matters.
    pub fn in_namespace(
        &self,
        namespace: &Option<String>,
        matters: impl Fn(&Kept<Unreadable>) -> bool,
    ) -> Read<Arc<Kept<F>>> {
        self.select(namespace.as_deref(), |store| store.in_namespace(namespace.as_deref(), matters))
    }

    /// Everything in the namespace of a key whose indexed label has its name as value, in key order. Unknown if one of
    /// them cannot be read, or the label was not indexed.
    pub fn by_label(&self, label: &str, named: &ObjectKey) -> Read<Arc<Kept<F>>> {
        if !self.shared.indexed_labels.iter().any(|indexed| indexed == label) {
            return Read::unknown(format!("{} is not indexed by {label}", self.name()));
        }
        let namespace = named.namespace.as_deref();
        self.select(namespace, |store| store.by_label(namespace, label, &named.name))
    }

    /// The same, of those that cannot be read as well: whom to wake.
    pub fn keys_by_label(&self, label: &str, named: &ObjectKey) -> Vec<ObjectKey> {
        let namespace = named.namespace.as_deref();
        let Some(place) = self.shared.place(namespace) else { return Vec::new() };
        place.read().keys_by_label(namespace, label, &named.name).cloned().collect()
    }

    /// Everything that cannot be read, in key order.
    pub fn unreadable(&self) -> Vec<Arc<Kept<Unreadable>>> {
        self.shared.places.iter().flat_map(|place| place.read().unreadable()).collect()
    }

    /// An object that cannot be read; none if it can be, or does not exist.
    pub fn unreadable_one(&self, key: &ObjectKey) -> Option<Arc<Kept<Unreadable>>> {
        self.shared.place(key.namespace.as_deref())?.read().unreadable_one(key)
    }

    /// Makes the returned object of a write visible now. Replaced as soon as the watch has it or something newer.
    pub fn written(&self, object: K) {
        let entry = self.keep(Item::Readable(object));
        let Some(place) = self.shared.place(entry.key().namespace.as_deref()) else { return };
        let change = place.write().written(entry);
        self.shared.announce(change);
    }

    /// Hides an object whose deletion the API server has confirmed as final, until the watch agrees.
    pub fn removed(&self, key: &ObjectKey, uid: &str) {
        let Some(place) = self.shared.place(key.namespace.as_deref()) else { return };
        let change = place.write().removed(key, uid);
        self.shared.announce(change);
    }

    /// Adds keys to a queue for each change, beginning with all that exist. The function sees the object before and
    /// after, so that a child that moves from one owner to another wakes both; it must not block.
    pub fn feed(
        &self,
        queue: &WorkQueue<ObjectKey>,
        mapper: impl Fn(&Change<F>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        let queue = queue.clone();
        self.each(move |change| {
            for key in mapper(change) {
                queue.add(key);
            }
        });
    }

    /// Calls the function for each change, beginning with all that exist. It must not block.
    pub fn each(&self, call: impl Fn(&Change<F>) + Send + Sync + 'static) {
        self.offer_to(Box::new(move |change| {
            call(change);
            true
        }));
    }

    /// Counters of this watch.
    pub fn stats(&self) -> WatchStats {
        self.shared.places.iter().fold(WatchStats::default(), |sum, place| sum.and(place.read().stats()))
    }

    fn offer_to(&self, sink: Sink<F>) {
        // Changes are stored first and announced after, under this lock: one that is stored before we read is offered
        // twice, one that is stored later waits for the lock and finds the sink. None is lost.
        let present = {
            let mut sinks = self.shared.sinks.lock().unwrap_or_else(PoisonError::into_inner);
            let entries = |place: &Place<F>| place.read().entries().cloned().collect::<Vec<_>>();
            let present: Vec<Entry<F>> = self.shared.places.iter().flat_map(entries).collect();
            for entry in &present {
                sink(&Change::new(entry.key().clone(), None, Some(entry)));
            }
            sinks.push(sink);
            present.len()
        };
        tracing::trace!(watch = self.name(), present, "subscribed");
    }

    fn select(
        &self,
        namespace: Option<&str>,
        choose: impl FnOnce(&Store<F>) -> Result<Vec<Arc<Kept<F>>>, Unknown>,
    ) -> Read<Arc<Kept<F>>> {
        let Some(place) = self.shared.place(namespace) else {
            let (name, namespace) = (self.name(), namespace.unwrap_or_default());
            return Read::unknown(format!("{name}: the namespace {namespace} is not looked after"));
        };
        let store = place.read();
        match self.shared.freshness(&store).and_then(|()| choose(&store)) {
            Ok(found) => Read::found(found),
            Err(unknown) => Read::Unknown(unknown),
        }
    }

    /// Gives an object its part of the share.
    fn hold(&self, mut entry: Entry<F>) -> Result<Entry<F>, String> {
        if let Some((share, size)) = &self.shared.share {
            entry.hold(|value| share.take(size_of::<Kept<F>>() + value.map_or(0, size)))?;
        }
        Ok(entry)
    }

    fn keep(&self, mut item: Item<K>) -> Entry<F> {
        let metadata = item.meta_mut();
        metadata.managed_fields = None;
        if self.shared.limit.is_some() {
            metadata.owner_references = None;
        }
        let indexed = &self.shared.indexed_labels;
        match item {
            Item::Readable(object) => {
                let name = self.named.map(|name| name(&object).to_owned());
                Entry::readable(object, indexed, name.as_deref(), &*self.project)
            }
            Item::Unreadable(mut object) => {
                if self.shared.limit.is_some() {
                    let ObjectMeta { name, namespace, uid, resource_version, .. } = object.metadata;
                    object.metadata =
                        ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
                    object.conditions = Vec::new();
                }
                // Not what is wrong: that may quote the object. Its condition says it.
                tracing::warn!(watch = self.name(), name = object.metadata.name, "an object cannot be read");
                Entry::unreadable(*object, indexed)
            }
        }
    }
}

impl<F> Shared<F> {
    /// Where objects of a namespace are kept; none if it is not watched.
    fn place(&self, namespace: Option<&str>) -> Option<&Place<F>> {
        self.places.iter().find(|place| place.has(namespace))
    }

    fn freshness(&self, store: &Store<F>) -> Result<(), Unknown> {
        let name = &self.name;
        match (store.is_synced(), store.broken()) {
            (true, None) => Ok(()),
            (false, None) => Err(Unknown::new(format!("{name}: not listed yet"))),
            (false, Some((_, why))) => Err(Unknown::new(format!("{name}: not listed yet: {why}"))),
            (true, Some((since, why))) => {
                let length = Instant::now().duration_since(since);
                if length <= self.stale_after {
                    return Ok(());
                }
                // Not for how long: conditions repeat this, and would be written anew every second.
                Err(Unknown::new(format!("{name}: watch broken: {why}")))
            }
        }
    }

    /// Notifies all subscribers. The change is in the store already and no list will show it again, so one mapper that
    /// panics must not keep it from the others; it fails for its own keys alone.
    fn announce(&self, changes: impl IntoIterator<Item = Change<F>>) {
        let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            for sink in &*sinks {
                if catch_unwind(AssertUnwindSafe(|| sink(&change))).is_err() {
                    tracing::error!(watch = self.name, key = %change.key, "a mapper panicked");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

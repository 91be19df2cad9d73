//! The state behind a watch: objects, indexes, and what our own writes put over them.
//!
//! It is pure and synchronous; every method returns the changes it caused. Versions are compared as numbers, which the
//! API server guarantees for its own kinds; a version that is no number counts as newer, so nothing is ever stuck.
//!
//! Our own writes need two marks. A *written* object has a version that the watch may not have reached yet: older
//! events about it are ignored. A *removed* object leaves a tombstone for its uid. Both must survive lists, because a
//! list that began before our write does not contain it: each mark remembers the list round in which it was made and is
//! dropped by the first list that began later.
//!
//! Both marks end with an event about the object, so neither may be made after that event has come. Otherwise a
//! reconcile that hands in the answer of its write late, when the watch has already shown and deleted the object, would
//! leave an object that nothing ever removes. The API server sends events of a kind in the order of their versions, so
//! a write at or below the highest version seen is old and is ignored.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::Arc,
};

use hangar_api::reference::is_kind;
use hangar_plan::{flow::Unknown, unreadable::Unreadable};
use kube::{Resource, core::ObjectMeta};
use tokio::time::Instant;

use super::share::Held;
use crate::ObjectKey;

/// A kept object or what was made of it, with what the store needs to know.
#[derive(Clone, Debug)]
pub struct Kept<F> {
    pub key: ObjectKey,
    pub uid: String,
    /// Its version when it was seen.
    pub resource_version: String,
    /// Its owners, as named in its metadata.
    pub owners: Vec<Owner>,
    /// The values of the indexed labels it carries.
    pub labels: BTreeMap<String, String>,
    /// True while it waits for its finalizers.
    pub is_terminating: bool,
    /// The object, or its projection.
    pub value: F,
    /// Its part of the watch's share.
    held: Option<Arc<Held>>,
}

/// One owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    /// Its name; its namespace is that of the owned object.
    pub name: String,
    pub uid: String,
    /// True for the one owner that manages the object.
    pub is_controller: bool,
}

impl Owner {
    /// Whether it is of this kind.
    pub fn is<K: Resource<DynamicType = ()>>(&self) -> bool {
        is_kind::<K>(&self.api_version, &self.kind)
    }
}

impl<F> Deref for Kept<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.value
    }
}

impl<F> Kept<F> {
    pub(crate) fn new<K: Resource>(object: K, indexed: &[String], project: impl Fn(K) -> F) -> Self {
        Kept::about(object.meta(), indexed).holding(project(object))
    }

    fn holding<G>(self, value: G) -> Kept<G> {
        let Self { key, uid, resource_version, owners, labels, is_terminating, .. } = self;
        Kept { key, uid, resource_version, owners, labels, is_terminating, value, held: None }
    }

    /// The key of the owner that manages this object, if that is of the given kind.
    pub fn controller<K: Resource<DynamicType = ()>>(&self) -> Option<ObjectKey> {
        let owner = self.owners.iter().find(|owner| owner.is_controller && owner.is::<K>())?;
        Some(ObjectKey { namespace: self.key.namespace.clone(), name: owner.name.clone() })
    }
}

impl Kept<()> {
    fn about(meta: &ObjectMeta, indexed: &[String]) -> Self {
        let labels = meta.labels.as_ref();
        let labels = indexed.iter().filter_map(|name| {
            labels.and_then(|labels| labels.get(name)).map(|value| (name.clone(), value.clone()))
        });
        let owners = meta.owner_references.iter().flatten().map(|owner| Owner {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            is_controller: owner.controller.unwrap_or_default(),
        });
        Self {
            key: ObjectKey { namespace: meta.namespace.clone(), name: meta.name.clone().unwrap_or_default() },
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            owners: owners.collect(),
            labels: labels.collect(),
            is_terminating: meta.deletion_timestamp.is_some(),
            value: (),
            held: None,
        }
    }
}

/// An object of the store, whether it can be read or not.
#[derive(Debug)]
pub(super) enum Entry<F> {
    Readable(Arc<Kept<F>>),
    Unreadable(Arc<Kept<Unreadable>>),
}

impl<F> Clone for Entry<F> {
    fn clone(&self) -> Self {
        match self {
            Self::Readable(kept) => Self::Readable(Arc::clone(kept)),
            Self::Unreadable(kept) => Self::Unreadable(Arc::clone(kept)),
        }
    }
}

impl<F> Entry<F> {
    /// With a name, it is indexed by that instead of its labels.
    pub(super) fn readable<K: Resource>(
        object: K,
        indexed: &[String],
        name: Option<&str>,
        project: impl Fn(K) -> F,
    ) -> Self {
        let mut kept = Kept::new(object, indexed, project);
        if let Some(name) = name {
            kept.labels = indexed.iter().map(|label| (label.clone(), name.to_owned())).collect();
        }
        Self::Readable(Arc::new(kept))
    }

    pub(super) fn unreadable(object: Unreadable, indexed: &[String]) -> Self {
        Self::Unreadable(Arc::new(Kept::about(&object.metadata, indexed).holding(object)))
    }

    /// Takes what it holds, before anybody shares it. One that cannot be read is told apart by having no value.
    pub(super) fn hold(&mut self, take: impl Fn(Option<&F>) -> Result<Held, String>) -> Result<(), String> {
        let held = |held: Held| Some(Arc::new(held));
        match self {
            Self::Readable(kept) => {
                if let Some(kept) = Arc::get_mut(kept) {
                    kept.held = held(take(Some(&kept.value))?);
                }
            }
            Self::Unreadable(kept) => {
                if let Some(kept) = Arc::get_mut(kept) {
                    kept.held = held(take(None)?);
                }
            }
        }
        Ok(())
    }

    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::Readable(kept) => &kept.key,
            Self::Unreadable(kept) => &kept.key,
        }
    }

    fn uid(&self) -> &str {
        match self {
            Self::Readable(kept) => &kept.uid,
            Self::Unreadable(kept) => &kept.uid,
        }
    }

    fn resource_version(&self) -> &str {
        match self {
            Self::Readable(kept) => &kept.resource_version,
            Self::Unreadable(kept) => &kept.resource_version,
        }
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Readable(kept) => &kept.labels,
            Self::Unreadable(kept) => &kept.labels,
        }
    }

    fn version(&self) -> u64 {
        self.number().unwrap_or(u64::MAX)
    }

    fn number(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// The object, if it can be read.
    fn read(&self) -> Result<Arc<Kept<F>>, Unknown> {
        match self {
            Self::Readable(kept) => Ok(Arc::clone(kept)),
            Self::Unreadable(kept) => Err(Unknown::new(format!("{}: {}", kept.key, kept.why))),
        }
    }
}

/// One object's difference, from whatever source.
#[derive(Debug)]
pub struct Change<F> {
    pub key: ObjectKey,
    /// How it was last seen, none if it is new.
    pub before: Option<Arc<Kept<F>>>,
    /// How it is now, none if it is gone.
    pub after: Option<Arc<Kept<F>>>,
    /// What is known of it on a side, before or after, on which it cannot be read: that side is none.
    pub unreadable: Vec<Arc<Kept<Unreadable>>>,
}

impl<F> Clone for Change<F> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            unreadable: self.unreadable.clone(),
        }
    }
}

impl<F> Change<F> {
    pub(super) fn new(key: ObjectKey, before: Option<&Entry<F>>, after: Option<&Entry<F>>) -> Self {
        let readable = |side: Option<&Entry<F>>| side.and_then(|entry| entry.read().ok());
        let unreadable = before.into_iter().chain(after).filter_map(|entry| match entry {
            Entry::Readable(_) => None,
            Entry::Unreadable(kept) => Some(Arc::clone(kept)),
        });
        Self { key, before: readable(before), after: readable(after), unreadable: unreadable.collect() }
    }

    /// Whom it belongs to, before and after, whether it can be read or not.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        let readable = self.before.iter().chain(&self.after).flat_map(|kept| &kept.owners);
        readable.chain(self.unreadable.iter().flat_map(|kept| &kept.owners))
    }

    /// The changed object's own key: the mapper for a controller's root kind.
    pub fn itself(&self) -> Vec<ObjectKey> {
        vec![self.key.clone()]
    }

    /// The managing owners of that kind, before and after: the mapper for children.
    pub fn controllers<K: Resource<DynamicType = ()>>(&self) -> Vec<ObjectKey> {
        let managing = self.owners().filter(|owner| owner.is_controller && owner.is::<K>());
        let names: BTreeSet<&String> = managing.map(|owner| &owner.name).collect();
        self.beside(names)
    }

    /// Objects in the same namespace that an indexed label names, before and after.
    pub fn named_by(&self, label: &str) -> Vec<ObjectKey> {
        let readable = self.before.iter().chain(&self.after).map(|kept| &kept.labels);
        let labels = readable.chain(self.unreadable.iter().map(|kept| &kept.labels));
        let names: BTreeSet<&String> = labels.filter_map(|labels| labels.get(label)).collect();
        self.beside(names)
    }

    fn beside(&self, names: BTreeSet<&String>) -> Vec<ObjectKey> {
        let namespace = &self.key.namespace;
        names.into_iter().map(|name| ObjectKey { namespace: namespace.clone(), name: name.clone() }).collect()
    }
}

/// Counters of one watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchStats {
    pub objects: usize,
    /// Those of them that cannot be read.
    pub unreadable: usize,
    /// Events taken from the watch.
    pub events: u64,
    pub lists: u64,
    /// Objects that a list showed to be gone without a deletion seen.
    pub vanished: u64,
    /// Errors of the connection or the API server.
    pub errors: u64,
    /// The last of them.
    pub last_error: Option<String>,
}

impl WatchStats {
    /// Those of two places together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            objects: self.objects + other.objects,
            unreadable: self.unreadable + other.unreadable,
            events: self.events + other.events,
            lists: self.lists + other.lists,
            vanished: self.vanished + other.vanished,
            errors: self.errors + other.errors,
            last_error: other.last_error.or(self.last_error),
        }
    }
}

pub(super) struct Store<F> {
    objects: BTreeMap<ObjectKey, Entry<F>>,
    /// The keys of those that cannot be read: few, and asked for in every list.
    unreadable: BTreeSet<ObjectKey>,
    labels: BTreeMap<(String, String), BTreeSet<ObjectKey>>,
    /// The round in which our own write put the visible version there.
    written: BTreeMap<ObjectKey, u64>,
    tombstones: BTreeMap<ObjectKey, (String, u64)>,
    list: Option<BTreeMap<ObjectKey, Entry<F>>>,
    round: u64,
    /// The highest version that the watch, or the list it began with, has shown.
    reached: u64,
    synced: bool,
    broken: Option<(Instant, String)>,
    stats: WatchStats,
}

impl<F> Default for Store<F> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            labels: BTreeMap::new(),
            written: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            list: None,
            round: 0,
            reached: 0,
            synced: false,
            broken: None,
            stats: WatchStats::default(),
        }
    }
}

impl<F> Store<F> {
    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.objects.contains_key(key)
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Kept<F>>>, Unknown> {
        self.objects.get(key).map(Entry::read).transpose()
    }

    /// All that can be read.
    pub(super) fn all(&self) -> Vec<Arc<Kept<F>>> {
        self.objects.values().filter_map(|entry| entry.read().ok()).collect()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<F>> {
        self.objects.values()
    }

    /// All in a namespace, if none of those that cannot be read matters.
    pub(super) fn in_namespace(
        &self,
        namespace: Option<&str>,
        matters: impl Fn(&Kept<Unreadable>) -> bool,
    ) -> Result<Vec<Arc<Kept<F>>>, Unknown> {
        let first = ObjectKey { namespace: namespace.map(str::to_owned), name: String::new() };
        let here = self.objects.range(first..).take_while(|(key, _)| key.namespace.as_deref() == namespace);
        let relevant = here.map(|(_, entry)| entry).filter(|entry| match entry {
            Entry::Readable(_) => true,
            Entry::Unreadable(kept) => matters(kept),
        });
        relevant.map(Entry::read).collect()
    }

    pub(super) fn by_label(
        &self,
        namespace: Option<&str>,
        label: &str,
        value: &str,
    ) -> Result<Vec<Arc<Kept<F>>>, Unknown> {
        let keys = self.keys_by_label(namespace, label, value);
        keys.filter_map(|key| self.objects.get(key)).map(Entry::read).collect()
    }

    pub(super) fn keys_by_label(
        &self,
        namespace: Option<&str>,
        label: &str,
        value: &str,
    ) -> impl Iterator<Item = &ObjectKey> {
        let keys = self.labels.get(&(label.to_owned(), value.to_owned()));
        keys.into_iter().flatten().filter(move |key| key.namespace.as_deref() == namespace)
    }

    pub(super) fn unreadable(&self) -> Vec<Arc<Kept<Unreadable>>> {
        self.unreadable.iter().filter_map(|key| self.unreadable_one(key)).collect()
    }

    pub(super) fn unreadable_one(&self, key: &ObjectKey) -> Option<Arc<Kept<Unreadable>>> {
        match self.objects.get(key)? {
            Entry::Readable(_) => None,
            Entry::Unreadable(kept) => Some(Arc::clone(kept)),
        }
    }

    pub(super) fn is_synced(&self) -> bool {
        self.synced
    }

    pub(super) fn broken(&self) -> Option<(Instant, &str)> {
        self.broken.as_ref().map(|(since, why)| (*since, why.as_str()))
    }

    pub(super) fn stats(&self) -> WatchStats {
        let (objects, unreadable) = (self.objects.len(), self.unreadable.len());
        WatchStats { objects, unreadable, ..self.stats.clone() }
    }

    /// The connection failed. The first failure starts the clock, the last one gives the reason.
    pub(super) fn broke(&mut self, now: Instant, why: String) {
        self.stats.errors += 1;
        self.stats.last_error = Some(why.clone());
        let since = self.broken.as_ref().map_or(now, |(since, _)| *since);
        self.broken = Some((since, why));
        self.list = None;
    }

    pub(super) fn begin_list(&mut self) {
        self.round += 1;
        self.list = Some(BTreeMap::new());
    }

    pub(super) fn listed(&mut self, entry: Entry<F>) {
        if let Some(list) = &mut self.list {
            list.insert(entry.key().clone(), entry);
        }
    }

    /// The list is complete: what differs has changed, what is missing has vanished.
    pub(super) fn end_list(&mut self) -> Vec<Change<F>> {
        let Some(list) = self.list.take() else {
            return Vec::new();
        };
        let round = self.round;
        // Not the higher of both: after a restore of the API server's data versions begin lower again.
        self.reached = list.values().filter_map(Entry::number).max().unwrap_or_default();
        let (objects, reached) = (&self.objects, self.reached);
        let is_ahead = |key: &ObjectKey| objects.get(key).is_some_and(|kept| kept.version() > reached);
        self.written.retain(|key, made| *made >= round && is_ahead(key));
        self.tombstones.retain(|_, (_, made)| *made >= round);
        let missing: Vec<ObjectKey> = self
            .objects
            .keys()
            .filter(|key| !list.contains_key(key) && !self.written.contains_key(key))
            .cloned()
            .collect();
        let mut changes: Vec<Change<F>> = list.into_values().filter_map(|entry| self.take(entry)).collect();
        for key in missing {
            self.stats.vanished += 1;
            changes.extend(self.show(&key, None));
        }
        self.stats.lists += 1;
        self.synced = true;
        self.broken = None;
        changes
    }

    pub(super) fn applied(&mut self, entry: Entry<F>) -> Option<Change<F>> {
        self.stats.events += 1;
        self.reached = self.reached.max(entry.number().unwrap_or_default());
        self.take(entry)
    }

    pub(super) fn deleted(&mut self, entry: &Entry<F>) -> Option<Change<F>> {
        self.stats.events += 1;
        self.reached = self.reached.max(entry.number().unwrap_or_default());
        let key = entry.key();
        if self.tombstones.get(key).is_some_and(|(uid, _)| uid == entry.uid()) {
            self.tombstones.remove(key);
        }
        // An older incarnation's deletion says nothing about the one we wrote since.
        let visible = self.objects.get(key)?;
        if visible.uid() != entry.uid() && visible.version() > entry.version() {
            return None;
        }
        self.written.remove(key);
        self.show(key, None)
    }

    pub(super) fn written(&mut self, entry: Entry<F>) -> Option<Change<F>> {
        let key = entry.key().clone();
        let visible = self.objects.get(&key);
        let is_old_news = entry.number().is_some_and(|version| version <= self.reached);
        if is_old_news || visible.is_some_and(|visible| visible.version() >= entry.version()) {
            return None;
        }
        self.written.insert(key.clone(), self.round);
        self.tombstones.remove(&key);
        self.show(&key, Some(entry))
    }

    pub(super) fn removed(&mut self, key: &ObjectKey, uid: &str) -> Option<Change<F>> {
        if self.objects.get(key).is_none_or(|visible| visible.uid() != uid) {
            return None;
        }
        self.tombstones.insert(key.clone(), (uid.to_owned(), self.round));
        self.written.remove(key);
        self.show(key, None)
    }

    /// Something the watch or a list says about an existing object.
    fn take(&mut self, entry: Entry<F>) -> Option<Change<F>> {
        let key = entry.key().clone();
        if self.tombstones.get(&key).is_some_and(|(uid, _)| uid == entry.uid()) {
            return None;
        }
        self.tombstones.remove(&key);
        if let Some(visible) = self.objects.get(&key) {
            if self.written.contains_key(&key) && visible.version() > entry.version() {
                return None;
            }
            self.written.remove(&key);
            if visible.uid() == entry.uid() && visible.resource_version() == entry.resource_version() {
                return None;
            }
        }
        self.show(&key, Some(entry))
    }

    /// Replaces what is visible under a key, and its index entries.
    fn show(&mut self, key: &ObjectKey, after: Option<Entry<F>>) -> Option<Change<F>> {
        let before = self.objects.remove(key);
        self.unreadable.remove(key);
        if let Some(before) = &before {
            for (label, value) in before.labels() {
                forget(&mut self.labels, &(label.clone(), value.clone()), key);
            }
        }
        let is_change = before.is_some() || after.is_some();
        let change = is_change.then(|| Change::new(key.clone(), before.as_ref(), after.as_ref()));
        if let Some(after) = after {
            for (label, value) in after.labels() {
                self.labels.entry((label.clone(), value.clone())).or_default().insert(key.clone());
            }
            if matches!(after, Entry::Unreadable(_)) {
                self.unreadable.insert(key.clone());
            }
            self.objects.insert(key.clone(), after);
        }
        change
    }
}

fn forget<I: Ord>(index: &mut BTreeMap<I, BTreeSet<ObjectKey>>, entry: &I, key: &ObjectKey) {
    if let Some(keys) = index.get_mut(entry) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(entry);
        }
    }
}

//! Drives one watcher: events into the store, errors into back-off and a new list.

use std::{fmt::Debug, pin::pin, time::Duration};

use futures::StreamExt as _;
use kube::{
    Api, Resource,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::item::{self, Item};
use super::place::{Driven, Place};
use crate::backoff::Backoff;

/// A list that takes longer has no end: pages may follow one another without end.
const LIST_LIMIT: Duration = Duration::from_mins(5);
/// Names have 253 characters at most, uids and versions fewer.
const NAME_LIMIT: usize = 253;

/// Keeps a watch driven. A projection that panics would otherwise freeze the store while it still looks fresh; here it
/// counts as a broken connection and the watch starts over.
pub(super) async fn supervise<K, F>(
    api: Api<K>,
    config: watcher::Config,
    backoff: Backoff,
    watch: Driven<K, F>,
    stop: CancellationToken,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    F: Send + Sync + 'static,
{
    let mut panics = 0;
    loop {
        let run = drive(api.clone(), config.clone(), backoff.clone(), watch.clone(), stop.clone());
        if tokio::spawn(run).await.is_ok() {
            return;
        }
        panics += 1;
        tracing::error!(watch = watch.name(), panics, "a projection panicked");
        watch.broke_because("a projection panicked".to_owned());
        if stop.run_until_cancelled(tokio::time::sleep(backoff.delay(panics))).await.is_none() {
            return;
        }
    }
}

async fn drive<K, F>(
    api: Api<K>,
    config: watcher::Config,
    backoff: Backoff,
    watch: Driven<K, F>,
    stop: CancellationToken,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    F: Send + Sync + 'static,
{
    let mut failures = 0_u32;
    while let Some((why, lasted)) = stop.run_until_cancelled(until_error(&api, &config, &watch)).await {
        // A list alone proves nothing: where watching is forbidden or breaks at once, lists would follow one another
        // as quickly as the first delay allows.
        failures = if lasted >= backoff.limit { 1 } else { failures.saturating_add(1) };
        watch.broke(why, failures);
        if stop.run_until_cancelled(watch.pause(backoff.delay(failures))).await.is_none() {
            return;
        }
    }
}

/// Runs one watcher to its first error (the stream itself never ends); says why, and how long it worked after its list.
async fn until_error<K, F>(api: &Api<K>, config: &watcher::Config, watch: &Driven<K, F>) -> (String, Duration)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    F: Send + Sync + 'static,
{
    let mut stream = pin!(watcher(item::apart(api.clone()), config.clone()));
    let mut listed_at: Option<Instant> = None;
    let mut list_ends = Some(Instant::now() + LIST_LIMIT);
    let mut listed = 0;
    loop {
        let next = match list_ends {
            Some(end) => tokio::time::timeout_at(end, stream.next()).await,
            None => Ok(stream.next().await),
        };
        let why = match next {
            Ok(Some(Ok(event))) => {
                match &event {
                    Event::Init => (list_ends, listed) = (Some(Instant::now() + LIST_LIMIT), 0),
                    Event::InitDone => (listed_at, list_ends) = (Some(Instant::now()), None),
                    Event::InitApply(_) => listed += 1,
                    Event::Apply(_) | Event::Delete(_) => {}
                }
                match watch.excess(&event, listed).or_else(|| watch.handle(event)) {
                    None => continue,
                    Some(why) => why,
                }
            }
            Ok(Some(Err(error))) => describe(&error),
            Ok(None) => "the watch ended".to_owned(),
            Err(_) => format!("the list is not complete after {LIST_LIMIT:?}"),
        };
        return (why, listed_at.map_or(Duration::ZERO, |since| since.elapsed()));
    }
}

impl<K, F> Driven<K, F>
where
    K: Resource + 'static,
    F: Send + Sync + 'static,
{
    /// Takes an event, or says why its object cannot be kept.
    pub(super) fn handle(&self, event: Event<Item<K>>) -> Option<String> {
        let changes = {
            // Projection may be the caller's code: it runs outside the lock.
            let event = match event {
                Event::Init => Ok(Event::Init),
                Event::InitDone => Ok(Event::InitDone),
                Event::InitApply(item) => self.hold(self.keep(item)).map(Event::InitApply),
                Event::Apply(item) => self.hold(self.keep(item)).map(Event::Apply),
                Event::Delete(item) => Ok(Event::Delete(self.keep(item))),
            };
            let event = match event {
                Ok(event) => event,
                Err(why) => return Some(why),
            };
            let mut store = self.place().write();
            match event {
                Event::Init => {
                    store.begin_list();
                    Vec::new()
                }
                Event::InitApply(entry) => {
                    store.listed(entry);
                    Vec::new()
                }
                Event::InitDone => store.end_list(),
                Event::Apply(entry) => store.applied(entry).into_iter().collect(),
                Event::Delete(entry) => store.deleted(&entry).into_iter().collect(),
            }
        };
        self.shared.announce(changes);
        // Last: who waited for it finds the keys of the first list in its queue.
        self.settle();
        None
    }

    /// A pause that ends early, though not at once, when a caller is in a hurry.
    async fn pause(&self, length: Duration) {
        let at_least = length.min(Duration::from_secs(1));
        tokio::time::sleep(at_least).await;
        // Whether somebody was or the time is over makes no difference.
        let _ = tokio::time::timeout(length.saturating_sub(at_least), self.shared.hurry.notified()).await;
    }

    /// What makes an event more than this watch may keep.
    pub(super) fn excess(&self, event: &Event<Item<K>>, listed: usize) -> Option<String> {
        let limit = self.shared.limit?;
        let (Event::InitApply(object) | Event::Apply(object)) = event else {
            return None;
        };
        let metadata = object.meta();
        let names = [&metadata.name, &metadata.uid, &metadata.resource_version];
        if names.into_iter().flatten().any(|name| name.len() > NAME_LIMIT) {
            return Some(format!("an object's name, uid or version has more than {NAME_LIMIT} bytes"));
        }
        let is_full = || {
            let store = self.place().read();
            store.stats().objects >= limit && !store.has(&crate::ObjectKey::of(object))
        };
        let is_more = listed > limit || (matches!(event, Event::Apply(_)) && is_full());
        is_more.then(|| format!("the watch has more than {limit} objects"))
    }

    fn broke(&self, why: String, failures: u32) {
        if failures == 1 {
            tracing::debug!(watch = self.name(), error = %why, "watch interrupted");
        } else {
            tracing::warn!(watch = self.name(), error = %why, failures, "the watch keeps failing");
        }
        self.broke_because(why);
    }

    pub(super) fn broke_because(&self, why: String) {
        self.place().write().broke(Instant::now(), why);
        self.settle();
    }

    /// Says that the watch is synced once it is. A namespace that cannot be listed does not hold up the others.
    fn settle(&self) {
        let places = &self.shared.places;
        let is_listed = |place: &Place<F>| place.read().is_synced();
        let has_failed = |place: &Place<F>| place.read().broken().is_some();
        if places.iter().any(is_listed) && places.iter().all(|place| is_listed(place) || has_failed(place)) {
            self.shared.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
        }
    }
}

/// The innermost cause says most; kube's own texts repeat their source.
fn describe(error: &watcher::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

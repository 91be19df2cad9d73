//! Nodes of tenants: one shared watch per tenant, while a controller needs it.
//!
//! Reading Nodes for each Machine would cost a tenant one call per Machine and read, each with the whole Node. Here one
//! list and one watch serve all, each Node becomes a small [`NodeFacts`] at once, and a change of facts (not of
//! heartbeats) wakes the subscribers.
//!
//! - A tenant is watched from the first [`Nodes::subscribe`] until some minutes after the last [`Lease`] is dropped: a
//!   controller takes a lease for one reconcile, and the next one finds the same watch.
//! - Reads are `Unknown` before the first list, and when the connection has been broken for longer than
//!   [`STALE_AFTER`].
//! - Calls go through [`Tenants`]: a tenant that is away is called once per minute at most, and not at all while it is
//!   paused. No controller's readiness waits for it.
//! - A tenant can have [`NODES_LIMIT`] Nodes. More of them, a list without end, or a page that is too large make its
//!   reads `Unknown`, so that a tenant cannot fill our memory.
//! - The facts of all tenants' Nodes together are bounded as well. Each tenant has room for some hundred Nodes that no
//!   other can take.
//! - A new kubeconfig starts a new watch: the old one may have led elsewhere.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use hangar_plan::{
    flow::{Read, Unknown},
    machine::{NodeFacts, node::is_same_server},
};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    ObjectKey,
    backoff::Backoff,
    client::{KubeconfigSource, Tenants},
    watch::{Change, Common, Kept, Watch, WatchBuilder},
};

/// Clusters of this size are the largest that Kubernetes supports.
const NODES_LIMIT: usize = 5000;
/// Bytes of facts: what all tenants have in common, what each has for itself, and the most for one. A real Node takes 4 KiB,
/// and a list that replaces another takes as much again for a moment.
const FACTS: [usize; 3] = [96 << 20, 1 << 20, 48 << 20];
/// An API server that restarts is back within this time.
const STALE_AFTER: Duration = Duration::from_secs(30);
/// The watch outlives its last lease by this: longer than controllers leave an object alone at rest.
const IDLE_LIMIT: Duration = Duration::from_mins(10);

/// Told of each change: the tenant, the Node's name, and its provider id where it has one. Must not block.
type Wake = Box<dyn Fn(&ObjectKey, &str, Option<&str>) + Send + Sync>;

/// The Nodes of all tenants that controllers need.
pub struct Nodes<S> {
    tenants: Arc<Tenants<S>>,
    stop: CancellationToken,
    watched: Mutex<BTreeMap<ObjectKey, Arc<Watched>>>,
    wakes: Arc<RwLock<Vec<Wake>>>,
    common: Common,
}

struct Watched {
    /// Of the kubeconfig that it goes by.
    revision: Option<String>,
    watch: Watch<Node, NodeFacts>,
    used_at: Mutex<Instant>,
    _stop: DropGuard,
}

/// The right to read a tenant's Nodes. Take one per reconcile.
pub struct Lease(Arc<Watched>);

impl<S: KubeconfigSource> Nodes<S> {
    /// Watches nothing yet. Call it inside the runtime; it ends with the token.
    pub fn new(tenants: Arc<Tenants<S>>, stop: &CancellationToken) -> Arc<Self> {
        let (watched, wakes) = (Mutex::default(), Arc::default());
        let [common, own, most] = FACTS;
        let common = Common::new(common, own, most);
        let nodes = Arc::new(Self { tenants, stop: stop.clone(), watched, wakes, common });
        let (weak, stop) = (Arc::downgrade(&nodes), stop.clone());
        tokio::spawn(async move {
            while stop.run_until_cancelled(tokio::time::sleep(IDLE_LIMIT / 2)).await.is_some() {
                let Some(nodes) = weak.upgrade() else { return };
                nodes.watched().retain(|_, watched| !watched.is_idle());
            }
        });
        nodes
    }

    /// Calls the function for each change of a Node of a watched tenant. A controller calls this once.
    pub fn on_change(&self, wake: impl Fn(&ObjectKey, &str, Option<&str>) + Send + Sync + 'static) {
        self.wakes.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(wake));
    }

    /// Watches a tenant's Nodes, at least while the lease lives.
    pub fn subscribe(&self, tenant: &ObjectKey) -> Lease {
        let revision = self.tenants.source().revision(tenant);
        let mut all = self.watched();
        let present = all.get(tenant).filter(|watched| watched.revision == revision);
        let watched = present.cloned().unwrap_or_else(|| Arc::new(self.watch(tenant, revision)));
        all.insert(tenant.clone(), Arc::clone(&watched));
        Lease(watched)
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Arc<Watched>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, tenant: &ObjectKey, revision: Option<String>) -> Watched {
        let stop = self.stop.child_token();
        let backoff = Backoff {
            first: Duration::from_millis(500),
            limit: Duration::from_mins(1),
            ..Backoff::default()
        };
        let watch = WatchBuilder::new("nodes of the tenant", Api::all(self.door(tenant)))
            .bounded(NODES_LIMIT)
            .stale_after(STALE_AFTER)
            .backoff(backoff)
            .project_within(&stop, NodeFacts::from, &self.common, NodeFacts::bytes);
        let (wakes, tenant) = (Arc::clone(&self.wakes), tenant.clone());
        watch.each(move |change| {
            if is_news(change) {
                let sides = || change.after.iter().chain(&change.before);
                let id = sides().map(|node| node.provider_id.as_str()).find(|id| !id.is_empty());
                for wake in &*wakes.read().unwrap_or_else(PoisonError::into_inner) {
                    wake(&tenant, &change.key.name, id);
                }
            }
        });
        Watched { revision, watch, used_at: Mutex::new(Instant::now()), _stop: stop.drop_guard() }
    }

    /// A client that asks for the tenant's present one at each call: a watch outlives breaks of its tenant.
    fn door(&self, tenant: &ObjectKey) -> Client {
        let (tenants, tenant) = (Arc::clone(&self.tenants), tenant.clone());
        let service = tower::service_fn(move |request| {
            let (tenants, tenant) = (Arc::clone(&tenants), tenant.clone());
            async move {
                let client = tenants.client(&tenant).await;
                let client = client.map_err(|error| kube::Error::Service(Box::new(error)))?;
                client.send(request).await
            }
        });
        Client::new(service, "default")
    }
}

/// Whether more than the version changed: kubelets report every few minutes that all is as it was.
fn is_news(change: &Change<NodeFacts>) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            let resource_version = after.value.resource_version.clone();
            NodeFacts { resource_version, ..before.value.clone() } != after.value
        }
        _ => true,
    }
}

impl Watched {
    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called with the map locked: no lease can be taken meanwhile.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.used_at().elapsed() >= IDLE_LIMIT
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.0.used_at() = Instant::now();
    }
}

impl Lease {
    /// Waits for the first list, no longer than the limit. One that is broken is tried again soon.
    pub async fn ready(&self, limit: Duration) {
        self.0.watch.hurry();
        // Whether it came in time is what the reads say.
        let _ = tokio::time::timeout(limit, self.0.watch.synced()).await;
    }

    pub fn all(&self) -> Read<Arc<Kept<NodeFacts>>> {
        self.0.watch.in_namespace(&None, |_| true)
    }

    pub fn get(&self, name: &str) -> Read<Arc<Kept<NodeFacts>>> {
        self.0.watch.get(&ObjectKey::cluster(name))
    }

    /// The Nodes of this server. More than one is possible, and a mistake.
    pub fn find(&self, provider_id: &str) -> Read<Arc<Kept<NodeFacts>>> {
        self.all().filter(|node| is_same_server(&node.provider_id, provider_id))
    }

    /// How many there are.
    pub fn count(&self) -> Result<usize, Unknown> {
        self.0.watch.freshness().map(|()| self.0.watch.stats().objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client::{Connection, TenantOptions},
        error::{Error, Result},
    };

    struct Nowhere;

    impl KubeconfigSource for Nowhere {
        fn revision(&self, _: &ObjectKey) -> Option<String> {
            None
        }

        async fn connection(&self, tenant: &ObjectKey) -> Result<Connection> {
            Err(Error::Stale { what: tenant.to_string() })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_outlives_its_last_lease_by_minutes_and_no_more() {
        let tenants = Arc::new(Tenants::new(Nowhere, TenantOptions::default()));
        let nodes = Nodes::new(tenants, &CancellationToken::new());
        let (first, second) =
            (nodes.subscribe(&ObjectKey::cluster("a")), nodes.subscribe(&ObjectKey::cluster("a")));
        assert_eq!(Arc::strong_count(&first.0), 3);
        drop(first);
        tokio::time::sleep(IDLE_LIMIT * 5).await;
        assert_eq!(nodes.watched().len(), 1);
        let why = second.count().unwrap_err().why;
        assert!(why.ends_with("not listed yet: tenant a is unavailable: it has no kubeconfig yet"), "{why}");
        let watch = second.0.watch.clone();
        // At most once a minute while the tenant is away, whatever the jitter.
        assert!((45..=80).contains(&watch.stats().errors), "{}", watch.stats().errors);
        drop(second);
        tokio::time::sleep(IDLE_LIMIT * 2).await;
        assert!(nodes.watched().is_empty());
        let errors = watch.stats().errors;
        tokio::time::sleep(IDLE_LIMIT).await;
        assert_eq!(watch.stats().errors, errors);
    }

    #[tokio::test]
    async fn a_heartbeat_is_no_news() {
        let facts = |version: &str, is_cordoned| {
            let mut node = Node::default();
            node.metadata.resource_version = Some(version.to_owned());
            node.spec.get_or_insert_default().unschedulable = Some(is_cordoned);
            Some(Arc::new(Kept::new(node, &[], NodeFacts::from)))
        };
        let change =
            |before, after| Change { key: ObjectKey::cluster("a"), before, after, unreadable: Vec::new() };
        assert!(!is_news(&change(facts("1", false), facts("2", false))));
        assert!(is_news(&change(facts("1", false), facts("2", true))));
        assert!(is_news(&change(None, facts("1", false))));
    }
}

//! Nodes of tenants: one shared watch per tenant, while a controller needs it.
//!
//! Reading Nodes for each Machine would cost a tenant one call per Machine and read, each with the whole Node. Here one
//! list and one watch serve all, each Node becomes a small [`NodeFacts`] at once, and a change of facts (not of
//! heartbeats) wakes the subscribers.
//!
//! - A tenant is watched from the first [`Nodes::subscribe`] until some minutes after the last [`Lease`] is dropped.
//! - Reads are `Unknown` before the first list, and when the connection has been broken for longer than
//!   [`STALE_AFTER`].
//! - Calls go through [`Tenants`]: a tenant that is away is called once per minute at most, and not at all while it is
//!   paused. No controller's readiness waits for it.
//! - A tenant can have [`NODES_LIMIT`] Nodes. More of them, a list without end, or a page that is too large make its
//!   reads `Unknown`, so that a tenant cannot fill our memory.
//! - The facts of all tenants' Nodes together are bounded as well. Each tenant has room for some hundred Nodes that no
//!   other can take.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use hangar_plan::{
    flow::{Read, Unknown},
    machine::{NodeFacts, node::is_same_server},
};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use super::{
    STALE_AFTER, backoff,
    held::{self, PerTenant},
};
use crate::{
    ObjectKey,
    client::{KubeconfigSource, Tenants},
    watch::{Change, Common, Kept, Watch, WatchBuilder},
};

/// Clusters of this size are the largest that Kubernetes supports.
const NODES_LIMIT: usize = 5000;
/// Bytes of facts: what all tenants have in common, what each has for itself, and the most for one. A real Node takes 4 KiB,
/// and a list that replaces another takes as much again for a moment.
const FACTS: [usize; 3] = [96 << 20, 1 << 20, 48 << 20];
/// Told of each change: the tenant, the Node's name, and its provider id where it has one. Must not block.
type Wake = Box<dyn Fn(&ObjectKey, &str, Option<&str>) + Send + Sync>;

/// The Nodes of all tenants that controllers need.
pub struct Nodes<S> {
    watched: Arc<PerTenant<S, Watch<Node, NodeFacts>>>,
    wakes: Arc<RwLock<Vec<Wake>>>,
    common: Common,
}

/// The right to read a tenant's Nodes. Take one per reconcile.
pub struct Lease(held::Lease<Watch<Node, NodeFacts>>);

impl<S: KubeconfigSource> Nodes<S> {
    /// Watches nothing yet. Call it inside the runtime; it ends with the token.
    pub fn new(tenants: Arc<Tenants<S>>, stop: &CancellationToken) -> Arc<Self> {
        let [common, own, most] = FACTS;
        let common = Common::new(common, own, most);
        Arc::new(Self { watched: PerTenant::new(tenants, stop), wakes: Arc::default(), common })
    }

    /// Calls the function for each change of a Node of a watched tenant. A controller calls this once.
    pub fn on_change(&self, wake: impl Fn(&ObjectKey, &str, Option<&str>) + Send + Sync + 'static) {
        self.wakes.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(wake));
    }

    /// Watches a tenant's Nodes, at least while the lease lives.
    pub fn subscribe(&self, tenant: &ObjectKey) -> Lease {
        Lease(self.watched.subscribe(tenant, |client, stop| self.watch(tenant, client, stop)))
    }

    fn watch(&self, tenant: &ObjectKey, client: Client, stop: &CancellationToken) -> Watch<Node, NodeFacts> {
        let watch = WatchBuilder::new("nodes of the tenant", Api::all(client))
            .bounded(NODES_LIMIT)
            .stale_after(STALE_AFTER)
            .backoff(backoff())
            .project_within(stop, NodeFacts::from, &self.common, NodeFacts::bytes);
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
        watch
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

impl Lease {
    /// Waits for the first list, no longer than the limit. One that is broken is tried again soon.
    pub async fn ready(&self, limit: Duration) {
        self.0.hurry();
        // Whether it came in time is what the reads say.
        let _ = tokio::time::timeout(limit, self.0.synced()).await;
    }

    pub fn all(&self) -> Read<Arc<Kept<NodeFacts>>> {
        self.0.in_namespace(&None, |_| true)
    }

    pub fn get(&self, name: &str) -> Read<Arc<Kept<NodeFacts>>> {
        self.0.get(&ObjectKey::cluster(name))
    }

    /// The Nodes of this server. More than one is possible, and a mistake.
    pub fn find(&self, provider_id: &str) -> Read<Arc<Kept<NodeFacts>>> {
        self.all().filter(|node| is_same_server(&node.provider_id, provider_id))
    }

    /// How many there are.
    pub fn count(&self) -> Result<usize, Unknown> {
        self.0.freshness().map(|()| self.0.stats().objects)
    }
}

#[cfg(test)]
mod tests {
    use super::{held::IDLE_LIMIT, *};
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
        assert_eq!(Arc::strong_count(&first.0.0), 3);
        drop(first);
        tokio::time::sleep(IDLE_LIMIT * 5).await;
        assert_eq!(nodes.watched.all().len(), 1);
        let why = second.count().unwrap_err().why;
        assert!(why.ends_with("not listed yet: tenant a is unavailable: it has no kubeconfig yet"), "{why}");
        let watch = second.0.clone();
        // At most once a minute while the tenant is away, whatever the jitter.
        assert!((45..=80).contains(&watch.stats().errors), "{}", watch.stats().errors);
        drop(second);
        tokio::time::sleep(IDLE_LIMIT * 2).await;
        assert!(nodes.watched.all().is_empty());
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

//! Add-ons of tenants: one watch of Deployments and one of DaemonSets per tenant, while a controller needs them.
//!
//! At rest both together cost two calls in half an hour. Only what is labelled as an add-on of ours is watched, in one
//! namespace, and only how many pods it has is kept.

use std::sync::{Arc, PoisonError, RwLock};

use hangar_plan::{flow::Read, hosted_control_plane::AddonFacts, inventory::ObjectIdentity};
use k8s_openapi::{
    NamespaceResourceScope,
    api::apps::v1::{DaemonSet, Deployment},
};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{
    STALE_AFTER, backoff,
    held::{Lease, PerTenant},
};
use crate::{
    ObjectKey,
    client::{KubeconfigSource, Tenants},
    watch::{Change, Watch, WatchBuilder},
};

/// Add-ons of one kind: more than we have, since the tenant may use their labels, too.
const ADDONS_LIMIT: usize = 50;

/// Told of each tenant in which an add-on began or ceased to be ready, and whether somebody edited or deleted it. Must not
/// block.
type Wake = Box<dyn Fn(&ObjectKey, bool) + Send + Sync>;

/// The add-ons of all tenants that controllers need.
pub struct Addons<S> {
    watched: Arc<PerTenant<S, Watched>>,
    wakes: Arc<RwLock<Vec<Wake>>>,
    namespace: &'static str,
    selector: &'static str,
}

struct Watched {
    deployments: Watch<Deployment, AddonFacts>,
    daemon_sets: Watch<DaemonSet, AddonFacts>,
}

/// The right to read a tenant's add-ons. Take one per reconcile.
pub struct AddonsLease(Lease<Watched>);

impl<S: KubeconfigSource> Addons<S> {
    /// Watches nothing yet: what this selects in this namespace of tenants that are asked for. Call it inside the runtime;
    /// it ends with the token.
    pub fn new(
        tenants: Arc<Tenants<S>>,
        stop: &CancellationToken,
        (namespace, selector): (&'static str, &'static str),
    ) -> Self {
        Self { watched: PerTenant::new(tenants, stop), wakes: Arc::default(), namespace, selector }
    }

    /// Calls the function when an add-on of a watched tenant appears, begins or ceases to be ready, is edited, or is gone:
    /// with true for the latter two.
    pub fn on_change(&self, wake: impl Fn(&ObjectKey, bool) + Send + Sync + 'static) {
        self.wakes.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(wake));
    }

    /// Watches a tenant's add-ons, at least while the lease lives.
    pub fn subscribe(&self, tenant: &ObjectKey) -> AddonsLease {
        AddonsLease(self.watched.subscribe(tenant, |client, stop| Watched {
            deployments: self.watch("deployments of the tenant", tenant, client.clone(), stop),
            daemon_sets: self.watch("daemon sets of the tenant", tenant, client, stop),
        }))
    }

    fn watch<K>(
        &self,
        name: &str,
        tenant: &ObjectKey,
        client: Client,
        stop: &CancellationToken,
    ) -> Watch<K, AddonFacts>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
        AddonFacts: From<K>,
    {
        let watch = WatchBuilder::new(name, Api::<K>::namespaced(client, self.namespace))
            .labels(self.selector)
            .bounded(ADDONS_LIMIT)
            .stale_after(STALE_AFTER)
            .backoff(backoff())
            .project(stop, AddonFacts::from);
        let (wakes, tenant) = (Arc::clone(&self.wakes), tenant.clone());
        watch.each(move |change| {
            let is_edited = is_edited(change);
            if is_edited || is_news(change) {
                for wake in &*wakes.read().unwrap_or_else(PoisonError::into_inner) {
                    wake(&tenant, is_edited);
                }
            }
        });
        watch
    }
}

/// Whether an add-on began or ceased to be ready. Numbers change with every Node that comes and goes.
fn is_news(change: &Change<AddonFacts>) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => before.is_ready() != after.is_ready(),
        _ => true,
    }
}

/// Whether somebody edited or deleted an add-on, or made it anew.
fn is_edited(change: &Change<AddonFacts>) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => (&before.uid, before.generation) != (&after.uid, after.generation),
        (before, _) => before.is_some(),
    }
}

impl AddonsLease {
    /// What there is of an add-on. Unknown before the first list, and for other kinds.
    pub fn get(&self, addon: &ObjectIdentity) -> Read<AddonFacts> {
        let key = ObjectKey::namespaced(addon.namespace.as_str(), addon.name.as_str());
        let found = match addon.kind.as_str() {
            "Deployment" => self.0.deployments.get(&key),
            "DaemonSet" => self.0.daemon_sets.get(&key),
            kind => return Read::unknown(format!("{kind}s of tenants are not watched")),
        };
        found.map(|kept| kept.value.clone())
    }
}

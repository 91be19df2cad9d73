//! What is kept open in tenants, one of a kind per tenant, while a controller needs it.
//!
//! - It is there from the first [`PerTenant::subscribe`] until some minutes after the last [`Lease`] is dropped: a
//!   controller takes a lease for one reconcile, and the next one finds the same.
//! - A new kubeconfig starts a new one: the old one may have led elsewhere.

use std::{
    collections::BTreeMap,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    ObjectKey,
    client::{KubeconfigSource, Tenants},
};

/// It outlives its last lease by this: longer than controllers leave an object alone at rest.
pub(super) const IDLE_LIMIT: Duration = Duration::from_mins(10);

/// One of a kind for each tenant.
pub(super) struct PerTenant<S, W> {
    tenants: Arc<Tenants<S>>,
    stop: CancellationToken,
    all: Mutex<BTreeMap<ObjectKey, Arc<Held<W>>>>,
}

pub(super) struct Held<W> {
    /// Of the kubeconfig that it goes by.
    revision: Option<String>,
    value: W,
    used_at: Mutex<Instant>,
    _stop: DropGuard,
}

/// The right to use it. Take one per reconcile.
pub(super) struct Lease<W>(pub(super) Arc<Held<W>>);

impl<S: KubeconfigSource, W: Send + Sync + 'static> PerTenant<S, W> {
    /// Holds nothing yet. Call it inside the runtime; it ends with the token.
    pub(super) fn new(tenants: Arc<Tenants<S>>, stop: &CancellationToken) -> Arc<Self> {
        let held = Arc::new(Self { tenants, stop: stop.clone(), all: Mutex::default() });
        let (weak, stop) = (Arc::downgrade(&held), stop.clone());
        tokio::spawn(async move {
            while stop.run_until_cancelled(tokio::time::sleep(IDLE_LIMIT / 2)).await.is_some() {
                let Some(held) = weak.upgrade() else { return };
                held.all().retain(|_, held| !held.is_idle());
            }
        });
        held
    }

    /// The tenant's, at least while the lease lives. Started with a client where there is none.
    pub(super) fn subscribe(
        &self,
        tenant: &ObjectKey,
        start: impl FnOnce(Client, &CancellationToken) -> W,
    ) -> Lease<W> {
        let revision = self.tenants.source().revision(tenant);
        let mut all = self.all();
        let present = all.get(tenant).filter(|held| held.revision == revision);
        let held = present.cloned().unwrap_or_else(|| {
            let stop = self.stop.child_token();
            let value = start(self.door(tenant), &stop);
            let used_at = Mutex::new(Instant::now());
            Arc::new(Held { revision, value, used_at, _stop: stop.drop_guard() })
        });
        all.insert(tenant.clone(), Arc::clone(&held));
        Lease(held)
    }

    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Arc<Held<W>>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
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

impl<W> Held<W> {
    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called with the map locked: no lease can be taken meanwhile.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.used_at().elapsed() >= IDLE_LIMIT
    }
}

impl<W> Deref for Lease<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.0.value
    }
}

impl<W> Drop for Lease<W> {
    fn drop(&mut self) {
        *self.0.used_at() = Instant::now();
    }
}

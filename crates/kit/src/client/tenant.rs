//! Clients of tenant API servers: made on demand, kept, and paused after a few failures.
//!
//! A tenant's API server is often away: not started yet, upgrading, cut off. And it is not ours: its owner can make it
//! slow, or its answers huge.
//!
//! Invariants
//! - Every call has a short time limit and every answer a small size limit, and answers share a [`Room`]. After [`TenantOptions::failures`]
//!   unreachable calls in a row, calls to the tenant fail at once for a while that grows, so that workers do not wait
//!   for it again.
//! - Reads and writes are judged apart (`breaker`).
//! - Tenants share nothing but this map: one that hangs while it connects blocks only callers for itself.
//! - There is no periodic probe: health follows from real calls, and costs nothing without calls.
//! - A kubeconfig whose revision changed makes a new client, with a clean record.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::{Client, Config};
use tokio::sync::Mutex as AsyncMutex;

use super::{ClientOptions, Health, breaker::Breaker, client};
use crate::{
    ObjectKey,
    backoff::Backoff,
    call::{CallGate, Room},
    error::{Error, Result},
};

/// Where connection data of a tenant comes from.
pub struct Connection {
    pub config: Config,
    /// Changes whenever the data does: a resourceVersion or a hash.
    pub revision: String,
}

/// Finds a tenant's connection data: a Secret, usually.
pub trait KubeconfigSource: Send + Sync + 'static {
    /// The current revision, read cheaply; none while there is no data. Called for every [`Tenants::client`].
    fn revision(&self, tenant: &ObjectKey) -> Option<String>;

    /// The data itself. Called when the revision is new.
    fn connection(&self, tenant: &ObjectKey) -> impl Future<Output = Result<Connection>> + Send;
}

/// Limits for tenants.
#[derive(Clone)]
pub struct TenantOptions {
    /// No call takes longer.
    pub call_limit: Duration,
    /// No connection attempt takes longer.
    pub connect_limit: Duration,
    /// No answer has more bytes. A page of Nodes has one MiB.
    pub answer_limit: usize,
    /// Room for the answers of all tenants together.
    pub room: Room,
    /// This many unreachable calls in a row make a tenant unavailable.
    pub failures: u32,
    /// How long it then is.
    pub backoff: Backoff,
    /// More gates for every tenant client.
    pub gates: Vec<Arc<dyn CallGate>>,
}

impl Default for TenantOptions {
    fn default() -> Self {
        Self {
            call_limit: Duration::from_secs(10),
            connect_limit: Duration::from_secs(3),
            answer_limit: 8 << 20,
            room: Room::default(),
            failures: 3,
            // Upstream tries again every 30 s; a tenant that was restarted should be noticed sooner at first.
            backoff: Backoff {
                first: Duration::from_secs(2),
                limit: Duration::from_secs(30),
                ..Backoff::default()
            },
            gates: Vec::new(),
        }
    }
}

impl TenantOptions {
    fn of_clients(&self, last: Option<Arc<Breaker>>) -> ClientOptions {
        let last = last.map(|record| record as Arc<dyn CallGate>);
        ClientOptions {
            call_limit: self.call_limit,
            write_limit: self.call_limit,
            connect_limit: self.connect_limit,
            answer_limit: self.answer_limit,
            room: Some(self.room.of_another()),
            is_spare: true,
            gates: self.gates.iter().cloned().chain(last).collect(),
        }
    }

    fn breaker(&self) -> Breaker {
        Breaker::new(self.failures, self.backoff.clone(), self.call_limit)
    }
}

/// The clients of all tenants.
pub struct Tenants<S> {
    source: S,
    options: TenantOptions,
    slots: Mutex<BTreeMap<ObjectKey, Arc<Slot>>>,
}

struct Slot {
    /// Held while the client is made: a second caller waits, other tenants' callers do not.
    client: AsyncMutex<Option<(String, Client)>>,
    /// Of the current client. A new one gets its own: calls of the old one that end late are none of its failures.
    record: Mutex<Arc<Breaker>>,
}

impl Slot {
    fn record(&self) -> Arc<Breaker> {
        Arc::clone(&self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, record: &Arc<Breaker>) {
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(record);
    }
}

impl<S: KubeconfigSource> Tenants<S> {
    /// No clients yet.
    pub fn new(source: S, options: TenantOptions) -> Self {
        Self { source, options, slots: Mutex::new(BTreeMap::new()) }
    }

    /// Where connection data comes from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The tenant's client, or at once why it cannot be read now. Sends nothing to the tenant.
    ///
    /// Writes may still be refused ([`crate::call::Stopped`], never sent) where they alone hang: who only writes asks
    /// [`Tenants::writer`].
    pub async fn client(&self, tenant: &ObjectKey) -> Result<Client> {
        self.checked(tenant, &[false]).await
    }

    /// The tenant's client, or at once why it can neither be read nor written now.
    pub async fn writer(&self, tenant: &ObjectKey) -> Result<Client> {
        self.checked(tenant, &[false, true]).await
    }

    async fn checked(&self, tenant: &ObjectKey, sides: &[bool]) -> Result<Client> {
        // Before the slot is made: a name that never gets a kubeconfig must not stay in the map.
        let Some(revision) = self.source.revision(tenant) else {
            return Err(unavailable(tenant, "it has no kubeconfig yet", self.options.backoff.first));
        };
        let slot = self.slot(tenant);
        let mut kept = slot.client.lock().await;
        if let Some((present, client)) = &*kept
            && *present == revision
        {
            let record = slot.record();
            return match sides.iter().find_map(|is_write| record.closed(*is_write)) {
                Some((why, length)) => Err(unavailable(tenant, &why, length)),
                None => Ok(client.clone()),
            };
        }
        let connection = self.source.connection(tenant).await?;
        let record = Arc::new(self.options.breaker());
        slot.replace(&record);
        // The record comes last: a call that another gate refuses is no probe.
        let client = client(connection.config, &self.options.of_clients(Some(record)))?;
        *kept = Some((connection.revision, client.clone()));
        Ok(client)
    }

    /// A client of another identity, with the limits and gates of all. It is not kept, and its calls are not judged.
    pub fn client_of(&self, config: Config) -> Result<Client> {
        client(config, &self.options.of_clients(None))
    }

    /// What is known about a tenant: the worse of its reads and writes.
    pub fn health(&self, tenant: &ObjectKey) -> Health {
        self.slots().get(tenant).map_or(Health::Unknown, |slot| slot.record().health())
    }

    /// How long ago the tenant gave a sign of life, if no read has failed since: an answer, or something on a watch.
    pub fn silent_for(&self, tenant: &ObjectKey) -> Option<Duration> {
        self.slots().get(tenant)?.record().silent_for()
    }

    /// Forgets a tenant that is gone.
    pub fn forget(&self, tenant: &ObjectKey) {
        self.slots().remove(tenant);
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, tenant: &ObjectKey) -> Arc<Slot> {
        let new = || {
            Arc::new(Slot {
                client: AsyncMutex::new(None),
                record: Mutex::new(Arc::new(self.options.breaker())),
            })
        };
        Arc::clone(self.slots().entry(tenant.clone()).or_insert_with(new))
    }
}

fn unavailable(tenant: &ObjectKey, why: &str, retry_after: Duration) -> Error {
    Error::TenantUnavailable { tenant: tenant.to_string(), why: why.to_owned(), retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl KubeconfigSource for Nothing {
        fn revision(&self, _: &ObjectKey) -> Option<String> {
            None
        }

        async fn connection(&self, tenant: &ObjectKey) -> Result<Connection> {
            Err(unavailable(tenant, "never asked", Duration::ZERO))
        }
    }

    #[tokio::test]
    async fn names_without_a_kubeconfig_take_no_memory() {
        let tenants = Tenants::new(Nothing, TenantOptions::default());
        for number in 0..3 {
            assert!(tenants.client(&ObjectKey::cluster(number.to_string())).await.is_err());
        }
        assert!(tenants.slots().is_empty());
    }
}

//! Clients of tenant API servers: made on demand, kept, and believed dead after a few failures.
//!
//! A tenant's API server is often away: not started yet, upgrading, cut off. Invariants:
//! - every call has a short limit, and after [`TenantOptions::failures`] unreachable calls in a row the tenant is
//!   unavailable at once for a while that grows, so that no worker waits for it again and again;
//! - tenants share nothing but this map: one that hangs while it connects blocks only callers for itself;
//! - there is no periodic probe: health is what real calls saw, and costs nothing while nobody calls;
//! - a kubeconfig whose revision changed makes a new client, with a clean record.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::{Client, Config};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use super::{ClientOptions, client};
use crate::{
    ObjectKey,
    backoff::Backoff,
    call::{Answer, Call, CallGate, Delivery},
    error::{Error, Result},
};

/// Where connection data of a tenant comes from.
pub struct Connection {
    /// Address and credentials.
    pub config: Config,
    /// Changes whenever the data does: a resourceVersion or a hash.
    pub revision: String,
}

/// Finds a tenant's connection data: a Secret, usually.
pub trait KubeconfigSource: Send + Sync + 'static {
    /// A cheap look at the current revision, none while there is no data. Called for every [`Tenants::client`].
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

/// What is known about a tenant's API server, from real calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nobody has called it yet.
    Unknown,
    /// The last call was answered.
    Answering,
    /// Calls fail.
    Failing {
        /// Unreachable calls in a row.
        failures: u32,
        /// What the last one said.
        why: String,
        /// Since when.
        since: Instant,
        /// Not called before this moment.
        retry_at: Option<Instant>,
    },
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
    record: Mutex<Arc<Record>>,
}

impl Slot {
    fn record(&self) -> Arc<Record> {
        Arc::clone(&self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, record: &Arc<Record>) {
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

    /// The tenant's client, or at once why there is none now. Sends nothing to the tenant.
    pub async fn client(&self, tenant: &ObjectKey) -> Result<Client> {
        // Before the slot is made: a name that never gets a kubeconfig must not stay in the map.
        let Some(revision) = self.source.revision(tenant) else {
            return Err(unavailable(tenant, "it has no kubeconfig yet", self.options.backoff.first));
        };
        let slot = self.slot(tenant);
        let mut kept = slot.client.lock().await;
        if let Some((present, client)) = &*kept
            && *present == revision
        {
            slot.record().check(tenant)?;
            return Ok(client.clone());
        }
        let connection = self.source.connection(tenant).await?;
        let record = Arc::new(Record::new(&self.options));
        slot.replace(&record);
        let mut gates: Vec<Arc<dyn CallGate>> = vec![record];
        gates.extend(self.options.gates.iter().cloned());
        let options = ClientOptions {
            call_limit: self.options.call_limit,
            write_limit: self.options.call_limit,
            connect_limit: self.options.connect_limit,
            gates,
        };
        let client = client(connection.config, &options)?;
        *kept = Some((connection.revision, client.clone()));
        Ok(client)
    }

    /// What is known about a tenant.
    pub fn health(&self, tenant: &ObjectKey) -> Health {
        self.slots().get(tenant).map_or(Health::Unknown, |slot| slot.record().state().clone())
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
                record: Mutex::new(Arc::new(Record::new(&self.options))),
            })
        };
        Arc::clone(self.slots().entry(tenant.clone()).or_insert_with(new))
    }
}

fn unavailable(tenant: &ObjectKey, why: &str, retry_after: Duration) -> Error {
    Error::TenantUnavailable { tenant: tenant.to_string(), why: why.to_owned(), retry_after }
}

/// A tenant's health; the gate in its client writes it.
struct Record {
    state: Mutex<Health>,
    failures: u32,
    backoff: Backoff,
}

impl Record {
    fn new(options: &TenantOptions) -> Self {
        Self {
            state: Mutex::new(Health::Unknown),
            failures: options.failures,
            backoff: options.backoff.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, Health> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, tenant: &ObjectKey) -> Result<()> {
        match &*self.state() {
            Health::Failing { retry_at: Some(at), why, .. } if *at > Instant::now() => {
                Err(unavailable(tenant, why, at.duration_since(Instant::now())))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, why: String) {
        let mut state = self.state();
        let (failures, since) = match &*state {
            Health::Failing { failures, since, .. } => (failures.saturating_add(1), *since),
            _ => (1, Instant::now()),
        };
        let retry_at = (failures >= self.failures)
            .then(|| Instant::now() + self.backoff.delay(failures - self.failures + 1));
        *state = Health::Failing { failures, why, since, retry_at };
    }
}

impl CallGate for Record {
    fn before(&self, _call: &Call) -> Result<(), &'static str> {
        // Clients that were handed out before are held back too.
        match &*self.state() {
            Health::Failing { retry_at: Some(at), .. } if *at > Instant::now() => {
                Err("the tenant is unavailable")
            }
            _ => Ok(()),
        }
    }

    fn after(&self, call: &Call, answer: Answer, _took: Duration) -> Delivery {
        match answer {
            Answer::Status(status) if matches!(status.as_u16(), 502..=504) => {
                self.failed(format!("{call}: the load balancer says {}", status.as_u16()));
            }
            Answer::Status(_) => *self.state() = Health::Answering,
            Answer::Disconnected => self.failed(format!("{call}: cannot connect")),
            Answer::TimedOut => self.failed(format!("{call}: no answer in time")),
        }
        Delivery::Deliver
    }
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

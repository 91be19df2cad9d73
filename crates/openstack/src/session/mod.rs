//! Sessions: one credential, one region, one pool of connections.

mod catalog;
mod exchange;
mod flow;
mod login;
mod pause;
mod request;
mod tls;
mod transport;

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use flow::Paging;
pub(crate) use request::{Request, segment};

use crate::{
    Call, CallGate, CloudConfig, ComputeClient, Error, ImageClient, NetworkClient, ProjectId, Service, Verb,
};

/// The longest that any write takes by default. A leader's lease has to outlast it.
pub const LONGEST_WRITE: Duration = Duration::from_secs(30);

/// The longest that calls take, connecting and all, by what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Making a connection. A write that fails in this time was certainly not sent.
    pub connect: Duration,
    pub login: Duration,
    pub get: Duration,
    /// Reading one page of a list; no page is begun after this time either. A thousand servers take Nova tens of seconds.
    pub list: Duration,
    pub write: Duration,
    /// Making a server or a load balancer, and any change of a router: a busy cloud takes 20 s and then does it.
    pub slow_write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            login: Duration::from_secs(10),
            get: Duration::from_secs(10),
            list: Duration::from_secs(60),
            write: Duration::from_secs(15),
            slow_write: LONGEST_WRITE,
        }
    }
}

impl Limits {
    /// For who holds a lease that lasts no longer: every write ends within this time.
    #[must_use]
    pub fn with_writes_within(mut self, longest: Duration) -> Self {
        self.write = self.write.min(longest);
        self.slow_write = self.slow_write.min(longest);
        self
    }

    fn of(&self, call: &Call) -> Duration {
        match (call.verb, call.kind) {
            (Verb::Authenticate, _) => self.login,
            (Verb::Get, _) => self.get,
            (Verb::List, _) => self.list,
            (Verb::Create, "server" | "load-balancer" | "router")
            | (Verb::Update, "router" | "router/interface") => self.slow_write,
            (Verb::Create | Verb::Update | Verb::Delete, _) => self.write,
        }
    }
}

/// How a session behaves.
#[derive(Clone)]
pub struct SessionOptions {
    /// Asked about every request, in this order.
    pub gates: Vec<Arc<dyn CallGate>>,
    /// The longest that calls take.
    pub limits: Limits,
    /// How often a read or a login is tried, at least once.
    pub read_attempts: u32,
    /// The longest that is waited between two attempts, whatever the service asks for.
    pub patience: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            gates: Vec::new(),
            limits: Limits::default(),
            read_attempts: 3,
            patience: Duration::from_secs(1),
        }
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionOptions")
            .field("gates", &self.gates.len())
            .field("limits", &self.limits)
            .field("read_attempts", &self.read_attempts)
            .field("patience", &self.patience)
            .finish()
    }
}

/// A way into a cloud. Cloning shares it.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    config: CloudConfig,
    options: SessionOptions,
    transport: transport::Transport,
    logins: login::Logins,
    pauses: pause::Pauses,
}

impl Session {
    /// Prepares; nothing is sent.
    pub fn new(config: CloudConfig, options: SessionOptions) -> Result<Self, Error> {
        let tls = tls::client(config.is_verified, config.cacert.as_deref())?;
        let transport = transport::Transport::new(tls, options.limits.connect);
        let (logins, pauses) = (login::Logins::default(), pause::Pauses::default());
        Ok(Self { inner: Arc::new(Inner { config, options, transport, logins, pauses }) })
    }

    /// Logs in unless it is. Bad credentials show here, before anything is done with them.
    pub async fn authenticate(&self) -> Result<(), Error> {
        self.login(None).await.map(drop)
    }

    /// The project the credentials belong to.
    pub async fn project_id(&self) -> Result<ProjectId, Error> {
        let login = self.login(None).await?;
        login.project.clone().ok_or(Error::Config(crate::ConfigError::Missing("auth.project_name")))
    }

    /// The region whose network service is called; empty where the catalogue has none.
    pub async fn region(&self) -> Result<String, Error> {
        let (login, config) = (self.login(None).await?, &self.inner.config);
        let region = login.catalog.region(Service::Network, config.region.as_deref(), config.interface);
        // Keystone's regions have 255 characters at most.
        Ok(region.unwrap_or_default().chars().take(255).collect())
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &CloudConfig {
        &self.inner.config
    }

    pub fn compute(&self) -> ComputeClient {
        ComputeClient::new(self.clone())
    }

    pub fn network(&self) -> NetworkClient {
        NetworkClient::new(self.clone())
    }

    pub fn image(&self) -> ImageClient {
        ImageClient::new(self.clone())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

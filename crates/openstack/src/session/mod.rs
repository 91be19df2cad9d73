//! Sessions: one credential, one region, one pool of connections.

mod catalog;
mod exchange;
mod flow;
mod login;
mod request;
mod tls;
mod transport;

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use flow::Paging;
pub(crate) use request::{Request, segment};

use crate::{CallGate, CloudConfig, ComputeClient, Error, ImageClient, NetworkClient, ProjectId};

/// How a session behaves.
#[derive(Clone)]
pub struct SessionOptions {
    /// Asked about every request, in this order.
    pub gates: Vec<Arc<dyn CallGate>>,
    /// The longest a read or a login takes, connecting and all.
    pub read_limit: Duration,
    /// The longest a write takes. Stays below what remains of a leader's lease.
    pub write_limit: Duration,
    /// The longest a connection takes to be made. A write that fails in this time was certainly not sent.
    pub connect_limit: Duration,
    /// How often a read or a login is tried, at least once.
    pub read_attempts: u32,
    /// The longest that is waited between two attempts, whatever the service asks for.
    pub patience: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            gates: Vec::new(),
            // A healthy API answers within a second or two; a lease lasts fifteen.
            read_limit: Duration::from_secs(10),
            write_limit: Duration::from_secs(10),
            connect_limit: Duration::from_secs(3),
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
            .field("read_limit", &self.read_limit)
            .field("write_limit", &self.write_limit)
            .field("connect_limit", &self.connect_limit)
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
}

impl Session {
    /// Prepares; nothing is sent.
    pub fn new(config: CloudConfig, options: SessionOptions) -> Result<Self, Error> {
        let tls = tls::client(config.is_verified, config.cacert.as_deref())?;
        let transport = transport::Transport::new(tls, options.connect_limit);
        Ok(Self { inner: Arc::new(Inner { config, options, transport, logins: login::Logins::default() }) })
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

    /// The configuration it was made from.
    pub fn config(&self) -> &CloudConfig {
        &self.inner.config
    }

    /// Nova.
    pub fn compute(&self) -> ComputeClient {
        ComputeClient::new(self.clone())
    }

    /// Neutron.
    pub fn network(&self) -> NetworkClient {
        NetworkClient::new(self.clone())
    }

    /// Glance.
    pub fn image(&self) -> ImageClient {
        ImageClient::new(self.clone())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

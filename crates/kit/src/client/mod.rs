//! Clients: one for the management cluster, one per tenant, and [`get_plain`] for what is no API server.
//!
//! [`CallLayer`] names, gates and limits the calls of both. kube's own retries are off: they would hold a worker for
//! minutes behind an API server that answers 503, and repeat a POST after a 504. The caller decides what to repeat, and
//! the controller loop backs off.

mod breaker;
mod kubeconfig;
mod list;
mod plain;
mod spare;
mod tenant;

use std::{sync::Arc, time::Duration};

use kube::{Client, Config, client::ClientBuilder};

pub use breaker::Health;
pub use kubeconfig::connection;
pub use list::{Bounds, TooMany, list_bounded};
pub use plain::{find_plain, get_plain};

pub use tenant::{Connection, KubeconfigSource, TenantOptions, Tenants};

use crate::{
    call::{CallGate, CallLayer, Room},
    error::{Error, Result},
};

/// The management cluster's API server is near and usually healthy; a list of thousands takes seconds.
pub const MANAGEMENT_CALL_LIMIT: Duration = Duration::from_secs(30);
/// A page of 500 of the largest objects that etcd takes would be larger; pages of real objects are a few MiB.
pub const MANAGEMENT_ANSWER_LIMIT: usize = 128 << 20;

/// How a client is made.
#[derive(Clone)]
pub struct ClientOptions {
    /// No call takes longer.
    pub call_limit: Duration,
    /// No write takes longer; the call limit where that is shorter.
    pub write_limit: Duration,
    /// No connection attempt takes longer.
    pub connect_limit: Duration,
    /// No answer has more bytes.
    pub answer_limit: usize,
    /// Room for the answers, where the server is not trusted.
    pub room: Option<Room>,
    /// Whether it is one of a thousand clients, most of which rest: see `spare`.
    pub is_spare: bool,
    /// Who is asked about each call, in order.
    pub gates: Vec<Arc<dyn CallGate>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            call_limit: MANAGEMENT_CALL_LIMIT,
            write_limit: MANAGEMENT_CALL_LIMIT,
            connect_limit: Duration::from_secs(5),
            answer_limit: MANAGEMENT_ANSWER_LIMIT,
            room: None,
            is_spare: false,
            gates: Vec::new(),
        }
    }
}

impl ClientOptions {
    /// Adds a gate.
    #[must_use]
    pub fn gate(mut self, gate: impl CallGate) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// Sets the time limit of writes.
    #[must_use]
    pub fn write_limit(mut self, limit: Duration) -> Self {
        self.write_limit = limit;
        self
    }

    /// Sets the time limit of calls.
    #[must_use]
    pub fn call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }
}

/// A client with named, gated and limited calls and no hidden retries. Call it inside the runtime it is used in.
pub fn client(mut config: Config, options: &ClientOptions) -> Result<Client> {
    config.default_retry = false;
    config.connect_timeout = Some(options.connect_limit);
    // The layer limits whole calls; this would only cut watches that are quiet.
    config.read_timeout = None;
    let failed = |source| Error::api("build a client", source);
    let layer = CallLayer::new(options.call_limit, options.gates.iter().cloned())
        .write_limit(options.write_limit)
        .answer_limit(options.answer_limit)
        .room(options.room.clone());
    // Only kube's own builder knows proxies.
    if options.is_spare && config.proxy_url.is_none() {
        return Ok(spare::builder(&config).map_err(failed)?.with_layer(&layer).build());
    }
    Ok(ClientBuilder::try_from(config).map_err(failed)?.with_layer(&layer).build())
}

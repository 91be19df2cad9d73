//! The driver whose servers are namespaced machines of this host, with the kernel's own networking.
//!
//! ```text
//! private network (exists without us)   bridge ── router's external leg
//! router                                namespace: gateway addresses, floating addresses, translation
//! network                               namespace: bridge, security groups, metadata service
//! server                                machine: veth with its port's addresses, cloud-init inside
//! ```
//!
//! Because each network and router has a namespace, address ranges of networks may overlap, and cleaning up means
//! deleting namespaces. All of it belongs to one environment of `hangar_machine`: removing the environment removes this
//! too, also when the driver's process is gone.
//!
//! Passes (`work`) compare with what exists, so a driver that was killed half way, or a host that was restarted, needs
//! no special case. When a pass succeeds, nothing is left of servers, routers and networks that were not in it.

pub mod cloud_init;
mod image;
mod metadata;
mod names;
mod network;
mod process;
mod router;
mod rules;
mod server;
mod settings;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use hangar_machine::net::{conntrack::Conntrack, nft::Nft};
use hangar_machine::{Environment, Machine};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use self::work::{DriverMemory, Work};
use super::{Driver, Event};
use crate::topology::Topology;

pub use self::image::{KUBERNETES_VERSION, MachineImage, Seed};
pub use self::process::{ProcessConfig, ProcessError, serve};
pub use self::settings::{Settings, Tool};

/// The part of a console that is returned.
const CONSOLE: u64 = 256 << 10;
/// What makes up a console, in order.
const CONSOLE_LOGS: [&str; 2] = ["supervisor", "cloud-init-output"];

/// Machines of this host as servers.
#[derive(Clone)]
pub struct Namespaces {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    environment: Environment,
    nft: Nft,
    conntrack: Conntrack,
    memory: Mutex<DriverMemory>,
}

impl Namespaces {
    /// A driver; nothing is made yet.
    pub fn new(settings: Settings) -> hangar_machine::Result<Self> {
        let (environment, nft, conntrack) = (settings.environment()?, settings.nft(), settings.conntrack());
        let memory = Mutex::new(DriverMemory::new());
        Ok(Self { inner: Arc::new(Inner { settings, environment, nft, conntrack, memory }) })
    }

    /// The machine of a server, whether it exists or not.
    pub fn machine(&self, server: Uuid) -> hangar_machine::Result<Machine> {
        Ok(self.inner.environment.machine(&names::server(server)?))
    }
}

impl Inner {
    fn realise(
        &self,
        topology: &Topology,
        events: &UnboundedSender<Event>,
        runtime: &Handle,
    ) -> Result<(), String> {
        let fabric = self
            .environment
            .fabric(&self.settings.fabric)
            .map_err(|error| format!("external network: {error}"))?;
        // Whoever panicked left nothing that the next pass would not see.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        Work {
            topology,
            settings: &self.settings,
            environment: &self.environment,
            fabric,
            nft: &self.nft,
            conntrack: &self.conntrack,
            runtime,
            events,
            memory: &mut memory,
        }
        .run()
    }

    fn console(&self, server: Uuid) -> String {
        let Ok(name) = names::server(server) else { return String::new() };
        let machine = self.environment.machine(&name);
        let logs = CONSOLE_LOGS.iter().map(|log| machine.logs(log, Some(CONSOLE)).unwrap_or_default());
        logs.collect()
    }
}

impl Driver for Namespaces {
    async fn realise(&self, topology: &Topology, events: &UnboundedSender<Event>) -> Result<(), String> {
        let (inner, topology, events) = (Arc::clone(&self.inner), topology.clone(), events.clone());
        let runtime = Handle::current();
        let pass = tokio::task::spawn_blocking(move || inner.realise(&topology, &events, &runtime));
        pass.await.map_err(|error| error.to_string())?
    }

    async fn console(&self, server: Uuid) -> String {
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || inner.console(server)).await.unwrap_or_default()
    }
}

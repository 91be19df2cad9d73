//! One pass: brings the host to the topology.
//!
//! Everything is compared with what exists, by names that follow from ids; what an earlier pass remembers only saves
//! work. A failure with one object does not keep the others from being made or removed: failures are collected.
//!
//! The order: servers that are not wanted are removed first, because their addresses may belong to others now; networks
//! get their rules before anything is plugged in, so no machine is ever reachable unfiltered; namespaces that are not
//! wanted are removed when they are empty; servers are made last.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hangar_machine::net::{Fabric, conntrack::Conntrack, nft::Nft};
use hangar_machine::{Environment, Result};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use super::metadata::Services;
use super::names::{self, Meaning};
use super::settings::Settings;
use crate::driver::Event;
use crate::topology::Topology;

/// What is memory between passes.
pub(super) struct DriverMemory {
    pub(super) services: Services,
    /// Rules by namespace: the kernel's number of the namespace, and the text.
    pub(super) rules: BTreeMap<PathBuf, (u64, String)>,
    /// The topology of the last pass.
    pub(super) before: Option<Topology>,
    /// The last event of each server.
    pub(super) said: BTreeMap<Uuid, Event>,
    /// Servers whose machines have all they need.
    pub(super) prepared: BTreeSet<Uuid>,
    /// Servers that could not be made. They are not tried again, as no cloud does.
    pub(super) failed: BTreeSet<Uuid>,
}

impl DriverMemory {
    pub(super) fn new() -> Self {
        Self {
            services: Services::new(),
            rules: BTreeMap::new(),
            before: None,
            said: BTreeMap::new(),
            prepared: BTreeSet::new(),
            failed: BTreeSet::new(),
        }
    }
}

/// A pass and what it works with.
pub(super) struct Work<'a> {
    pub(super) topology: &'a Topology,
    pub(super) settings: &'a Settings,
    pub(super) environment: &'a Environment,
    pub(super) fabric: Fabric,
    pub(super) nft: &'a Nft,
    pub(super) conntrack: &'a Conntrack,
    pub(super) runtime: &'a Handle,
    pub(super) events: &'a UnboundedSender<Event>,
    pub(super) memory: &'a mut DriverMemory,
}

impl Work<'_> {
    /// Does all of it. Fails with everything that failed, except for servers that cannot be made: those are events.
    pub(super) fn run(&mut self) -> std::result::Result<(), String> {
        let topology = self.topology;
        let mut failures = Failures::default();
        self.memory.services.tell(topology);
        self.remove_servers(&mut failures);
        let mut broken = BTreeSet::new();
        for (id, network) in &topology.networks {
            if !failures.note(&format!("network {id}"), self.ensure_network(*id, network)) {
                broken.insert(*id);
            }
        }
        for (id, router) in &topology.routers {
            failures.note(&format!("router {id}"), self.ensure_router(*id, router));
        }
        self.remove_namespaces(&mut failures);
        for (id, server) in &topology.servers {
            let network = |port: &Uuid| topology.ports.get(port).map(|port| port.network);
            let waits = server.ports.iter().filter_map(network).any(|network| broken.contains(&network));
            if !waits {
                failures.note(&format!("server {id}"), self.ensure_server(*id, server));
            }
        }
        self.memory.before = Some(topology.clone());
        failures.result()
    }

    /// Removes machines of servers that are not wanted, and sends `Gone` for every such server.
    fn remove_servers(&mut self, failures: &mut Failures) {
        let mut unwanted: BTreeSet<Uuid> = self.memory.said.keys().copied().collect();
        match self.environment.machines() {
            Ok(machines) => {
                unwanted.extend(machines.iter().filter_map(|status| match names::meaning(&status.name) {
                    Some(Meaning::Server(id)) => Some(id),
                    _ => None,
                }));
            }
            Err(error) => {
                failures.note("servers", Err(error));
            }
        }
        unwanted.retain(|id| !self.topology.servers.contains_key(id));
        for id in unwanted {
            failures.note(&format!("end of server {id}"), self.remove_server(id));
        }
    }

    fn remove_namespaces(&mut self, failures: &mut Failures) {
        let mut unwanted: BTreeSet<Uuid> = self.memory.services.networks().into_iter().collect();
        let names = self.environment.netns_names().unwrap_or_else(|error| {
            failures.note("namespaces", Err(error));
            Vec::new()
        });
        for name in names {
            match names::meaning(&name) {
                Some(Meaning::Network(id)) => {
                    unwanted.insert(id);
                }
                Some(Meaning::Router(id)) if !self.topology.routers.contains_key(&id) => {
                    failures.note(&format!("end of router {id}"), self.remove_router(id));
                }
                _ => {}
            }
        }
        unwanted.retain(|id| !self.topology.networks.contains_key(id));
        for id in unwanted {
            failures.note(&format!("end of network {id}"), self.remove_network(id));
        }
    }

    /// Sends an event that was not sent before.
    pub(super) fn say(&mut self, id: Uuid, event: Event) {
        if self.memory.said.get(&id) != Some(&event) {
            // Nobody listens any more: then nobody misses it.
            let _ = self.events.send(event.clone());
            self.memory.said.insert(id, event);
        }
    }
}

#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    /// `true` when nothing failed.
    fn note(&mut self, what: &str, result: Result<()>) -> bool {
        match result {
            Ok(()) => true,
            Err(error) => {
                self.0.push(format!("{what}: {error}"));
                false
            }
        }
    }

    fn result(self) -> std::result::Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0.join("; ")) }
    }
}

//! The phases of management machines: certificates first, then each machine with its images, then kubelet and what it
//! starts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_machine::net::Fabric;
use hangar_machine::{Machine, MachineSpec, MachineState, Name, ServiceState};
use hangar_parts::packages::Packages;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::addons::gateway;
use crate::addresses::Addresses;
use crate::error::{At, Error, Result};
use crate::images::{self, ImageStore, Listing};
use crate::link;
use crate::linked_programs::LinkedPrograms;
use crate::management::control_plane::Component;
use crate::management::credentials::{self, write_private};
use crate::management::{Node, control_plane, kubelet, machine as description, startup};
use crate::one_host::{OneHost, UpOptions};
use crate::phases::{Done, blocking};
use crate::resolver::{self, ResolverOptions, Wildcard};

const KUBELET: &str = "kubelet";

/// What the phases before have made.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) packages: Packages,
    /// What a machine's container runtime starts with.
    pub(super) images: ImageStore,
    pub(super) fabric: Fabric,
    pub(super) addresses: Addresses,
}

/// What the machine's phase found, for the phases after it.
pub(super) struct Started {
    /// The images that containerd has; those of other nodes are the same.
    pub(super) images: Listing,
    /// What the control plane's manifests depend on.
    pub(super) manifests: control_plane::Options,
    pub(super) kubelets: Kubelets,
    /// Host files that machines see.
    sources: Vec<PathBuf>,
}

/// When kubelets were started again, by node, if they were.
pub(super) type Kubelets = BTreeMap<String, Timestamp>;

/// A machine that runs, with images and kubelet's configuration.
struct Raised {
    machine: Machine,
    images: Listing,
    sources: Vec<PathBuf>,
    /// What had to be done.
    changes: Vec<String>,
    has_just_started: bool,
    /// The seals of what services would be started with now.
    services: BTreeMap<String, String>,
    /// Services that were started with something else.
    outdated: Vec<String>,
}

impl OneHost {
    pub(super) async fn credentials(&self, options: &UpOptions, addresses: Addresses) -> Result<Done<()>> {
        let (host, nodes) = (self.clone(), options.node_count());
        blocking(move || {
            host.layout.create(nodes)?;
            let minted = credentials::ensure(&host.layout, nodes, addresses.management, Timestamp::now())?;
            let mut written = minted.written;
            written +=
                usize::from(write_private(&host.layout.kubeconfig(), minted.administrator.as_bytes())?);
            let text = match minted.renewed.as_slice() {
                [] if written == 0 => "complete".to_owned(),
                [] => format!("{written} files written"),
                renewed => format!("renewed: {}", renewed.join(", ")),
            };
            Ok(Done::new((), text, written > 0))
        })
        .await
    }

    pub(super) async fn machine(&self, options: &UpOptions, prepared: &Prepared) -> Result<Done<Started>> {
        let (host, options, prepared) = (self.clone(), options.clone(), prepared.clone());
        blocking(move || host.machine_now(&options, &prepared)).await
    }

    fn machine_now(&self, options: &UpOptions, prepared: &Prepared) -> Result<Done<Started>> {
        self.remember_asked(options)?;
        self.place_program()?;
        let mut raised = self.raise(options, prepared, Node::FIRST)?;
        let resolver = resolver::file(&resolver_options(options, prepared));
        write_if_changed(&raised.machine, &resolver.path, resolver.content.as_bytes())?;
        let manifests = self.manifest_options(options, prepared.addresses, &raised.images)?;
        let pods = if raised.has_just_started { Vec::new() } else { self.outdated_pods(&manifests)? };
        let mut again = Vec::new();
        if !pods.is_empty() {
            raised.machine.stop_service(&Name::new(KUBELET)?)?;
            again.extend(self.end_pods(&raised.machine, &pods)?.into_iter().map(str::to_owned));
            // It is stopped now, and starts below.
            raised.outdated.retain(|name| name != KUBELET);
        }
        self.write_manifests(&Component::FIRST, &manifests)?;
        let mut kubelets = Kubelets::new();
        self.start_again(Node::FIRST, &mut raised, again, &mut kubelets)?;
        let Raised { images, sources, changes, .. } = raised;
        let changed = !changes.is_empty();
        let text = if changed { changes.join(", ") } else { "running".to_owned() };
        Ok(Done::new(Started { images, manifests, kubelets, sources }, text, changed))
    }

    /// The machines of all nodes but the first.
    pub(super) async fn machines(&self, options: &UpOptions, prepared: &Prepared) -> Result<Done<Kubelets>> {
        let (host, options, prepared) = (self.clone(), options.clone(), prepared.clone());
        blocking(move || {
            let (mut texts, mut kubelets) = (Vec::new(), Kubelets::new());
            for node in Node::some(options.node_count()).filter(|node| !node.is_first()) {
                let mut raised = host.raise(&options, &prepared, node)?;
                host.start_again(node, &mut raised, Vec::new(), &mut kubelets)?;
                if !raised.changes.is_empty() {
                    texts.push(format!("{node} {}", raised.changes.join(", ")));
                }
            }
            let changed = !texts.is_empty();
            let text = if changed { texts.join("; ") } else { "running".to_owned() };
            Ok(Done::new(kubelets, text, changed))
        })
        .await
    }

    /// Once all machines run: drops programs of older pins, which none of them was made from.
    pub(super) fn forget_programs(&self, started: &Started) -> Result<()> {
        let linked = LinkedPrograms::new(self.parts.cache(), self.layout.linked_programs());
        // The first has all that the others have.
        linked.forget_others(started.sources.iter().map(PathBuf::as_path))
    }

    /// The machine of a node with all that kubelet needs to start.
    fn raise(&self, options: &UpOptions, prepared: &Prepared, node: Node) -> Result<Raised> {
        let linked = LinkedPrograms::new(self.parts.cache(), self.layout.linked_programs());
        let spec = description::spec(&description::Options {
            node,
            parts: &self.parts,
            linked: &linked,
            packages: &prepared.packages,
            kubernetes: options.kubernetes,
            layout: &self.layout,
            fabric: &prepared.fabric,
            addresses: prepared.addresses,
            own: &self.own,
        })?;
        let sources: Vec<PathBuf> = spec.binds.iter().map(|bind| bind.source.clone()).collect();
        let (machine, mut changes) = self.running(spec, node)?;
        let has_just_started = !changes.is_empty();
        let is_filled = seed(&machine, &prepared.images)?;
        if is_filled {
            changes.push("images linked".to_owned());
        }
        images::wait_for_runtime(&machine)?;
        let record = self.layout.node(node).images();
        let images = self.settle_images(options, prepared, &machine, &record, is_filled, &mut changes)?;
        let configuration = yaml(&kubelet::configuration())?;
        let path = Path::new(kubelet::CONFIGURATION_PATH);
        let had_configuration = machine.read_file(path).is_ok();
        let is_configured = write_if_changed(&machine, path, configuration.as_bytes())?;
        if is_configured {
            changes.push("kubelet configured".to_owned());
        }
        let services = self.services(node, &configuration)?;
        let mut started = if has_just_started { services.clone() } else { self.started_with(node) };
        if had_configuration && is_configured {
            // Also in a machine that has just started: it had the older one, and kubelet did not wait.
            started.remove(KUBELET);
        }
        let outdated = startup::outdated(&started, &services).into_iter().map(str::to_owned).collect();
        Ok(Raised { machine, images, sources, changes, has_just_started, services, outdated })
    }

    /// Starts outdated services again, and what is stopped. `again` is what was ended before.
    fn start_again(
        &self,
        node: Node,
        raised: &mut Raised,
        mut again: Vec<String>,
        kubelets: &mut Kubelets,
    ) -> Result<()> {
        let machine = &raised.machine;
        for name in &raised.outdated {
            machine.restart_service(&Name::new(name.clone())?)?;
            again.push(name.clone());
        }
        for service in machine.services()? {
            // By this run, or by one that was killed before it came here.
            if matches!(service.state, ServiceState::Stopped | ServiceState::Stopping) {
                machine.start_service(&service.name)?;
                again.push(service.name.to_string());
            }
        }
        again.sort();
        again.dedup();
        // Last: what a killed run did not come to is done by the next.
        let record = json!(raised.services).to_string();
        write_private(&self.layout.node(node).services(), record.as_bytes())?;
        if again.iter().any(|name| name == KUBELET) {
            kubelets.insert(node.name(), Timestamp::now());
        }
        if !again.is_empty() {
            raised.changes.push(format!("started again: {}", again.join(", ")));
        }
        Ok(())
    }

    /// The seals of what services would be started with now.
    fn services(&self, node: Node, configuration: &str) -> Result<BTreeMap<String, String>> {
        let program = self.layout.programs().join(description::OWN_PROGRAM);
        let found = fs::metadata(&program).at("read", &program)?;
        let program = format!("{} {:?}", found.len(), found.modified().ok());
        let kubelet = self.seal(node, startup::KUBELET_FILES, ("configuration", configuration))?;
        let provisioner = self.seal(node, startup::PROVISIONER_FILES, ("program", &program))?;
        Ok(BTreeMap::from([
            (KUBELET.to_owned(), kubelet),
            (description::PROVISIONER.to_owned(), provisioner),
        ]))
    }

    /// The seals of what services were started with, as far as it is known.
    fn started_with(&self, node: Node) -> BTreeMap<String, String> {
        let record = fs::read(self.layout.node(node).services()).ok();
        record.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Puts our own program where machines see it.
    fn place_program(&self) -> Result<()> {
        let (source, target) = (&self.own.program, self.layout.programs().join(description::OWN_PROGRAM));
        let found = fs::metadata(source).at("read", source)?;
        let is_same = |other: &fs::Metadata| {
            other.len() == found.len() && other.modified().ok() == found.modified().ok()
        };
        if fs::metadata(&target).is_ok_and(|other| is_same(&other)) {
            return Ok(());
        }
        link::place(source, &target)
    }

    /// The machine, running, made from this description. What had to be done.
    fn running(&self, spec: MachineSpec, node: Node) -> Result<(Machine, Vec<String>)> {
        let machine = self.environment.machine(&spec.name);
        let state = machine.state()?;
        let layout = self.layout.node(node);
        let hash_path = layout.hash();
        let hash = hash(&spec)?;
        let is_same = fs::read_to_string(&hash_path).is_ok_and(|known| known == hash);
        let stays = match state {
            Some(MachineState::Running(_)) if is_same => return Ok((machine, Vec::new())),
            // Another process starts it right now.
            Some(MachineState::Changing) if is_same => {
                machine.stop(Duration::ZERO)?;
                true
            }
            Some(MachineState::Stopped) if is_same => true,
            Some(_) => {
                machine.delete()?;
                false
            }
            None => false,
        };
        if node.is_first() {
            self.withhold_manifests()?;
        }
        if stays {
            machine.start()?;
            return Ok((machine, vec!["started".to_owned()]));
        }
        let was_there = state.is_some();
        // First: a machine without a hash is made again, one with a wrong hash would not be. The same with its images.
        let _ = fs::remove_file(&hash_path);
        let _ = fs::remove_file(layout.images());
        let machine = self.environment.create_machine(spec)?;
        write_private(&hash_path, hash.as_bytes())?;
        Ok((machine, vec![if was_there { "made again" } else { "made" }.to_owned()]))
    }

    /// Imports what the machine lacks, and what it has in another form. What it has then.
    fn settle_images(
        &self,
        options: &UpOptions,
        prepared: &Prepared,
        machine: &Machine,
        record: &Path,
        is_filled: bool,
        changes: &mut Vec<String>,
    ) -> Result<Listing> {
        let present = images::present(machine)?;
        let store = prepared.images.base_name();
        let is_current = is_filled || fs::read_to_string(record).is_ok_and(|known| known == store);
        let is_missing = |reference: &str| present.digest(reference).is_none();
        let (mut wanted, mut replaced) = (Vec::new(), Vec::new());
        for upstream in options.upstream_images() {
            let reference = upstream.reference();
            // Digests are asked for only when the store is another one: to know them is to read everything.
            if is_missing(&reference) || !is_current {
                let image = upstream.image(&self.parts, &prepared.packages)?;
                if is_missing(&reference) {
                    wanted.push(image);
                } else if present.digest(&reference) != Some(image.digest()?.as_str()) {
                    replaced.push(reference);
                    wanted.push(image);
                }
            }
        }
        wanted.extend(options.own_images.iter().filter(|image| is_missing(image.reference())).cloned());
        if !wanted.is_empty() {
            // What is not finished is compared again.
            let _ = fs::remove_file(record);
            images::import(machine, &wanted)?;
        }
        write_private(record, store.as_bytes())?;
        if wanted.is_empty() {
            return Ok(present);
        }
        if wanted.len() > replaced.len() {
            changes.push("images imported".to_owned());
        }
        if !replaced.is_empty() {
            changes.push(format!("images replaced: {}", replaced.join(", ")));
        }
        images::present(machine)
    }
}

fn resolver_options(options: &UpOptions, prepared: &Prepared) -> ResolverOptions {
    let has_way_out = prepared.fabric.outside_obstacle().is_ok_and(|obstacle| obstacle.is_none());
    let upstream = has_way_out.then(|| prepared.fabric.names());
    let wildcard = options
        .gateway
        .then(|| Wildcard { domain: gateway::DOMAIN.to_owned(), address: prepared.addresses.gateway });
    ResolverOptions { address: prepared.addresses.management, port: resolver::PORT, upstream, wildcard }
}

/// Gives containerd its images, unless it has them. It waits for the marker, so nothing uses incomplete images.
fn seed(machine: &Machine, store: &ImageStore) -> Result<bool> {
    if is_seeded(machine) {
        return Ok(false);
    }
    store.fill(&images::directory(machine))?;
    let marker = seed_marker(machine);
    fs::write(&marker, "").at("write", &marker)?;
    Ok(true)
}

/// Whether the machine's containerd has images of its own already, which a store would replace.
pub(super) fn is_seeded(machine: &Machine) -> bool {
    seed_marker(machine).exists()
}

fn seed_marker(machine: &Machine) -> PathBuf {
    images::directory(machine).join(Path::new(description::SEEDED).file_name().unwrap_or_default())
}

fn write_if_changed(machine: &Machine, path: &Path, content: &[u8]) -> Result<bool> {
    if machine.read_file(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    machine.write_file(path, content, 0o644)?;
    Ok(true)
}

fn hash(spec: &MachineSpec) -> Result<String> {
    let failed =
        |error: serde_json::Error| Error::Rendering { what: "a machine", message: error.to_string() };
    let text = serde_json::to_vec(spec).map_err(failed)?;
    let number =
        Sha256::digest(text).iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    Ok(format!("{number:032x}"))
}

pub(super) fn yaml(value: &Value) -> Result<String> {
    serde_saphyr::to_string(value)
        .map_err(|error| Error::Rendering { what: "a manifest", message: error.to_string() })
}

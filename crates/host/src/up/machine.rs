//! The management machine: certificates and manifests first, then the machine with its images, then kubelet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_machine::net::Fabric;
use hangar_machine::{Machine, MachineSpec, MachineState, Name};
use hangar_parts::images::{Image, Upstream};
use hangar_parts::packages::Packages;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::addons::gateway;
use crate::addresses::Addresses;
use crate::error::{At, Error, Result};
use crate::images::{self, Store};
use crate::link;
use crate::management::credentials::{self, write_private};
use crate::management::{control_plane, kubelet, machine as description};
use crate::one_host::{OneHost, UpOptions};
use crate::resolver::{self, ResolverOptions, Wildcard};
use crate::steps::{Done, blocking};

/// What the steps before have made.
pub(super) struct Prepared {
    pub(super) packages: Packages,
    pub(super) images: Images,
    pub(super) fabric: Fabric,
    pub(super) addresses: Addresses,
}

/// What a machine's container runtime starts with.
pub(super) struct Images {
    pub(super) store: Store,
    /// Nothing has to be imported after it.
    pub(super) has_own: bool,
}

impl OneHost {
    pub(super) async fn credentials(&self, options: &UpOptions, addresses: Addresses) -> Result<Done<()>> {
        let (host, options) = (self.clone(), options.clone());
        blocking(move || {
            host.layout.create()?;
            let minted =
                credentials::ensure(&host.layout.kubernetes(), addresses.management, Timestamp::now())?;
            let mut written = minted.written;
            written +=
                usize::from(write_private(&host.layout.kubeconfig(), minted.administrator.as_bytes())?);
            written +=
                host.write_manifests(control_plane::first_manifests(&manifest_options(&options, addresses)))?;
            let text = if written == 0 { "all there".to_owned() } else { format!("{written} files written") };
            Ok(Done::new((), text, written > 0))
        })
        .await
    }

    /// Writes what kubelet starts as soon as it sees it. How many were new or changed.
    pub(super) fn write_manifests(&self, manifests: Vec<(&'static str, Value)>) -> Result<usize> {
        let directory = self.layout.kubernetes().join("manifests");
        let mut written = 0;
        for (name, manifest) in manifests {
            written += usize::from(write_private(&directory.join(name), yaml(&manifest)?.as_bytes())?);
        }
        Ok(written)
    }

    pub(super) async fn machine(&self, options: &UpOptions, prepared: Prepared) -> Result<Done<()>> {
        let host = self.clone();
        let options = options.clone();
        blocking(move || host.machine_now(&options, &prepared)).await
    }

    fn machine_now(&self, options: &UpOptions, prepared: &Prepared) -> Result<Done<()>> {
        let spec = description::spec(&description::Options {
            parts: &self.parts,
            packages: &prepared.packages,
            kubernetes: options.kubernetes,
            layout: &self.layout,
            fabric: &prepared.fabric,
            addresses: prepared.addresses,
            own: &self.own,
        })?;
        let is_other_program = self.place_program()?;
        let (machine, mut changes) = self.running(spec)?;
        if is_other_program && changes.is_empty() {
            changes.push("own program replaced");
            machine.restart_service(&Name::new(description::PROVISIONER)?)?;
        }
        let is_filled = seed(&machine, &prepared.images.store)?;
        if is_filled {
            changes.push("images linked");
        }
        images::wait_for_runtime(&machine)?;
        let is_whole = is_filled && prepared.images.has_own;
        if !is_whole && self.import_missing(options, &prepared.packages, &machine)? {
            changes.push("images imported");
        }
        let resolver = resolver::file(&resolver_options(options, prepared));
        write_if_changed(&machine, &resolver.path, resolver.content.as_bytes())?;
        let configuration = yaml(&kubelet::configuration())?;
        let path = Path::new(kubelet::CONFIGURATION_PATH);
        let had_configuration = machine.read_file(path).is_ok();
        if write_if_changed(&machine, path, configuration.as_bytes())? {
            changes.push("kubelet configured");
            if had_configuration {
                machine.restart_service(&Name::new("kubelet")?)?;
            }
        }
        let changed = !changes.is_empty();
        let text = if changed { changes.join(", ") } else { "running".to_owned() };
        Ok(Done::new((), text, changed))
    }

    /// Puts our own program where the machine sees it. `true` when it is another one than before.
    fn place_program(&self) -> Result<bool> {
        let (source, target) = (&self.own.program, self.layout.programs().join(description::OWN_PROGRAM));
        let found = fs::metadata(source).at("read", source)?;
        let is_same = |other: &fs::Metadata| {
            other.len() == found.len() && other.modified().ok() == found.modified().ok()
        };
        if fs::metadata(&target).is_ok_and(|other| is_same(&other)) {
            return Ok(false);
        }
        link::place(source, &target)?;
        Ok(true)
    }

    /// The machine, running, made from this description.
    fn running(&self, spec: MachineSpec) -> Result<(Machine, Vec<&'static str>)> {
        let machine = self.environment.machine(&spec.name);
        let state = machine.state()?;
        if !matches!(state, Some(MachineState::Running(_))) {
            self.withhold_manifests()?;
        }
        let hash_path = self.layout.machine_hash();
        let hash = hash(&spec)?;
        let is_same = fs::read_to_string(&hash_path).is_ok_and(|known| known == hash);
        match state {
            Some(MachineState::Running(_)) if is_same => return Ok((machine, Vec::new())),
            Some(MachineState::Stopped) if is_same => {
                machine.start()?;
                return Ok((machine, vec!["started"]));
            }
            // Another process starts it right now.
            Some(MachineState::Changing) if is_same => {
                machine.stop(Duration::ZERO)?;
                machine.start()?;
                return Ok((machine, vec!["started"]));
            }
            Some(_) => {
                machine.delete()?;
            }
            None => {}
        }
        let was_there = state.is_some();
        // First: a machine without a hash is made again, one with a wrong hash would not be.
        let _ = fs::remove_file(&hash_path);
        let machine = self.environment.create_machine(spec)?;
        write_private(&hash_path, hash.as_bytes())?;
        Ok((machine, vec![if was_there { "made again" } else { "made" }]))
    }

    /// Takes back what is written only once the API server is ready: after a restart it would be started beside it, fail
    /// and be held back by kubelet for longer each time.
    fn withhold_manifests(&self) -> Result<()> {
        let directory = self.layout.kubernetes().join("manifests");
        for name in control_plane::SECOND {
            let path = directory.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).at("remove", &path);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Images that the machine lacks: our own, and shared ones that were asked for after it was made.
    fn import_missing(&self, options: &UpOptions, packages: &Packages, machine: &Machine) -> Result<bool> {
        let present = images::present(machine)?;
        let is_missing = |reference: &str| !present.iter().any(|known| known == reference);
        let upstream: Vec<Upstream> =
            options.upstream_images().into_iter().filter(|image| is_missing(&image.reference())).collect();
        let mut missing: Vec<Image> =
            upstream.iter().map(|image| image.image(&self.parts, packages)).collect::<Result<_, _>>()?;
        missing.extend(options.own_images.iter().filter(|image| is_missing(image.reference())).cloned());
        if missing.is_empty() {
            return Ok(false);
        }
        images::import(machine, &missing)?;
        Ok(true)
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

pub(super) fn manifest_options(options: &UpOptions, addresses: Addresses) -> control_plane::Options {
    control_plane::Options {
        address: addresses.management,
        kubernetes: options.kubernetes,
        etcd: options.etcd,
    }
}

/// Gives containerd its images, unless it has them. It waits for the marker, so nobody uses what is half done.
fn seed(machine: &Machine, store: &Store) -> Result<bool> {
    if is_seeded(machine) {
        return Ok(false);
    }
    store.fill(&containerd_directory(machine))?;
    let marker = seed_marker(machine);
    fs::write(&marker, "").at("write", &marker)?;
    Ok(true)
}

/// Whether the machine's containerd has images of its own already, which a store would replace.
pub(super) fn is_seeded(machine: &Machine) -> bool {
    seed_marker(machine).exists()
}

fn containerd_directory(machine: &Machine) -> PathBuf {
    machine.directory().join("data/containerd")
}

fn seed_marker(machine: &Machine) -> PathBuf {
    containerd_directory(machine).join(Path::new(description::SEEDED).file_name().unwrap_or_default())
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

fn yaml(value: &Value) -> Result<String> {
    serde_saphyr::to_string(value)
        .map_err(|error| Error::Rendering { what: "a manifest", message: error.to_string() })
}

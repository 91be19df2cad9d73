//! The phases before there is a machine: programs, packages, images, a network.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use hangar_machine::net::{Fabric, nft::Nft};
use hangar_parts::BuildResult;
use hangar_parts::packages::{self, Packages};

use super::machine::is_seeded;
use crate::addresses::Addresses;
use crate::error::{At, Result};
use crate::images::{ImageStore, Maker};
use crate::management::Node;
use crate::one_host::{OneHost, UpOptions};
use crate::phases::{Done, blocking};
use crate::progress::{Phase, Progress};

impl OneHost {
    pub(super) async fn programs(
        &self,
        options: &UpOptions,
        progress: &Arc<dyn Progress>,
    ) -> Result<Done<()>> {
        let (parts, sets, progress) = (self.parts.clone(), options.sets(), Arc::clone(progress));
        blocking(move || {
            let mut tell = |text: &str| progress.detail(Phase::Programs, text);
            let results = parts.ensure_telling(&sets, &mut tell)?;
            let built = results.iter().filter(|result| !matches!(result, BuildResult::Present(_))).count();
            let text = if built == 0 { "complete".to_owned() } else { format!("{built} sets built") };
            Ok(Done::new((), text, built > 0))
        })
        .await
    }

    /// Those of machines, which are returned, and those of the cloud's servers: what cannot be had is told before
    /// anything is made.
    pub(super) async fn packages(&self, progress: &Arc<dyn Progress>) -> Result<Done<Packages>> {
        let (cache, progress) = (self.parts.cache().clone(), Arc::clone(progress));
        blocking(move || {
            let mut announced = false;
            let mut announce = |text: &str| {
                announced = true;
                progress.detail(Phase::Packages, text);
            };
            let packages = packages::ensure(&cache, packages::FOR_MACHINES, &mut announce)?;
            packages::ensure(&cache, packages::FOR_CLOUD_INIT, &mut announce)?;
            let text = if announced { "unpacked into the cache, nothing installed" } else { "complete" };
            Ok(Done::new(packages, text, announced))
        })
        .await
    }

    /// The images of machines that are still to be made; if all have some, only upstream's: the rest is imported.
    pub(super) async fn images(
        &self,
        options: &UpOptions,
        packages: &Packages,
        progress: &Arc<dyn Progress>,
    ) -> Result<Done<ImageStore>> {
        let maker =
            Maker { parts: self.parts.clone(), packages: packages.clone(), supervisor: self.supervisor() };
        let nodes = Node::some(options.node_count()).map(|node| self.node_machine(node));
        let are_seeded = nodes.collect::<Result<Vec<_>>>()?.iter().all(is_seeded);
        let (upstream, progress) = (options.upstream_images(), Arc::clone(progress));
        let own = if are_seeded { Vec::new() } else { options.own_images.clone() };
        blocking(move || {
            let mut announced = false;
            let store = maker.ensure(&upstream, &own, &mut |text| {
                announced = true;
                progress.detail(Phase::Images, text);
            })?;
            let text = if announced { "made" } else { "complete" };
            Ok(Done::new(store, text, announced))
        })
        .await
    }

    pub(super) async fn network(&self, options: &UpOptions, packages: &Packages) -> Result<Done<Fabric>> {
        let mut host = self.clone();
        if let Some(program) = packages.program("nft") {
            let nft = Nft::new(program).with("LD_LIBRARY_PATH", packages.library_path());
            host.environment = host.environment.with_nft(nft);
        }
        let options = options.clone();
        blocking(move || {
            // Held while a range is chosen, by all environments of this host, whatever their state directory: another
            // could choose the same range at this moment. On a directory that is always there, so nothing is left.
            let shared = Path::new("/run");
            let lock = File::open(shared).at("open", shared)?;
            lock.lock().at("lock", shared)?;
            let spec = host.free_range(&options)?;
            let is_new = host.environment.fabric(&spec.name).is_err();
            let fabric = host.environment.create_fabric(spec)?;
            let range = fabric.range();
            let text = format!("{range}, this host is {}", Addresses::of(range)?.host);
            Ok(Done::new(fabric, text, is_new))
        })
        .await
    }
}

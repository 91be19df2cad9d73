//! What has to be there before a machine can be: a host that can do it, programs, packages, images, a network.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use hangar_machine::net::{Fabric, FabricSpec, nft::Nft};
use hangar_machine::{Error as MachineError, Name};
use hangar_parts::Outcome;
use hangar_parts::packages::{self, Packages};

use crate::addresses::{self, Addresses};
use crate::error::{At, Error, Result};
use crate::images::{self, Store};
use crate::one_host::{FABRIC, OneHost, UpOptions};
use crate::progress::{Progress, Step};
use crate::steps::{Done, blocking};

/// Logs, databases and a few volumes. Programs and images are accounted for where they are made.
const NEEDED_MEBIBYTES: u64 = 2048;

impl OneHost {
    pub(super) async fn preflight(&self) -> Result<Done<()>> {
        let state = self.environment.state().to_owned();
        blocking(move || {
            hangar_machine::host::check_privileges()?;
            let existed = state.exists();
            fs::create_dir_all(&state).at("create", &state)?;
            let checked = hangar_machine::host::check(&state).map_err(Error::from).and_then(|()| {
                let free_mebibytes = images::free_mebibytes(&state)?;
                if free_mebibytes < NEEDED_MEBIBYTES {
                    let needed_mebibytes = NEEDED_MEBIBYTES;
                    return Err(Error::OutOfDisk { path: state.clone(), free_mebibytes, needed_mebibytes });
                }
                Ok(free_mebibytes)
            });
            if checked.is_err() && !existed {
                // Nothing is left behind on a host that cannot do it.
                let _ = fs::remove_dir(&state);
            }
            let abilities = hangar_machine::host::abilities()?;
            let version = if abilities.cgroup_v2 { "v2" } else { "v1" };
            Ok(Done::new((), format!("cgroup {version}, {} GiB free", checked? >> 10), false))
        })
        .await
    }

    pub(super) async fn programs(&self, options: &UpOptions) -> Result<Done<()>> {
        let (parts, sets) = (self.parts.clone(), options.sets());
        blocking(move || {
            let outcomes = parts.ensure(&sets)?;
            let built = outcomes.iter().filter(|outcome| !matches!(outcome, Outcome::Present(_))).count();
            let text = if built == 0 { "all there".to_owned() } else { format!("{built} sets built") };
            Ok(Done::new((), text, built > 0))
        })
        .await
    }

    pub(super) async fn packages(&self, progress: &Arc<dyn Progress>) -> Result<Done<Packages>> {
        let (cache, progress) = (self.parts.cache().clone(), Arc::clone(progress));
        blocking(move || {
            let mut announced = false;
            let packages = packages::ensure(&cache, packages::FOR_MACHINES, &mut |text| {
                announced = true;
                progress.detail(Step::Packages, text);
            })?;
            let text = if announced { "unpacked into the cache, nothing installed" } else { "all there" };
            Ok(Done::new(packages, text, announced))
        })
        .await
    }

    pub(super) async fn images(
        &self,
        options: &UpOptions,
        packages: &Packages,
        progress: &Arc<dyn Progress>,
    ) -> Result<Done<Store>> {
        let (parts, packages, progress) = (self.parts.clone(), packages.clone(), Arc::clone(progress));
        let upstream = options.upstream_images();
        let supervisor = self.supervisor();
        blocking(move || {
            let mut announced = false;
            let store = Store::ensure(&parts, &packages, &upstream, &supervisor, &mut |text| {
                announced = true;
                progress.detail(Step::Images, text);
            })?;
            let text = if announced { format!("{} made", upstream.len()) } else { "all there".to_owned() };
            Ok(Done::new(store, text, announced))
        })
        .await
    }

    pub(super) async fn network(&self, options: &UpOptions, packages: &Packages) -> Result<Done<Fabric>> {
        let mut environment = self.environment.clone();
        if let Some(program) = packages.program("nft") {
            environment =
                environment.with_nft(Nft::new(program).with("LD_LIBRARY_PATH", packages.library_path()));
        }
        let given = options.range;
        blocking(move || {
            let name = Name::new(FABRIC)?;
            // Held while a range is chosen, by all environments of this host, whatever their state directory: another
            // could choose the same range at this moment. On a directory that is always there, so nothing is left.
            let shared = Path::new("/run");
            let lock = File::open(shared).at("open", shared)?;
            lock.lock().at("lock", shared)?;
            let known = environment.fabric(&name).ok().map(|fabric| fabric.range());
            let candidates = match (known, given) {
                // The network as it was; a range that was given must be the same, or the machine crate refuses.
                (Some(range), None) | (_, Some(range)) => vec![range],
                (None, None) => addresses::candidates(),
            };
            for range in &candidates {
                let addresses = Addresses::of(*range)?;
                let spec = FabricSpec {
                    name: name.clone(),
                    gateway: addresses.router_in_range(),
                    host: Some(addresses.host),
                    mtu: None,
                    outside: true,
                };
                match environment.create_fabric(spec) {
                    Ok(fabric) => {
                        let text = format!("{range}, this host is {}", addresses.host);
                        return Ok(Done::new(fabric, text, known.is_none()));
                    }
                    Err(MachineError::RangeInUse { .. }) if candidates.len() > 1 => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let tried = candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Err(Error::NoFreeRange { tried })
        })
        .await
    }
}

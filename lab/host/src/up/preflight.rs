//! Checks of the host: everything that would be refused later is refused here, before the first file is written, with
//! one reason.

use hangar_machine::net::FabricSpec;
use hangar_machine::{Error as MachineError, Name};
use hangar_parts::packages;
use ipnet::Ipv4Net;

use crate::addresses::{self, Addresses};
use crate::error::{Error, Result};
use crate::images;
use crate::one_host::{FABRIC, OneHost, UpOptions};
use crate::phases::{Done, blocking};

/// Logs, databases and a few volumes. Programs and images are accounted for where they are made.
const NEEDED_MEBIBYTES: u64 = 2048;

impl OneHost {
    /// The options, with what earlier runs were asked for.
    pub(super) async fn preflight(&self, options: &UpOptions) -> Result<Done<UpOptions>> {
        let (host, options) = (self.clone(), options.clone());
        blocking(move || {
            let options = host.with_asked(&options)?;
            let state = host.environment.state();
            hangar_machine::host::check(state)?;
            let free = host.check_disk()?;
            host.free_range(&options)?;
            host.parts.check(&options.sets())?;
            for names in [packages::FOR_MACHINES, packages::FOR_CLOUD_INIT] {
                packages::check(host.parts.cache(), names)?;
            }
            let abilities = hangar_machine::host::abilities()?;
            let version = if abilities.cgroup_v2 { "v2" } else { "v1" };
            Ok(Done::new(options, format!("cgroup {version}, {} GiB free", free >> 10), false))
        })
        .await
    }

    /// How much is free for the environment.
    fn check_disk(&self) -> Result<u64> {
        let cache = self.parts.cache();
        let needs =
            [(cache.root(), images::needed_mebibytes(cache)), (self.environment.state(), NEEDED_MEBIBYTES)];
        let mut free_mebibytes = 0;
        for (path, needed_mebibytes) in needs {
            // Neither need be there yet: what counts is the disk it will be on.
            let existing = path.ancestors().find(|path| path.exists()).unwrap_or(path);
            free_mebibytes = images::free_mebibytes(existing)?;
            if free_mebibytes < needed_mebibytes {
                return Err(Error::OutOfDisk { path: path.to_owned(), free_mebibytes, needed_mebibytes });
            }
        }
        Ok(free_mebibytes)
    }

    /// The private network to make or repair: the one there is, the one that was asked for, or the first that is free.
    pub(super) fn free_range(&self, options: &UpOptions) -> Result<FabricSpec> {
        let name = Name::new(FABRIC)?;
        let known = self.environment.fabric(&name).ok().map(|fabric| fabric.range());
        let candidates = match (known, options.range.map(|range| range.trunc())) {
            (Some(known), Some(asked)) if known != asked => {
                let environment = self.name().to_string();
                return Err(Error::OtherRange { environment, known, asked });
            }
            (Some(range), _) | (None, Some(range)) => vec![range],
            (None, None) => addresses::candidates(),
        };
        for range in &candidates {
            let spec = fabric_spec(name.clone(), *range)?;
            match self.environment.check_fabric(&spec) {
                Ok(()) => return Ok(spec),
                Err(MachineError::RangeInUse { .. }) if candidates.len() > 1 => {}
                Err(error) => return Err(error.into()),
            }
        }
        let tried = candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(Error::NoFreeRange { tried })
    }
}

fn fabric_spec(name: Name, range: Ipv4Net) -> Result<FabricSpec> {
    let addresses = Addresses::of(range)?;
    Ok(FabricSpec {
        name,
        gateway: addresses.router_in_range(),
        host: Some(addresses.host),
        mtu: None,
        outside: true,
        never_outside: addresses::RESERVED.to_vec(),
    })
}

//! The settings of the driver.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use hangar_machine::net::{conntrack::Conntrack, nft::Nft};
use hangar_machine::{Environment, Name, SupervisorCommand};
use serde::{Deserialize, Serialize};

use super::image::MachineImage;

/// Where the driver makes what it makes, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The state directory of environments.
    pub state: PathBuf,
    /// The environment in it. Its machines and namespaces may be others' too: the driver touches only its own.
    pub environment: Name,
    /// The private network of that environment which is the external network. It must be up.
    pub fabric: Name,
    /// The program whose (hidden) subcommand reaches [`hangar_machine::supervise_main`], and that subcommand.
    pub supervisor: Vec<PathBuf>,
    /// `nft`, where it is not installed.
    #[serde(default)]
    pub nft: Option<Tool>,
    /// `conntrack`, where it is not installed.
    #[serde(default)]
    pub conntrack: Option<Tool>,
    /// Name servers of machines whose subnets name none.
    #[serde(default)]
    pub name_servers: Vec<IpAddr>,
    /// What machines are made of, by the value of their image's property
    /// [`KUBERNETES_VERSION`](super::image::KUBERNETES_VERSION).
    #[serde(default)]
    pub images: BTreeMap<String, MachineImage>,
}

/// An unpacked program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub program: PathBuf,
    /// Where its libraries are, as `LD_LIBRARY_PATH` has it.
    #[serde(default)]
    pub library_path: String,
}

impl Settings {
    pub(super) fn environment(&self) -> hangar_machine::Result<Environment> {
        let mut words = self.supervisor.iter().cloned();
        let supervisor = SupervisorCommand {
            program: words.next().unwrap_or_else(|| PathBuf::from("/proc/self/exe")),
            arguments: words.map(OsString::from).collect(),
        };
        let environment = Environment::new(&self.state, self.environment.clone(), supervisor)?;
        Ok(environment.with_nft(self.nft()))
    }

    pub(super) fn nft(&self) -> Nft {
        match &self.nft {
            Some(tool) => Nft::new(&tool.program).with("LD_LIBRARY_PATH", &tool.library_path),
            None => Nft::default(),
        }
    }

    pub(super) fn conntrack(&self) -> Conntrack {
        match &self.conntrack {
            Some(tool) => Conntrack::new(&tool.program).with("LD_LIBRARY_PATH", &tool.library_path),
            None => Conntrack::default(),
        }
    }
}

//! The embedded cloud of an environment: `hangar_cloud` as a process of the host, with machines of this environment as
//! its servers and the private network as its external network.
//!
//! `OneHost::ensure_cloud` writes its configuration and starts it, unless it already runs as it should;
//! `OneHost::stop_cloud` ends the process, after which the environment's machines and namespaces are removed like any
//! others; `OneHost::cloud_report` reports its state. `image` decides what servers consist of, `config` what the cloud
//! offers; both are plain data in one file.
//!
//! ```text
//! <state>/<name>/cloud/config.json    what it is started with; holds passwords
//!                      state.json     what it knows
//!                      process.json   who serves
//!                      cloud.log
//!                      images/        the container images of its servers
//!                      programs/      the programs of its servers, linked
//! ```

mod config;
mod image;
mod process;
#[cfg(test)]
mod tests;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hangar_cloud::driver::namespaces::ProcessConfig;
use hangar_machine::ProcessIdentity;
use hangar_parts::Set;
use hangar_parts::packages::{self, FOR_CLOUD_INIT, Packages};

pub use config::{Access, PORT};
pub use process::serve;

use crate::addresses::Addresses;
use crate::error::{At, Error, Result};
use crate::images::{ImageStore, Maker};
use crate::layout::Layout;
use crate::linked_programs::LinkedPrograms;
use crate::management::credentials::write_private;
use crate::management::machine::OWN_PROGRAM;
use crate::one_host::{OneHost, UpOptions};
use crate::phases::{Done, blocking};

/// What the cloud is made from.
#[derive(Debug, Clone)]
pub struct CloudOptions {
    pub packages: Packages,
    /// Addresses on the private network.
    pub addresses: Addresses,
    /// The Kubernetes versions that servers can have, each an image of the cloud. Their programs must be there.
    pub kubernetes: Vec<Set>,
}

/// What is known of the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudReport {
    /// Where it answers, or should.
    pub url: String,
    /// Its process, while that runs.
    pub process: Option<ProcessIdentity>,
    /// Why it does not answer, if it does not.
    pub obstacle: Option<String>,
}

impl Layout {
    /// The cloud's directory.
    pub fn cloud(&self) -> PathBuf {
        self.directory().join("cloud")
    }

    /// What the cloud is started with.
    pub fn cloud_config(&self) -> PathBuf {
        self.cloud().join("config.json")
    }

    /// What the cloud's process prints.
    pub fn cloud_log(&self) -> PathBuf {
        self.cloud().join("cloud.log")
    }
}

impl OneHost {
    /// Starts the embedded cloud unless it runs as it should. The private network must be up, and our own program in
    /// its place, which the machine's phase does. `detail` hears what takes time.
    pub(crate) async fn ensure_cloud(
        &self,
        options: &UpOptions,
        cloud: CloudOptions,
        mut detail: impl FnMut(&str) + Send + 'static,
    ) -> Result<Done<Access>> {
        let (host, options) = (self.clone(), options.clone());
        let (access, listen, mut changes) =
            blocking(move || host.ensure_cloud_process(&options, &cloud, &mut detail)).await?;
        process::wait_until_it_answers(listen, &self.layout.cloud_log()).await?;
        if changes.is_empty() {
            changes.push("running");
        }
        let changed = changes != ["running"];
        Ok(Done::new(access, format!("{} {}", changes.join(", "), listen), changed))
    }

    fn ensure_cloud_process(
        &self,
        options: &UpOptions,
        cloud: &CloudOptions,
        detail: &mut dyn FnMut(&str),
    ) -> Result<(Access, SocketAddr, Vec<&'static str>)> {
        let directory = self.layout.cloud();
        fs::create_dir_all(&directory).at("create", &directory)?;
        let cloud_init = packages::ensure(self.parts.cache(), FOR_CLOUD_INIT, &mut *detail)?;
        let maker = Maker {
            parts: self.parts.clone(),
            packages: cloud.packages.clone(),
            supervisor: self.supervisor(),
        };
        let store = maker.ensure(&options.upstream_images(), &[], detail)?;
        let mut changes = Vec::new();
        let images = self.layout.cloud().join("images");
        if fill(&store, &images)? {
            changes.push("images linked");
        }
        let sources = image::Sources {
            parts: &self.parts,
            linked: LinkedPrograms::new(self.parts.cache(), directory.join("programs")),
            packages: &cloud.packages,
            cloud_init: &cloud_init,
            programs: &self.layout.programs(),
            supervisor: &self.own.supervisor,
            images: &images,
        };
        let machine_images = cloud
            .kubernetes
            .iter()
            .map(|set| Ok((set.version().to_owned(), image::machine_image(&sources, *set)?)))
            .collect::<Result<_>>()?;
        let known = ProcessConfig::read(&self.layout.cloud_config()).ok();
        let config = config::config(&config::Inputs {
            layout: &self.layout,
            environment: &self.environment,
            program: &self.layout.programs().join(OWN_PROGRAM),
            supervisor: &self.own.supervisor,
            nft: config::tool(&cloud.packages, "nft"),
            conntrack: config::tool(&cloud.packages, "conntrack"),
            addresses: cloud.addresses,
            known: known.as_ref(),
            machine_images,
        })?;
        let failed = |message: String| Error::Rendering { what: "the cloud's configuration", message };
        let access = config::access(&config).ok_or_else(|| failed("it offers nothing".to_owned()))?;
        let text = serde_json::to_vec_pretty(&config).map_err(|error| failed(error.to_string()))?;
        let is_other = write_private(&self.layout.cloud_config(), &text)?;
        changes.extend(process::ensure(&self.layout, &config, is_other)?);
        Ok((access, config.listen, changes))
    }

    /// Ends the cloud's process. `true` when it ran. Servers go on until their machines are removed.
    pub(crate) async fn stop_cloud(&self) -> Result<bool> {
        let layout = self.layout.clone();
        blocking(move || process::stop(&layout)).await
    }

    /// Looks; nothing where there is no cloud.
    pub(crate) async fn cloud_report(&self) -> Option<CloudReport> {
        let config = ProcessConfig::read(&self.layout.cloud_config()).ok()?;
        let obstacle = process::obstacle(config.listen).await;
        Some(CloudReport { url: format!("http://{}", config.listen), process: config.process(), obstacle })
    }
}

/// A copy of the images that stays when the cache forgets them. `true` when it was made now.
fn fill(store: &ImageStore, target: &Path) -> Result<bool> {
    let name = store.name();
    let complete = target.with_extension("complete");
    if fs::read_to_string(&complete).is_ok_and(|known| known == name) {
        return Ok(false);
    }
    let _ = fs::remove_file(&complete);
    store.fill(target)?;
    fs::write(&complete, name).at("write", &complete)?;
    Ok(true)
}

//! The files of one machine.
//!
//! ```text
//! <state>/<environment>/machines/<name>/
//!   lock           held while the machine is made, started, stopped or removed
//!   machine.json   what it is; written before anything of it exists
//!   running.json   its first process, with start time and boot
//!   logs/          one file per service and `supervisor.log`; /var/log/hangar inside
//!   root/          its root directory: /home, /opt, /root, /srv live here
//!   overlay/       upper and work directories of /usr, /etc and /var
//!   data/          /var/lib/containerd and /var/lib/kubelet (an overlay cannot hold overlays)
//!   sysctl/        files in the place of global kernel settings
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    json_file,
    name::Name,
    process::ProcessIdentity,
    spec::MachineSpec,
};

/// What must be known to start a machine again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) environment: Name,
    /// The whole state directory, which the machine must not see.
    pub(crate) state: PathBuf,
    pub(crate) spec: MachineSpec,
    /// Content of /etc/machine-id, kept over restarts.
    pub(crate) machine_id: String,
    pub(crate) cgroup: String,
    pub(crate) netns: PathBuf,
}

/// Paths of one machine.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) directory: PathBuf,
}

impl Files {
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.directory.join("machine.json")
    }

    pub(crate) fn running(&self) -> PathBuf {
        self.directory.join("running.json")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.join("root")
    }

    pub(crate) fn overlay(&self, of: &str, part: &str) -> PathBuf {
        self.directory.join("overlay").join(of).join(part)
    }

    /// Where masks are mounted while the root is built.
    pub(crate) fn masks(&self) -> PathBuf {
        self.directory.join("overlay").join("masks")
    }

    pub(crate) fn data(&self, of: &str) -> PathBuf {
        self.directory.join("data").join(of)
    }

    pub(crate) fn sysctl(&self, name: &str) -> PathBuf {
        self.directory.join("sysctl").join(name.replace('/', "."))
    }

    pub(crate) fn read_record(&self) -> Result<Option<Record>> {
        json_file::read(&self.record())
    }

    /// The record, which must be there.
    pub(crate) fn expect_record(&self) -> Result<Record> {
        let path = self.record();
        self.read_record()?.ok_or_else(|| Error::Record { path, message: "no such file".to_owned() })
    }

    /// The first process, if it still runs. An incomplete file names no live process: it is of a host that crashed.
    pub(crate) fn first_process(&self) -> Result<Option<ProcessIdentity>> {
        let Some(known) = json_file::read_if_whole::<ProcessIdentity>(&self.running())? else {
            return Ok(None);
        };
        let found = ProcessIdentity::look(known.pid)?;
        Ok(found.filter(|found| *found == known))
    }
}

impl AsRef<Path> for Files {
    fn as_ref(&self) -> &Path {
        &self.directory
    }
}

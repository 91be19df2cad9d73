//! Removes connections that a namespace remembers, with the `conntrack` program.
//!
//! Rules decide about new connections only. If a permission or a translation is removed, the kernel must also forget
//! the connections that depend on it.

use std::{ffi::OsString, net::IpAddr, path::PathBuf, process::Command};

use super::Netns;
use crate::error::{Error, Result};

/// How to call `conntrack`. It may be installed, or unpacked somewhere with its libraries.
#[derive(Debug, Clone)]
pub struct Conntrack {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Conntrack {
    /// Uses this program; a bare name is looked up in `PATH`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), environment: Vec::new() }
    }

    /// Adds an environment variable, such as `LD_LIBRARY_PATH` for an unpacked one.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Forgets the connections inside `netns` that `address` began or was called by.
    pub fn forget(&self, netns: &Netns, address: IpAddr) -> Result<()> {
        for side in ["--orig-src", "--orig-dst"] {
            let mut command = Command::new(&self.program);
            command.envs(self.environment.iter().cloned()).args(["-D", "-f"]);
            command.arg(if address.is_ipv4() { "ipv4" } else { "ipv6" }).arg(side).arg(address.to_string());
            let output = netns.output(&mut command)?;
            let words = String::from_utf8_lossy(&output.stderr);
            // It fails when there was nothing to forget.
            if !output.status.success() && !words.contains("0 flow entries") {
                let message = words.trim().lines().last().unwrap_or("no message").to_owned();
                return Err(Error::Program { program: self.program.display().to_string(), message });
            }
        }
        Ok(())
    }
}

impl Default for Conntrack {
    fn default() -> Self {
        Self::new("conntrack")
    }
}

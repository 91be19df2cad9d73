//! Applies filter and translation rules inside a network namespace, with the `nft` program.

use std::{
    ffi::OsString,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use super::Netns;
use crate::error::{Doing, Error, Result};

/// How to call `nft`. It may be installed, or unpacked somewhere with its libraries.
#[derive(Debug, Clone)]
pub struct Nft {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Nft {
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

    /// Whether the program can be run at all.
    pub fn is_usable(&self) -> bool {
        let mut command = Command::new(&self.program);
        command.envs(self.environment.iter().cloned()).arg("--version");
        command.output().is_ok_and(|output| output.status.success())
    }

    /// Applies rules inside `netns`, all or nothing, as `nft -f` does.
    pub fn apply(&self, netns: &Netns, rules: &str) -> Result<()> {
        let mut command = Command::new(&self.program);
        command
            .envs(self.environment.iter().cloned())
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let program = self.program.display().to_string();
        let output = netns.run(|| {
            let mut child = command.spawn().doing(|| format!("run {program}"))?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(rules.as_bytes()).doing(|| format!("write to {program}"))?;
            }
            child.wait_with_output().doing(|| format!("wait for {program}"))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.lines().next().unwrap_or("no message").to_owned();
        Err(Error::Program { program, message })
    }
}

impl Default for Nft {
    fn default() -> Self {
        Self::new("nft")
    }
}

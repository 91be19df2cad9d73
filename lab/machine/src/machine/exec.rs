//! Runs commands inside a machine.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output, Stdio},
};

use super::Machine;
use crate::{
    error::{Doing, Error, Result},
    service::SEARCH_PATH,
    supervisor::OUR_FAULT,
};

/// A command to run inside.
#[derive(Debug, Clone, Default)]
pub struct Exec {
    pub command: Vec<String>,
    /// Variables beside `PATH`, `HOME` and `LANG`.
    pub environment: std::collections::BTreeMap<String, String>,
    /// Where it runs; `/` by default.
    pub directory: Option<std::path::PathBuf>,
}

impl Exec {
    /// A command in `/` without further variables.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl Machine {
    /// A command that runs inside when it is spawned. Pipes, environment and waiting are the caller's; its exit code
    /// is the inner one's (128 and the signal's number when killed, 125 when the machine could not be entered).
    pub fn command(
        &self,
        directory: &Path,
        command: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Command> {
        self.first_process()?;
        let supervisor = self.environment.supervisor();
        let mut outside = Command::new(&supervisor.program);
        outside
            .args(&supervisor.arguments)
            .arg("enter")
            .arg(&self.files.directory)
            .arg(directory)
            .args(command)
            .env_clear()
            .env("PATH", SEARCH_PATH)
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8");
        Ok(outside)
    }

    /// Runs a command to its end and collects what it wrote. A failing command is not an error here.
    pub fn exec(&self, exec: &Exec) -> Result<Output> {
        let directory = exec.directory.as_deref().unwrap_or(Path::new("/"));
        let mut command = self.command(directory, &exec.command)?;
        command.envs(&exec.environment).stdin(Stdio::null());
        let output = command.output().doing(|| "run a command in the machine")?;
        if output.status.code() == Some(i32::from(OUR_FAULT)) && self.files.first_process()?.is_none() {
            return Err(Error::NotRunning(self.name.to_string()));
        }
        Ok(output)
    }

    /// Runs a command that must succeed and returns what it wrote.
    pub fn run(&self, command: impl IntoIterator<Item = impl Into<String>>) -> Result<String> {
        let exec = Exec::new(command);
        let output = self.exec(&exec)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.trim().lines().last().unwrap_or("no message");
        let code = output.status.code().unwrap_or(-1);
        Err(Error::Program {
            program: format!("{} in machine {}", exec.command.join(" "), self.name),
            message: format!("exit code {code}: {last}"),
        })
    }
}

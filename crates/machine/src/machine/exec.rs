//! Running commands inside.

use std::{
    ffi::OsStr,
    io::Write,
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
    pub input: Vec<u8>,
}

impl Exec {
    /// A command with nothing to read.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Gives it something to read.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
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
        command.envs(&exec.environment).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().doing(|| "start a command in the machine")?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // Beside reading: a command that writes before it has read everything would block for ever.
            scope.spawn(move || {
                if let Some(mut stdin) = stdin {
                    // A command that does not read its input is free to.
                    let _ = stdin.write_all(&exec.input);
                }
            });
            child.wait_with_output().doing(|| "wait for a command in the machine")
        })?;
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

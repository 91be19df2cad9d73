//! Starts a program with a log file, and ends it in any case except `kill -9` of our own process.
//!
//! Every process leads a group of its own: Ctrl-C at the terminal reaches only us, and we end the children in the order
//! we want; what a child starts ends with it. There is no parent-death signal, since setting one needs unsafe code
//! between fork and exec: after a `kill -9` of our process the children live on. A caller for whom that matters records
//! [`Process::id`] and checks it at its next start.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};

use crate::error::{Context, Error, Result};

/// How long a process may take to end by itself when it is dropped. An API server that still has watches open
/// takes its full shutdown period, which is too long for a test.
const GRACE_ON_DROP: Duration = Duration::from_secs(3);

const POLL: Duration = Duration::from_millis(10);

/// The last part of a log that is worth showing in an error.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 20;

/// What to start.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    log: PathBuf,
}

impl ProcessSpec {
    /// A program that writes both its outputs to a log file, which is appended to.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            directory: None,
            log: log.into(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    #[must_use]
    pub fn arguments<Argument: Into<OsString>>(
        mut self,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    pub fn start(self) -> Result<Process> {
        if let Some(parent) = self.log.parent() {
            fs::create_dir_all(parent).context("create", parent)?;
        }
        let output = File::options().create(true).append(true).open(&self.log).context("open", &self.log)?;
        let errors = output.try_clone().context("open", &self.log)?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.variables)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let child = command.spawn().context("start", &self.program)?;
        Ok(Process { name: self.name, child, log: self.log, is_over: false })
    }
}

/// A started program. Dropping it ends it and everything it started.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// Set once it was waited for: from then on its id may belong to another process.
    is_over: bool,
}

impl Process {
    /// The name it was started under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, which is also its group's.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// An error with the end of the log if it ended by itself. Ask while waiting for it to become ready.
    pub fn check_running(&mut self) -> Result<()> {
        match self.try_wait()? {
            None => Ok(()),
            Some(status) => Err(Error::ProcessEnded {
                name: self.name.clone(),
                status: status.to_string(),
                log: self.log.clone(),
                tail: tail(&self.log),
            }),
        }
    }

    /// How it ended, if it did.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().context("wait for", Path::new(&self.name))?;
        if status.is_some() {
            self.kill_group()?;
        }
        Ok(status)
    }

    /// Kills what the ended process left behind in its group, once.
    fn kill_group(&mut self) -> Result<()> {
        let killed = self.signal(Signal::KILL);
        self.is_over = true;
        killed
    }

    /// Asks it to end, and kills it when it has not after the grace period.
    pub fn stop(&mut self, grace: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.try_wait()? {
            return Ok(status);
        }
        self.signal(Signal::TERM)?;
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        self.kill()
    }

    /// Kills it at once, as a crash would.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::KILL)?;
        let status = self.child.wait().context("wait for", Path::new(&self.name))?;
        self.is_over = true;
        Ok(status)
    }

    /// Sends a signal to it and everything it started.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if self.is_over {
            return Ok(());
        }
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        match id.map_or(Ok(()), |id| kill_process_group(id, signal)) {
            // Nobody left is what the sender wants in the end.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(io::Error::from(error)).context("signal", Path::new(&self.name)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing useful can be done about an error here, and dropping during a panic must not panic again.
        let _ = self.stop(GRACE_ON_DROP);
    }
}

/// The last lines of a file, or why there are none.
pub fn tail(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match read() {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(error) => format!("(cannot be read: {error})"),
    }
}

#[cfg(test)]
mod tests;

//! Runs the pinned kubectl for one cluster.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

/// Between two looks at something that cannot be watched.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// A fresh API server lacks namespaces or roles for a moment.
const APPLY_PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(program: PathBuf, kubeconfig: PathBuf) -> Self {
        Self { program, kubeconfig }
    }

    /// The same for another cluster.
    pub(crate) fn with(&self, kubeconfig: &Path) -> Self {
        Self::new(self.program.clone(), kubeconfig.to_owned())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(format!("--kubeconfig={}", self.kubeconfig.display())).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    /// What it prints.
    pub(crate) fn output(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments).output().context("kubectl")?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), first_lines(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Objects of some kinds.
    pub(crate) fn list(&self, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
        let text = self.output(&[arguments, &["--output=json"]].concat())?;
        let list: Value = serde_json::from_str(&text).context("a list of objects")?;
        list["items"].as_array().cloned().context("kubectl printed no list")
    }

    /// Applies manifests: one call for each object, and nothing is looked up before.
    pub(crate) fn apply(&self, manifests: &str) -> anyhow::Result<()> {
        let arguments = ["apply", "--server-side", "--force-conflicts", "--validate=false", "--filename=-"];
        self.feed(&arguments, manifests)
    }

    /// Deletes what is still there of the manifests.
    pub(crate) fn delete(&self, manifests: &str) -> anyhow::Result<()> {
        self.feed(&["delete", "--ignore-not-found", "--timeout=5m", "--filename=-"], manifests)
    }

    fn feed(&self, arguments: &[&str], manifests: &str) -> anyhow::Result<()> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("kubectl")?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(manifests.as_bytes()).context("kubectl")?;
        }
        let output = child.wait_with_output().context("kubectl")?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), first_lines(&output.stderr));
        }
        Ok(())
    }

    /// The same in an API server that has just begun.
    pub(crate) fn apply_patiently(&self, manifests: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + APPLY_PATIENCE;
        loop {
            match self.apply(manifests) {
                Err(_) if Instant::now() < deadline => thread::sleep(LOOK),
                applied => return applied,
            }
        }
    }

    /// Waits until the API server says that it is ready.
    pub(crate) fn wait_until_serving(&self, patience: Duration) -> anyhow::Result<Instant> {
        let deadline = Instant::now() + patience;
        loop {
            match self.output(&["get", "--raw=/readyz", "--request-timeout=2s"]) {
                Ok(_) => return Ok(Instant::now()),
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => thread::sleep(LOOK),
            }
        }
    }
}

/// It complains about each object; the first complaints say it all.
fn first_lines(words: &[u8]) -> String {
    String::from_utf8_lossy(words).lines().take(3).collect::<Vec<_>>().join("; ")
}

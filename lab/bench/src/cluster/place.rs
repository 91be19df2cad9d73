//! The environment of the bench, and the process that removes it in any case.
//!
//! A shell in a process group of its own reads from a pipe to which nothing is written. The pipe closes when the bench
//! ends, in whatever way, and then the shell takes the environment down. An interrupt from the terminal does not reach
//! the shell.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use super::CLUSTER;
use crate::kubectl::Kubectl;
use crate::process::{own_program, words_of};

const NAME: &str = "bench-cluster";

/// Where the bench has files of its own.
const OWN: &str = "bench";

/// What was interrupted may hold the lock for a moment; hence several times.
const REMOVE: &str = r#"
cat > /dev/null
for time in 1 2 3 4 5 6 7 8 9 10; do
  if "$1" down --name "$2" --state "$3" > /dev/null; then
    rm -rf "$3/bench"
    rmdir --ignore-fail-on-non-empty "$3"
    exit 0
  fi
  sleep 3
done
echo "the environment $2 in $3 is still there" >&2
exit 1
"#;

pub(super) struct Place {
    state: PathBuf,
    hangar: PathBuf,
    management: Kubectl,
    remover: Child,
    _lock: File,
}

impl Place {
    pub(super) fn new(state: &Path, built: &Path, kubectl: PathBuf) -> anyhow::Result<Self> {
        let (hangar, lock) = own_program(&state.join(OWN), built)?;
        // What a killed run left.
        words_of(&mut command(&hangar, "down", state))?;
        let remover = Command::new("sh")
            .args(["-c", REMOVE, "remover"])
            .arg(&hangar)
            .arg(NAME)
            .arg(state)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("the process that removes the environment")?;
        let management = Kubectl::new(kubectl, state.join(NAME).join("management.kubeconfig"));
        Ok(Self { state: state.to_owned(), hangar, management, remover, _lock: lock })
    }

    /// The environment and its first cluster.
    pub(super) fn up(&self, range: &str) -> anyhow::Result<()> {
        words_of(command(&self.hangar, "up", &self.state).args(["--range", range])).map(drop)
    }

    pub(super) fn management(&self) -> &Kubectl {
        &self.management
    }

    /// A place for the kubeconfig of the cluster that is measured.
    pub(super) fn tenant_kubeconfig(&self) -> PathBuf {
        self.state.join(OWN).join("tenant.kubeconfig")
    }

    /// The one that `up` wrote.
    pub(super) fn first_kubeconfig(&self) -> PathBuf {
        self.state.join(NAME).join(format!("{CLUSTER}.kubeconfig"))
    }

    pub(super) fn cloud_configuration(&self) -> PathBuf {
        self.state.join(NAME).join("cloud/config.json")
    }

    /// For finding out why a run failed: the environment will be gone.
    pub(super) fn show(&self) {
        let management = &self.management;
        for arguments in [["get", "pods", "--all-namespaces"], ["get", "events", "--all-namespaces"]] {
            eprintln!("{}", management.output(&arguments).unwrap_or_else(|error| error.to_string()));
        }
        let kubeconfig = self.state.join(NAME).join("management.kubeconfig");
        let _ = Command::new(&self.hangar)
            .args(["describe", "cluster", CLUSTER, "--kubeconfig"])
            .arg(kubeconfig)
            .status();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}

fn command(hangar: &Path, verb: &str, state: &Path) -> Command {
    let mut command = Command::new(hangar);
    command.args([verb, "--name", NAME, "--state"]).arg(state);
    command
}

//! The environment of a bench, and the process that removes it in any case.
//!
//! A shell in a process group of its own reads from a pipe to which nothing is written. The pipe closes when the bench
//! ends, in whatever way, and then the shell takes the environment down. An interrupt from the terminal does not reach
//! the shell.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::kubectl::Kubectl;
use crate::process::{own_program, words_of};

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

pub(crate) struct Place {
    state: PathBuf,
    name: &'static str,
    hangar: PathBuf,
    management: Kubectl,
    remover: Child,
    _lock: File,
}

impl Place {
    pub(crate) fn new(
        state: &Path,
        name: &'static str,
        built: &Path,
        kubectl: PathBuf,
    ) -> anyhow::Result<Self> {
        let (hangar, lock) = own_program(&state.join(OWN), built)?;
        // What a killed run left.
        words_of(&mut command(&hangar, "down", name, state))?;
        let remover = Command::new("sh")
            .args(["-c", REMOVE, "remover"])
            .arg(&hangar)
            .arg(name)
            .arg(state)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("the process that removes the environment")?;
        let management = Kubectl::new(kubectl, state.join(name).join("management.kubeconfig"));
        Ok(Self { state: state.to_owned(), name, hangar, management, remover, _lock: lock })
    }

    /// Makes the environment.
    pub(crate) fn up(&self, arguments: &[&str]) -> anyhow::Result<()> {
        words_of(command(&self.hangar, "up", self.name, &self.state).args(arguments)).map(drop)
    }

    pub(crate) fn management(&self) -> &Kubectl {
        &self.management
    }

    /// A place for the kubeconfig of a cluster that is measured.
    pub(crate) fn tenant_kubeconfig(&self, cluster: &str) -> PathBuf {
        self.state.join(OWN).join(format!("{cluster}.kubeconfig"))
    }

    /// The one that `up` wrote.
    pub(crate) fn first_kubeconfig(&self, cluster: &str) -> PathBuf {
        self.state.join(self.name).join(format!("{cluster}.kubeconfig"))
    }

    pub(crate) fn cloud_configuration(&self) -> PathBuf {
        self.state.join(self.name).join("cloud/config.json")
    }

    /// For finding out why a run failed: the environment will be gone.
    pub(crate) fn show(&self, cluster: &str) {
        let management = &self.management;
        for arguments in [["get", "pods", "--all-namespaces"], ["get", "events", "--all-namespaces"]] {
            eprintln!("{}", management.output(&arguments).unwrap_or_else(|error| error.to_string()));
        }
        let kubeconfig = self.state.join(self.name).join("management.kubeconfig");
        let _ = Command::new(&self.hangar)
            .args(["describe", "cluster", cluster, "--kubeconfig"])
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

fn command(hangar: &Path, verb: &str, name: &str, state: &Path) -> Command {
    let mut command = Command::new(hangar);
    command.args([verb, "--name", name, "--state"]).arg(state);
    command
}

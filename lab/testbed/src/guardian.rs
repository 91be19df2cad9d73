//! Ends the testbed's processes when the test binary is gone.
//!
//! Statics are not dropped when libtest exits, and a killed process runs no code at all. So the first child of a
//! testbed is a shell that reads the ids of the others from a pipe and waits for the pipe to close, which the kernel
//! does however the test binary ends. The shell then stops them in reverse order (an API server that outlives its etcd
//! hangs for a minute), and removes the directory, or all but its logs if a file `keep` is in it.
//!
//! A cluster on one host ([`crate::OneHost`]) is more than processes; its guardian runs a program that starts and
//! removes it.
//!
//! The guardian only ends processes whose command line names the testbed's directory: a process id that another process
//! has in the meantime is left alone.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::Error;

/// Run by `/bin/sh` with the directory as `$1`.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=""
while read -r pid; do pids="$pid $pids"; done
ours() { tr '\0' ' ' < "/proc/$1/cmdline" 2>/dev/null | grep -qF -- "$directory"; }
directory=$1
for pid in $pids; do
  ours "$pid" || continue
  kill -TERM "$pid" 2>/dev/null
  tries=0
  while ours "$pid" && [ $tries -lt 20 ]; do sleep 0.1; tries=$((tries + 1)); done
  ours "$pid" && kill -KILL "$pid" 2>/dev/null
  # What still writes would make files in the directory that is removed.
  while ours "$pid"; do sleep 0.1; done
done
[ -e "$directory/keep" ] || rm -rf -- "$directory"
# Of one that is kept only the logs: the data is some sixty megabytes each time.
for entry in "${directory:?}"/*; do [ "$entry" = "$directory/logs" ] || rm -rf -- "$entry"; done
"#;

/// Run by `/bin/sh` with the directory, the program, the environment's name and state directory as flags, and what else
/// `up` is told. It runs `up` itself: one that outlived both of us would never be removed.
const CLUSTER_SCRIPT: &str = r#"
trap '' INT TERM HUP PIPE
directory=$1 program=$2 name=$3 state=$4
shift 4
"$program" up "$name" "$state" "$@" >"$directory/up.out" 2>"$directory/up.err" </dev/null
echo $?
cat >/dev/null
[ -e "$directory/keep" ] && "$program" logs "$name" "$state" --bundle="$directory/logs" >"$directory/logs.out" 2>&1
"$program" down "$name" "$state" >"$directory/down.out" 2>&1
[ -e "$directory/keep" ] || rm -rf -- "$directory"
"#;

/// The running guardian. Dropping it closes the pipe, and the guardian then does its work and is waited for.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    /// Of processes that are told to it.
    pub(crate) fn start(directory: &Path) -> Result<Self, Error> {
        Self::run(
            Command::new("/bin/sh")
                .args(["-c", SCRIPT, "hangar-testbed-guardian"])
                .arg(directory)
                .stdout(Stdio::null()),
        )
    }

    /// Of a cluster: it lets `program` start it, waits, and lets it remove it. Returns once `up` has ended; what it said
    /// is in the directory, in `up.out` and `up.err`.
    pub(crate) fn of_cluster(
        directory: &Path,
        program: &Path,
        environment: &[String; 2],
        arguments: &[&str],
    ) -> Result<(Self, bool), Error> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", CLUSTER_SCRIPT, "hangar-testbed-guardian"]).args([directory, program]);
        command.args(environment).args(arguments).stdout(Stdio::piped());
        let mut guardian = Self::run(&mut command)?;
        let mut code = String::new();
        if let Some(output) = guardian.child.stdout.take() {
            BufReader::new(output).read_line(&mut code).map_err(Error::Guardian)?;
        }
        Ok((guardian, code.trim() == "0"))
    }

    fn run(command: &mut Command) -> Result<Self, Error> {
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            // Its own process group: Ctrl-C in a terminal must not end the one who cleans up.
            .process_group(0)
            .spawn()
            .map_err(Error::Guardian)?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// From now on the guardian ends this process too.
    pub(crate) fn watch(&mut self, process_id: u32) -> Result<(), Error> {
        match &mut self.pipe {
            Some(pipe) => writeln!(pipe, "{process_id}").map_err(Error::Guardian),
            None => Ok(()),
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

//! Ends the testbed's processes when the test binary is gone.
//!
//! Statics are not dropped when libtest exits, and a killed process runs no code at all. So the first child of a
//! testbed is a shell that reads the ids of the others from a pipe and waits for the pipe to close, which the kernel
//! does for us however the test binary ends. It then stops them in reverse order (an API server that outlives its
//! etcd hangs for a minute), and removes the directory unless a file `keep` is in it.
//!
//! It only ends processes whose command line names the testbed's directory: a process id that was given to somebody
//! else in the meantime is left alone.

use std::io::Write;
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
done
[ -e "$directory/keep" ] || rm -rf -- "$directory"
"#;

/// The running guardian. Dropping it closes the pipe, and the guardian then does its work and is waited for.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    pub(crate) fn start(directory: &Path) -> Result<Self, Error> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "hangar-testbed-guardian"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
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

//! Ends and removes a machine, whatever state it is in.

use std::{collections::BTreeSet, fs, io, path::Path, time::Duration};

use super::Machine;
use crate::{
    environment::Environment,
    error::{Doing, Result, on},
    host,
    lock::Lock,
    name::{FABRIC_NETNS, MACHINE_NETNS, Name},
    record::Record,
};

/// Killed processes are gone in milliseconds; only a hanging kernel takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Environment {
    /// Removes all machines, private networks and other namespaces, also those whose files were removed by hand. Goes
    /// on after a failure and returns the first.
    pub fn delete_all(&self) -> Result<()> {
        let mut first = Ok(());
        for name in self.known("machines", MACHINE_NETNS)? {
            let done = self.machine(&name).delete().map(drop);
            first = first.and(done);
        }
        for name in self.netns_names()? {
            let done = self.delete_netns(&name).map(drop);
            first = first.and(done);
        }
        for name in self.known("fabrics", FABRIC_NETNS)? {
            let done = self.delete_fabric(&name).map(drop);
            first = first.and(done);
        }
        first
    }

    /// Names with files or with a network namespace.
    fn known(&self, kind: &str, prefix: &str) -> Result<BTreeSet<Name>> {
        Ok(self.names_in(kind)?.into_iter().chain(self.netns_names_of(prefix)?).collect())
    }
}

impl Machine {
    /// Ends every process of the machine and removes everything of it. `true` when something was there.
    pub fn delete(&self) -> Result<bool> {
        host::check_privileges()?;
        let mut existed = false;
        let lock = if self.files.directory.exists() {
            existed = true;
            // Whoever holds the lock is either making the machine (then its processes are, or will soon be, in the
            // control groups, and killing them frees the lock) or stopping it.
            Some(Lock::acquire(&self.files.directory, PATIENCE, || self.kill())?)
        } else {
            None
        };
        existed |= self.remove_all()?;
        drop(lock);
        self.environment.tidy();
        Ok(existed)
    }

    fn kill(&self) -> Result<()> {
        // The first process takes all others with it.
        if let Some(first) = self.files.first_process()? {
            first.kill();
        }
        self.group()?.kill()
    }

    /// Ends every process at once, and removes the network namespace with all that programs put there: a machine whose
    /// power failed answers nobody. Its data stays, and [`Machine::start`] brings it back.
    pub fn cut_off(&self) -> Result<()> {
        let (lock, record) = self.lock(PATIENCE)?;
        let cut = self.end_processes().and_then(|()| self.disconnect(&record));
        drop(lock);
        cut.map(drop)
    }

    /// Removes its links and its network namespace. `true` when there was one.
    fn disconnect(&self, record: &Record) -> Result<bool> {
        // By hand: the kernel removes a dead namespace's links only some time later.
        for nic in &record.spec.nics {
            nic.remove(self.environment.identity(), &self.name)?;
        }
        self.netns().delete()
    }

    /// Ends every process and removes the control groups. The lock is held.
    pub(super) fn end_processes(&self) -> Result<()> {
        let group = self.group()?;
        if let Some(first) = self.files.first_process()? {
            first.kill();
            group.thaw();
            first.wait_gone(PATIENCE);
        }
        if group.exists() {
            group.kill_all(PATIENCE)?;
            group.remove(PATIENCE)?;
        }
        remove_file(&self.files.running())
    }

    /// Removes everything. The lock is held. `true` when something besides the directory was there.
    pub(super) fn remove_all(&self) -> Result<bool> {
        let had_group = self.group()?.exists();
        self.end_processes()?;
        let had_netns = match self.files.read_record() {
            Ok(Some(record)) => self.disconnect(&record)?,
            _ => self.netns().delete()?,
        };
        // Before its data: without a record nobody starts what is left, should we be killed half way.
        remove_file(&self.files.record())?;
        Lock::remove_directory(&self.files.directory)?;
        Ok(had_group || had_netns)
    }
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).doing(|| on("remove", path)),
        _ => Ok(()),
    }
}

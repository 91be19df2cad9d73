//! Ending and removing a machine, whatever state it is in.

use std::{fs, io, time::Duration};

use super::Machine;
use crate::{
    environment::Environment,
    error::{Doing, Result, on},
    host,
    lock::Lock,
};

/// Killed processes are gone in milliseconds; only a hanging kernel takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Environment {
    /// Removes all machines, private networks and other namespaces. Goes on after a failure and returns the first.
    pub fn delete_all(&self) -> Result<()> {
        let mut first = Ok(());
        for name in self.names_in("machines")? {
            let done = self.machine(&name).delete().map(drop);
            first = first.and(done);
        }
        for name in self.netns_names()? {
            let done = self.delete_netns(&name).map(drop);
            first = first.and(done);
        }
        for name in self.fabrics()? {
            let done = self.delete_fabric(&name).map(drop);
            first = first.and(done);
        }
        first
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
        if let Some(first) = self.files.first_process() {
            first.kill();
        }
        self.group()?.kill();
        Ok(())
    }

    /// Ends every process and removes the control groups. The lock is held.
    pub(super) fn end_processes(&self) -> Result<()> {
        if let Some(first) = self.files.first_process() {
            first.kill();
            first.wait_gone(PATIENCE);
        }
        let group = self.group()?;
        if group.exists() {
            group.kill_all(PATIENCE)?;
            group.remove(PATIENCE)?;
        }
        match fs::remove_file(self.files.running()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).doing(|| on("remove", &self.files.running()))
            }
            _ => Ok(()),
        }
    }

    /// Removes everything. The lock is held. `true` when something besides the directory was there.
    pub(super) fn remove_all(&self) -> Result<bool> {
        let had_group = self.group()?.exists();
        self.end_processes()?;
        if let Ok(Some(record)) = self.files.read_record() {
            // By hand: the kernel removes a dead namespace's links only some time later.
            for nic in &record.spec.nics {
                nic.remove(self.environment.identity(), &self.name)?;
            }
        }
        let had_netns = self.netns().delete()?;
        let directory = &self.files.directory;
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).doing(|| on("remove", directory));
            }
            _ => {}
        }
        Ok(had_group || had_netns)
    }
}

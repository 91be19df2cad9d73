//! `down`: removes everything of an environment, from whatever state it is in. Only the cache stays.

use std::fs;
use std::io;
use std::sync::Arc;

use crate::error::{At, Result};
use crate::images;
use crate::one_host::OneHost;
use crate::phases::{Done, Runner, blocking};
use crate::progress::{Phase, Progress};

impl OneHost {
    /// Removes machines, networks and files. `true` when something was there.
    pub async fn down(&self, progress: Arc<dyn Progress>) -> Result<bool> {
        let runner = Runner::new(progress, |_| None);
        // First of all: whoever may not remove it could not even lock it.
        if let Err(error) = hangar_machine::host::check_privileges() {
            return runner.run(Phase::RemoveMachines, async { Err(error.into()) }).await;
        }
        // Without a directory there is nothing to lock, and nothing shall be made.
        let _lock = if self.layout.directory().exists() {
            Some(runner.run(Phase::Lock, self.lock()).await?)
        } else {
            None
        };
        runner.run(Phase::RemoveMachines, self.remove_machines()).await?;
        runner.run(Phase::RemoveNetwork, self.remove_network()).await?;
        runner.run(Phase::RemoveFiles, self.remove_files()).await?;
        Ok(runner.has_changed())
    }

    async fn remove_machines(&self) -> Result<Done<()>> {
        // First: it would make its servers' machines again.
        self.stop_cloud().await?;
        let (environment, cache, supervisor) =
            (self.environment.clone(), self.parts.cache().clone(), self.supervisor());
        blocking(move || {
            images::remove_leftovers(&cache, &supervisor)?;
            let machines = environment.machines()?;
            for status in &machines {
                environment.machine(&status.name).delete()?;
            }
            let names: Vec<&str> = machines.iter().map(|status| status.name.as_str()).collect();
            let text = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Ok(Done::new((), text, !names.is_empty()))
        })
        .await
    }

    async fn remove_network(&self) -> Result<Done<()>> {
        let environment = self.environment.clone();
        blocking(move || {
            let fabrics = environment.fabrics()?;
            let had_some = !fabrics.is_empty();
            environment.delete_all()?;
            Ok(Done::new((), if had_some { "removed" } else { "none" }, had_some))
        })
        .await
    }

    async fn remove_files(&self) -> Result<Done<()>> {
        let (directory, state) = (self.layout.directory().to_owned(), self.environment.state().to_owned());
        blocking(move || {
            let existed = match fs::remove_dir_all(&directory) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(error).at("remove", &directory),
            };
            // Only when no other environment is there.
            let _ = fs::remove_dir(&state);
            Ok(Done::new((), if existed { "removed" } else { "none" }, existed))
        })
        .await
    }
}

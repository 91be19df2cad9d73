//! The cloud as a process of the host: how it is started, and when it ends.
//!
//! There is one process per record: it holds a lock beside its record as long as it lives, and the kernel releases the
//! lock however the process ends. The process ends by itself when the record is gone or names another process, so that
//! removing an environment's files also ends its cloud.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_machine::ProcessIdentity;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Namespaces, Settings};
use crate::{Cloud, Config};

/// How often it looks whether it still is the one.
const LOOK: Duration = Duration::from_secs(2);

/// The file that a cloud's process is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessConfig {
    /// Where the API listens, inside the external network: tenants, management and the host all reach it there.
    pub listen: SocketAddr,
    /// Where the process records itself.
    pub record: PathBuf,
    pub cloud: Config,
    /// What stands behind it.
    pub driver: Settings,
}

/// The process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Its configuration cannot be read.
    #[error("configuration {path}: {why}")]
    Configuration { path: PathBuf, why: String },
    /// Another process serves already.
    #[error("another process serves this cloud: {0} is locked")]
    Busy(PathBuf),
    /// Its record cannot be written.
    #[error("cannot write {path}: {source}")]
    Record { path: PathBuf, source: io::Error },
    /// Machines or networks of the host.
    #[error(transparent)]
    Machine(#[from] hangar_machine::Error),
    #[error(transparent)]
    Cloud(#[from] crate::Error),
}

impl ProcessConfig {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, ProcessError> {
        let failed = |why: String| ProcessError::Configuration { path: path.to_owned(), why };
        let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
    }

    /// The process that serves, if one does.
    pub fn process(&self) -> Option<ProcessIdentity> {
        recorded(&self.record).filter(ProcessIdentity::is_alive)
    }
}

fn recorded(record: &Path) -> Option<ProcessIdentity> {
    serde_json::from_slice(&fs::read(record).ok()?).ok()
}

/// Serves until it is told to stop, its record is taken away, or it fails. Servers go on running.
pub async fn serve(config: ProcessConfig, stop: CancellationToken) -> Result<(), ProcessError> {
    // Away from the terminal of whoever started us. Fails for the leader of a group, which then is alone already.
    let _ = rustix::process::setsid();
    let own = ProcessIdentity::of(std::process::id().cast_signed());
    let _lock = take(&config.record, own.as_ref())?;
    let environment = config.driver.environment()?;
    let listener = environment.fabric(&config.driver.fabric)?.netns().listen_tcp(config.listen)?;
    let driver = Namespaces::new(config.driver)?;
    let mut handle = Cloud::serve(listener, config.cloud, driver).await?;
    tokio::select! {
        () = stop.cancelled() => {}
        () = handle.ended() => tracing::error!("the cloud ended unexpectedly"),
        () = disowned(&config.record, own.as_ref()) => tracing::warn!("the cloud's record was removed: stopping"),
    }
    handle.shutdown().await;
    Ok(())
}

/// Takes the lock and writes the record.
fn take(record: &Path, own: Option<&ProcessIdentity>) -> Result<File, ProcessError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| ProcessError::Record { path, source }
    };
    let path = record.with_extension("lock");
    let lock = File::options().create(true).append(true).open(&path).map_err(failed(&path))?;
    lock.try_lock().map_err(|_| ProcessError::Busy(path.clone()))?;
    let text = serde_json::to_vec(&own).map_err(|error| failed(record)(error.into()))?;
    let temporary = record.with_extension("new");
    fs::write(&temporary, text).map_err(failed(&temporary))?;
    fs::rename(&temporary, record).map_err(failed(record))?;
    Ok(lock)
}

async fn disowned(record: &Path, own: Option<&ProcessIdentity>) {
    loop {
        tokio::time::sleep(LOOK).await;
        if recorded(record).as_ref() != own {
            return;
        }
    }
}

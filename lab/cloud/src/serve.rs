//! Starts and ends a cloud.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::driver::Driver;
use crate::error::Error;
use crate::fault::{Armed, FaultRule};
use crate::model::{Draw, Model};
use crate::shared::Shared;
use crate::{engine, http, store};

pub use crate::shared::CallRecord;

/// The embedded cloud.
#[derive(Debug)]
pub struct Cloud;

impl Cloud {
    /// Serves the API on a listener, with a driver behind it, until the handle is shut down or dropped. Needs a tokio
    /// runtime. A listener of another network namespace stays in it.
    pub async fn serve<D: Driver>(
        listener: std::net::TcpListener,
        config: Config,
        driver: D,
    ) -> Result<Handle, Error> {
        listener.set_nonblocking(true).map_err(Error::Listen)?;
        let listener = TcpListener::from_std(listener).map_err(Error::Listen)?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let base_url = config.base_url(address)?;
        let mut model = match &config.state_file {
            Some(path) => store::load(path)?,
            None => Model::default(),
        };
        model.seed(&config, &mut Draw::random(Timestamp::now()))?;
        let state_file = config.state_file.clone();
        let shared = Arc::new(Shared::new(config, base_url, model));
        if let Some(path) = state_file {
            let failed =
                |words: String| Error::StateFile { path: path.clone(), source: std::io::Error::other(words) };
            shared.write(path.clone()).await.map_err(failed)?;
        }
        let driver = Arc::new(driver);
        let stop = CancellationToken::new();
        let writer = Arc::clone(&shared);
        let tasks = vec![
            tokio::spawn(async move { writer.keep_written().await }),
            tokio::spawn(engine::run(Arc::clone(&shared), Arc::clone(&driver))),
            tokio::spawn(http::accept(listener, Arc::clone(&shared), driver, stop.clone())),
        ];
        tracing::info!(%address, url = %shared.base_url, "embedded cloud listening");
        Ok(Handle { address, shared, stop, tasks })
    }
}

/// A cloud that runs. Dropping it ends it; what stands behind it stays.
pub struct Handle {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Handle").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Handle {
    /// What is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The public URL.
    pub fn url(&self) -> &str {
        &self.shared.base_url
    }

    /// The URL for `auth_url` of a `clouds.yaml`.
    pub fn auth_url(&self) -> String {
        format!("{}/identity/v3", self.shared.base_url)
    }

    /// A copy of everything the cloud holds.
    pub fn model(&self) -> Model {
        self.shared.lock().model.clone()
    }

    /// Calls so far, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.shared.lock().calls.iter().cloned().collect()
    }

    /// Lets calls go wrong.
    pub fn arm(&self, rule: FaultRule) {
        self.shared.lock().faults.arm(rule);
    }

    /// Rules, and how often each fired.
    pub fn faults(&self) -> Vec<Armed> {
        self.shared.lock().faults.all().to_vec()
    }

    /// Lets all calls go well again.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// Ends the cloud and waits until nothing of it runs and nothing more is written. All that was answered is in the
    /// state file, also what only reads have shown.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            task.abort();
            // An aborted task ends with an error that says so.
            drop(task.await);
        }
        self.shared.end_calls().shutdown().await;
        if let Some(path) = self.shared.config.state_file.clone()
            && let Err(failure) = self.shared.write(path.clone()).await
        {
            tracing::error!(%failure, path = %path.display(), "state file not written");
        }
    }

    /// Waits until a part of the cloud ends by itself, which it does only when it fails. An API without what stands
    /// behind it would promise servers that never come.
    pub async fn ended(&mut self) {
        let tasks = &mut self.tasks;
        let ended = poll_fn(|context| {
            let is_over = |task: &mut JoinHandle<()>| Pin::new(task).poll(context).is_ready();
            tasks.iter_mut().position(is_over).map_or(Poll::Pending, Poll::Ready)
        });
        // It must not be waited for again.
        let ended = ended.await;
        drop(self.tasks.remove(ended));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
        for task in &self.tasks {
            task.abort();
        }
        drop(self.shared.end_calls());
    }
}

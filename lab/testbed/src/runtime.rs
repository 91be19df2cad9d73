//! The testbed's own runtime, on its own thread.
//!
//! A test's runtime ends with the test. The testbed's own work must not depend on it, and must also work when a test
//! calls it from inside its runtime.

use std::future::Future;
use std::sync::mpsc;

use tokio::runtime::{Builder, Runtime};

use crate::Error;

#[derive(Debug)]
pub(crate) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    pub(crate) fn start() -> Result<Self, Error> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("testbed").enable_all();
        Ok(Self(Some(builder.build().map_err(Error::Runtime)?)))
    }

    /// Runs the future and blocks the calling thread until it is done.
    #[allow(clippy::panic)] // Only tests use this crate, and there is nothing else they could do.
    pub(crate) fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let (sender, receiver) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.0 {
            runtime.spawn(async move {
                let _ = sender.send(future.await);
            });
        }
        match receiver.recv() {
            Ok(value) => value,
            Err(mpsc::RecvError) => panic!("a call of the testbed itself panicked"),
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        // Dropping a runtime waits for its tasks, which is forbidden inside another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

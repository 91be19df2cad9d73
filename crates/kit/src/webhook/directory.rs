//! A certificate from files that are provided and renewed externally, such as a mounted Secret.
//!
//! It is used as given: we issue no authority and write none into other objects. The files are compared every few
//! seconds instead of being watched: a mounted Secret changes by swapping symbolic links, which file watches miss in
//! many ways.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_pki::{Certificate, KeyPairPem, PrivateKeyPem};
use tokio_util::sync::CancellationToken;

use super::{CertificateSlot, Error};
use crate::metrics::CertificateMetrics;

/// The kubelet itself needs up to a minute to bring a changed Secret into a pod.
const INTERVAL: Duration = Duration::from_secs(5);

/// A directory with `tls.crt` and `tls.key`.
#[derive(Clone, Debug)]
pub struct CertificateDirectory {
    path: PathBuf,
    interval: Duration,
}

impl CertificateDirectory {
    /// The directory; the files are read when it is used.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), interval: INTERVAL }
    }

    /// Looks for changes this often.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// True if both files are there.
    pub fn has_certificate(path: &Path) -> bool {
        path.join("tls.crt").is_file() && path.join("tls.key").is_file()
    }

    /// Fills the slot, now and after each change, until `stop` is cancelled. Fails if the first certificate
    /// cannot be used; a later one that cannot is logged and the old one stays.
    pub async fn follow(
        &self,
        slot: &CertificateSlot,
        metrics: &CertificateMetrics,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let mut current = self.read()?;
        fill(slot, &current, metrics)?;
        // Half-written pairs happen while files are replaced one by one: each is reported once.
        let mut seen_before = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(self.interval) => {}
            }
            let found = match self.read() {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "certificate not read");
                    continue;
                }
            };
            if found == current {
                continue;
            }
            match fill(slot, &found, metrics) {
                Ok(()) => current = found,
                Err(error) if seen_before.as_ref() != Some(&found) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot load the new webhook certificate: keeping the old one"
                    );
                    seen_before = Some(found);
                }
                Err(_) => {}
            }
        }
    }

    /// Two small files from memory or a local disk: not worth a thread of their own.
    fn read(&self) -> Result<KeyPairPem, Error> {
        let read = |name: &str| {
            let path = self.path.join(name);
            std::fs::read_to_string(&path).map_err(|source| Error::File { path, source })
        };
        Ok(KeyPairPem { certificate: read("tls.crt")?, key: PrivateKeyPem::new(read("tls.key")?) })
    }
}

fn fill(slot: &CertificateSlot, pair: &KeyPairPem, metrics: &CertificateMetrics) -> Result<(), Error> {
    slot.fill(pair)?;
    let certificate = Certificate::parse(&pair.certificate)?;
    metrics.observe("webhook", certificate.not_after());
    tracing::info!(serial = certificate.serial(), not_after = %certificate.not_after(), "webhook certificate loaded");
    Ok(())
}

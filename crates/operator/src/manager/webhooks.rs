//! The webhook server of a manager, and the certificate that it serves with.

use std::net::SocketAddr;

use hangar_api::conversion::{self, VersionLookup};
use hangar_api::crd::CONVERSION_PATH;
use hangar_kit::call::ServerClock;
use hangar_kit::metrics::{Metrics, WebhookMetrics};
use hangar_kit::settings::WebhookCertificateSource;
use hangar_kit::webhook::{
    CertificateDirectory, CertificateSlot, IssuedCertificate, WebhookServer, Webhooks,
};
use hangar_plan::admission::Lookup;
use hangar_plan::controllers::Selection;
use hangar_plan::install::{self, MUTATING_PATH, VALIDATING_PATH};
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::contracts::Contracts;
use crate::{Error, admission};

/// Everything that is answered, and what it is answered from.
pub fn handlers(
    metrics: WebhookMetrics,
    versions: impl VersionLookup + Send + Sync + 'static,
    others: impl Lookup + Send + Sync + 'static,
) -> Webhooks {
    Webhooks::new(metrics)
        .admission(MUTATING_PATH, admission::mutate)
        .admission(VALIDATING_PATH, move |review| admission::validate(review, &others))
        .conversion(CONVERSION_PATH, move |object, version| {
            conversion::convert(object, version, &versions).map_err(|error| error.to_string())
        })
}

/// The running server.
pub(super) struct Serving {
    server: WebhookServer,
    slot: CertificateSlot,
    issued: Option<IssuedCertificate>,
    follower: JoinHandle<()>,
}

impl Serving {
    /// Binds the port and starts to look after the certificate; requests are answered once there is one.
    pub(super) fn start(
        client: &Client,
        options: &Options,
        metrics: &Metrics,
        contracts: Contracts,
        clock: &ServerClock,
        others: admission::Others,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let handlers = handlers(metrics.webhook.clone(), contracts, others);
        let slot = CertificateSlot::new();
        let server = WebhookServer::start(options.settings.webhook_address, handlers, &slot, stop.clone())?;
        let (issued, follower) = match &options.settings.webhook_certificate {
            WebhookCertificateSource::Issued => {
                let namespace = options.settings.controller_namespace.clone();
                let issued = IssuedCertificate::new(client.clone(), namespace, options.target.clone())?
                    // Those that were installed carry our label, whichever controllers run in this manager.
                    .with_objects(install::NAME, install::converted(&Selection::all()))
                    .with_conversion_path(CONVERSION_PATH)
                    .with_server_clock(clock.clone())
                    .with_metrics(metrics.certificates.clone());
                let (follower, slot, stop) = (issued.clone(), slot.clone(), stop.clone());
                (Some(issued), tokio::spawn(async move { follower.follow(&slot, &stop).await }))
            }
            WebhookCertificateSource::Directory(path) => {
                let directory = CertificateDirectory::new(path);
                let (slot, metrics, stop) = (slot.clone(), metrics.certificates.clone(), stop.clone());
                let follow = async move {
                    if let Err(error) = directory.follow(&slot, &metrics, &stop).await {
                        let error: &(dyn std::error::Error + 'static) = &error;
                        tracing::error!(error, "webhooks are not served");
                    }
                };
                (None, tokio::spawn(follow))
            }
        };
        Ok(Self { server, slot, issued, follower })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Where the certificate is.
    pub(super) fn slot(&self) -> &CertificateSlot {
        &self.slot
    }

    /// The certificate in our own care, if it is: then the leader renews and injects it.
    pub(super) fn issued(&self) -> Option<&IssuedCertificate> {
        self.issued.as_ref()
    }

    /// Returns when the last request is answered. Cancel the token given at the start first.
    pub(super) async fn stopped(self) {
        let _ = self.follower.await;
        if let Err(error) = self.server.stopped().await {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(error, "the webhook server");
        }
    }
}

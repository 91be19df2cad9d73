//! The certificate we issue ourselves, in a Secret that all replicas share.
//!
//! The first replica creates the Secret; the others get a conflict and read it. From then on every replica follows the
//! Secret, and only the leader changes it (`keep`), each time on the resource version it decided on.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use hangar_pki::Intent;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::certificates::{Salvage, WebhookCertificates};
use super::inject::Kind;
use super::keep::Object;
use super::{CertificateSlot, Error, RenewalPolicy, WebhookTarget};
use crate::call::ServerClock;
use crate::metrics::CertificateMetrics;

/// Name of the Secret.
pub const CERTIFICATE_SECRET: &str = "hangar-webhook-certificate";

/// Who writes, in managed fields.
pub(super) const FIELD_MANAGER: &str = "hangar-webhook";

/// Pause after a failed call.
pub(super) const RETRY: std::time::Duration = std::time::Duration::from_secs(2);

type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The Secret as last seen.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    Unknown,
    /// It does not exist.
    Absent,
    /// It cannot be used.
    Broken(Arc<Secret>),
    Usable {
        certificates: Arc<WebhookCertificates>,
        resource_version: String,
    },
}

/// A certificate that Hangar issues for its own webhooks.
#[derive(Clone)]
pub struct IssuedCertificate {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) target: WebhookTarget,
    pub(super) intent: Intent,
    pub(super) policy: RenewalPolicy,
    pub(super) clock: Clock,
    server_clock: ServerClock,
    pub(super) objects: BTreeSet<Object>,
    pub(super) conversion_path: String,
    pub(super) stored: watch::Sender<Stored>,
    metrics: Option<CertificateMetrics>,
}

impl std::fmt::Debug for IssuedCertificate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("IssuedCertificate")
            .field("namespace", &self.namespace)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl IssuedCertificate {
    /// For webhooks at `target`, with the Secret in `namespace`.
    pub fn new(client: Client, namespace: impl Into<String>, target: WebhookTarget) -> Result<Self, Error> {
        let policy = RenewalPolicy::default();
        Ok(Self {
            client,
            namespace: namespace.into(),
            intent: target.intent(policy.serving_lifetime)?,
            target,
            policy,
            clock: Arc::new(Timestamp::now),
            server_clock: ServerClock::default(),
            objects: BTreeSet::new(),
            conversion_path: "/convert".to_owned(),
            stored: watch::Sender::new(Stored::Unknown),
            metrics: None,
        })
    }

    /// Renews by this policy.
    #[must_use]
    pub fn with_policy(mut self, policy: RenewalPolicy) -> Self {
        self.intent.lifetime = policy.serving_lifetime;
        self.policy = policy;
        self
    }

    /// Tells the time by this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Mints nothing while this clock, of the API server, disagrees.
    #[must_use]
    pub fn with_server_clock(mut self, clock: ServerClock) -> Self {
        self.server_clock = clock;
        self
    }

    /// Writes address and authority into the webhook configurations of this name and into these CRDs, if they carry
    /// [`super::WEBHOOK_LABEL`].
    #[must_use]
    pub fn with_objects(
        mut self,
        configurations: &str,
        definitions: impl IntoIterator<Item = String>,
    ) -> Self {
        let configurations = [Kind::Validating, Kind::Mutating].map(|kind| (kind, configurations.to_owned()));
        let definitions = definitions.into_iter().map(|name| (Kind::Definition, name));
        self.objects = configurations.into_iter().chain(definitions).collect();
        self
    }

    /// Where CRDs that name no path find their conversion.
    #[must_use]
    pub fn with_conversion_path(mut self, path: impl Into<String>) -> Self {
        self.conversion_path = path.into();
        self
    }

    /// Reports expiry there.
    #[must_use]
    pub fn with_metrics(mut self, metrics: CertificateMetrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Every replica's part: creates the Secret if there is none, and fills `slot` with what it holds, now and
    /// after each change, until `stop` is cancelled.
    pub async fn follow(&self, slot: &CertificateSlot, stop: &CancellationToken) {
        let mut changes =
            std::pin::pin!(watcher::watch_object(self.secrets(), CERTIFICATE_SECRET).default_backoff());
        loop {
            let change = tokio::select! {
                () = stop.cancelled() => return,
                change = changes.next() => change,
            };
            match change {
                Some(Ok(Some(secret))) => self.adopt(secret, slot),
                Some(Ok(None)) => {
                    self.stored.send_replace(Stored::Absent);
                    if self.create(stop).await.is_none() {
                        return;
                    }
                }
                Some(Err(error)) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the watch of the webhook certificate failed"
                    );
                }
                None => return,
            }
        }
    }

    /// The current time.
    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The time to mint at: none while the clocks disagree.
    pub(super) fn minting_time(&self) -> Result<Timestamp, Error> {
        let now = self.now();
        self.server_clock.at(now).disagreement().map_or(Ok(now), |why| Err(Error::Clocks(why)))
    }

    pub(super) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn adopt(&self, secret: Secret, slot: &CertificateSlot) {
        let data = secret.data.clone().unwrap_or_default();
        let usable = WebhookCertificates::read(&data).and_then(|certificates| {
            let filled = slot.fill_behind(certificates.serving(), certificates.tokens());
            filled.map(|()| certificates).map_err(|error| error.to_string())
        });
        match usable {
            Ok(certificates) => {
                let certificate = certificates.serving_certificate();
                tracing::info!(serial = certificate.serial(), not_after = %certificate.not_after(), "webhook certificate loaded");
                if let Some(metrics) = &self.metrics {
                    metrics.observe("webhook", certificate.not_after());
                    metrics.observe("webhook-authority", certificates.authority_end());
                }
                let resource_version = secret.metadata.resource_version.unwrap_or_default();
                self.stored
                    .send_replace(Stored::Usable { certificates: Arc::new(certificates), resource_version });
            }
            Err(why) => {
                tracing::error!(secret = CERTIFICATE_SECRET, why, "the webhook certificate cannot be used");
                self.stored.send_replace(Stored::Broken(Arc::new(secret)));
            }
        }
    }

    /// Creates the Secret unless another replica does; retries until it exists. `None` when stopped.
    async fn create(&self, stop: &CancellationToken) -> Option<()> {
        loop {
            match self.try_create().await {
                Ok(()) => return Some(()),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "certificate not created");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    async fn try_create(&self) -> Result<(), Error> {
        let certificates = WebhookCertificates::create(
            &self.intent,
            &self.policy,
            Salvage::default(),
            self.minting_time()?,
        )?;
        let secret = Secret {
            metadata: ObjectMeta { name: Some(CERTIFICATE_SECRET.to_owned()), ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(certificates.write()),
            ..Secret::default()
        };
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.secrets().create(&parameters, &secret).await {
            Ok(_) => Ok(()),
            // Another replica was faster; the watch brings what it wrote.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(call("create the webhook certificate", error)),
        }
    }
}

pub(super) fn call(what: &str, error: kube::Error) -> Error {
    Error::Call { what: what.to_owned(), source: Box::new(error) }
}

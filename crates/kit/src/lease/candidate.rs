//! Competes for the lease, and makes the calls that competing and renewing share.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clock::{Clock, Moment};
use super::record::{self, Decision, Observation};
use super::{Error, Held, LeaseSettings, Standing, Term};
use crate::metrics::LeaderMetrics;

/// Attempts to acquire are spread by up to this fraction of the retry period, as in client-go, so that replicas
/// which started together do not keep asking together.
const JITTER: f64 = 1.2;

/// Who writes the Lease, in its managed fields.
const FIELD_MANAGER: &str = "hangar-lease";

/// A process that wants to lead.
#[derive(Clone)]
pub struct Candidate {
    api: Api<Lease>,
    settings: LeaseSettings,
    metrics: Option<LeaderMetrics>,
    current: watch::Sender<Option<Term>>,
    clock: Clock,
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Candidate").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Attempt {
    /// We hold the lease; the call that wrote it was sent at this moment.
    Held {
        observation: Observation,
        sent_at: Moment,
    },
    Taken(Observation),
}

impl Candidate {
    /// Checks the settings.
    pub fn new(client: kube::Client, settings: LeaseSettings) -> Result<Self, Error> {
        settings.check()?;
        Ok(Self {
            api: Api::namespaced(client, &settings.namespace),
            settings,
            metrics: None,
            current: watch::Sender::new(None),
            clock: Clock::default(),
        })
    }

    /// Reports leadership there.
    #[must_use]
    pub fn with_metrics(mut self, metrics: LeaderMetrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Whether this candidate leads, now and later. May be asked for before there is a first term.
    pub fn standing(&self) -> Standing {
        Standing::new(self.current.subscribe())
    }

    pub(super) fn announce(&self, term: Option<Term>) {
        self.current.send_replace(term);
    }

    /// Competes until we lead; nothing if `stop` is cancelled before. Errors of the API server are logged and
    /// tried again: a candidate has nothing better to do.
    pub async fn acquire(&self, stop: &CancellationToken) -> Option<Held> {
        let mut seen: Option<Observation> = None;
        while !stop.is_cancelled() {
            let mut pause = jittered(self.settings.retry_period);
            match self.attempt(seen.clone(), self.settings.renew_deadline / 2).await {
                Ok(Attempt::Held { observation, sent_at }) => {
                    tracing::info!(lease = %self.settings.name, identity = %self.settings.identity, "leading");
                    return Some(Held::start(self.clone(), observation, sent_at));
                }
                Ok(Attempt::Taken(observation)) => {
                    if seen.as_ref().and_then(Observation::holder) != observation.holder() {
                        tracing::info!(lease = %self.settings.name, holder = observation.holder(), "following");
                    }
                    // No need to be late when the moment is known.
                    if let Decision::WaitUntil(moment) = self.decide(&observation) {
                        pause = pause.min(moment.saturating_duration_since(Instant::now()));
                    }
                    seen = Some(observation);
                }
                Err(error) => {
                    tracing::warn!(lease = %self.settings.name, error = &error as &dyn std::error::Error, "cannot use the lease");
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        None
    }

    /// One attempt to take or renew, within `limit`.
    pub(super) async fn attempt(&self, seen: Option<Observation>, limit: Duration) -> Result<Attempt, Error> {
        tokio::time::timeout(limit, self.take_or_renew(seen)).await.map_err(|_| Error::Timeout(limit))?
    }

    async fn take_or_renew(&self, seen: Option<Observation>) -> Result<Attempt, Error> {
        // A holder that saw its own record last writes without reading: half the calls of an idle leader.
        if let Some(observation) = &seen
            && self.decide(observation) == Decision::Renew
            && let Some(held) = self.write(observation).await?
        {
            return Ok(held);
        }
        let Some(lease) = self.api.get_opt(&self.settings.name).await.map_err(call)? else {
            return self.create().await;
        };
        let observation = Observation::update(seen, lease, Instant::now());
        if let Decision::WaitUntil(_) = self.decide(&observation) {
            return Ok(Attempt::Taken(observation));
        }
        // A conflict means that somebody was faster: who it was shows at the next read.
        Ok(self.write(&observation).await?.unwrap_or(Attempt::Taken(observation)))
    }

    async fn create(&self) -> Result<Attempt, Error> {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() },
            spec: Some(record::first(&self.settings.identity, self.settings.duration, Timestamp::now())),
        };
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let sent_at = self.clock.now();
        let created = self.api.create(&parameters, &lease).await.map_err(call)?;
        Ok(Attempt::Held { observation: Observation::update(None, created, Instant::now()), sent_at })
    }

    /// Writes our record on top of `observation`; nothing if that is not the current one any more.
    async fn write(&self, observation: &Observation) -> Result<Option<Attempt>, Error> {
        let spec = observation.next(&self.settings.identity, self.settings.duration, Timestamp::now());
        let sent_at = self.clock.now();
        let Some(written) = self.patch(&record::patch(&spec, &observation.resource_version)).await? else {
            return Ok(None);
        };
        let observation = Observation::update(Some(observation.clone()), written, Instant::now());
        Ok(Some(Attempt::Held { observation, sent_at }))
    }

    /// Gives the lease back, if it is still ours as observed.
    pub(super) async fn release(&self, observation: &Observation) -> Result<(), Error> {
        let limit = self.settings.renew_deadline / 2;
        let patch = record::patch(&observation.released(Timestamp::now()), &observation.resource_version);
        let written =
            tokio::time::timeout(limit, self.patch(&patch)).await.map_err(|_| Error::Timeout(limit))??;
        if written.is_none() {
            tracing::info!(lease = %self.settings.name, "lease not released: another manager holds it, or it was deleted");
        }
        Ok(())
    }

    /// Nothing on a conflict, or if the Lease does not exist any more.
    async fn patch(&self, patch: &serde_json::Value) -> Result<Option<Lease>, Error> {
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match self.api.patch(&self.settings.name, &parameters, &Patch::Merge(patch)).await {
            Ok(lease) => Ok(Some(lease)),
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(None),
            Err(error) => Err(call(error)),
        }
    }

    fn decide(&self, observation: &Observation) -> Decision {
        observation.decide(&self.settings.identity, self.settings.duration, Instant::now())
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn settings(&self) -> &LeaseSettings {
        &self.settings
    }

    pub(super) fn metrics(&self) -> Option<&LeaderMetrics> {
        self.metrics.as_ref()
    }
}

fn call(error: kube::Error) -> Error {
    Error::Call(Box::new(error))
}

fn jittered(period: Duration) -> Duration {
    period.mul_f64(1.0 + rand::random::<f64>() * JITTER)
}

//! `hangar manager`: the process in which the controllers run.
//!
//! Every replica serves health, metrics and webhooks from its start and competes for the lease; the controllers compute
//! and write only in the replica that holds it. If the API server is away the manager waits, reports that on `/readyz`,
//! and continues when the API server is back.
//!
//! Controllers write through a client of their own, which sends a write only if the lease outlasts it.
//!
//! When the manager stops, the controllers end their passes, the lease is released, open webhook requests are answered,
//! and telemetry is flushed. Webhooks stop after the lease is released, because writes of the next leader may need
//! them.

mod leading;
mod webhooks;

pub use webhooks::handlers;

use std::sync::Arc;
use std::time::Duration;

use hangar_kit::call::{CallGate, FencingGate, ServerClock};
use hangar_kit::client::{ClientOptions, client};
use hangar_kit::descriptors;
use hangar_kit::health::Health;
use hangar_kit::leadership::Leadership;
use hangar_kit::lease::LeaseSettings;
use hangar_kit::metrics::Metrics;
use hangar_kit::serve::PlainServer;
use hangar_kit::settings::ManagerSettings;
use hangar_kit::shutdown::{StopSequence, on_signal};
use hangar_kit::telemetry::Telemetry;
use hangar_kit::webhook::WebhookTarget;
use hangar_plan::controllers::Selection;
use hangar_plan::limits::Limits;
use hangar_plan::namespaces::Namespaces;
use hangar_plan::openstack::SETTLING;
use kube::Config;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Handles};
use crate::contracts::Contracts;
use crate::reconcile::WRITE_LIMIT;
use crate::{Error, admission, controllers};
use leading::Leading;

/// Everything a manager is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Addresses, logs, namespace and the like.
    pub settings: ManagerSettings,
    pub controllers: Selection,
    /// Where objects are looked after.
    pub namespaces: Namespaces,
    /// What control planes may ask for beyond their namespace.
    pub limits: Arc<Limits>,
    /// The image that it runs from.
    pub image: Option<String>,
    /// How the lease is competed for.
    pub lease: LeaseSettings,
    /// Where the API server finds our webhooks.
    pub target: WebhookTarget,
}

/// All of a stop together; a pod gets 40 s.
const STOP_LIMIT: Duration = Duration::from_secs(35);

/// Longer than the grace that controllers give their last reconciles.
const CONTROLLERS_LIMIT: Duration = Duration::from_secs(22);

/// Runs until a signal asks to stop. An error if a controller broke before.
pub async fn run(config: Config, options: Options) -> Result<(), Error> {
    let metrics = Metrics::new();
    let telemetry = Telemetry::start(&options.settings.telemetry, &metrics)?;
    descriptors::raise_limit();
    let stop = on_signal().map_err(Error::Signals)?;
    let result = serve(config, &options, &metrics, &stop).await;
    telemetry.shutdown(Duration::from_secs(3)).await;
    result
}

async fn serve(
    config: Config,
    options: &Options,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let settings = &options.settings;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        controllers = %options.controllers,
        namespaces = %options.namespaces,
        namespace = %settings.controller_namespace,
        api_server = %config.cluster_url,
        "starting"
    );
    // Servers stop after the work; their token is cancelled by the stop sequence, not by the signal.
    let serving = CancellationToken::new();
    let _serving_ends_with_us = serving.clone().drop_guard();
    let clock = ServerClock::default();
    let reading = ClientOptions::default().gate(metrics.calls.clone()).gate(clock.clone());
    let client = client(config.clone(), &reading)?;
    let leading = Leading::prepare(&client, options, metrics)?;
    let health = Health::new();
    let contracts_ready = health.readiness("custom-resource-definitions");
    let webhooks_ready = health.readiness("webhooks");
    let plain = |purpose, address, router| {
        let serving = serving.clone();
        async move {
            let listen = |source| Error::Listen { purpose, address, source };
            PlainServer::start(address, router, serving).await.map_err(listen)
        }
    };
    let health_server = plain("health", settings.health_address, health.router()).await?;
    let metrics_server = plain("metrics", settings.metrics_address, metrics.router()).await?;

    // Stores end with the servers: controllers end their last reconciles over fresh reads, and webhooks look there too.
    let handles = handles(config, options, metrics, &clock, &leading.leadership())?;
    let contracts = Contracts::of(&handles, &serving);
    let context = Context::new(handles, contracts.clone(), &serving, stop);
    let others = admission::Others::new(&context);
    let webhooks =
        webhooks::Serving::start(&client, options, metrics, contracts.clone(), &clock, others, &serving)?;
    tracing::info!(
        health = %health_server.address(),
        metrics = %metrics_server.address(),
        webhooks = %webhooks.address(),
        "serving"
    );

    tokio::spawn({
        let contracts = contracts.clone();
        async move {
            contracts.synced().await;
            contracts_ready.pass();
        }
    });
    tokio::spawn({
        let slot = webhooks.slot().clone();
        async move {
            slot.filled().await;
            webhooks_ready.pass();
            tracing::info!("ready to serve webhooks");
        }
    });

    let working = {
        let selection = options.controllers.clone();
        tokio::spawn(async move { controllers::run_with(context, contracts, &selection).await })
    };
    let leading = leading.compete(webhooks.issued().cloned(), stop);
    stop.cancelled().await;
    let mut ended = Ok(());
    StopSequence::new()
        .step("controllers", CONTROLLERS_LIMIT, async {
            let broken = |error: tokio::task::JoinError| Err(Error::ControllerEnded(error.to_string()));
            ended = working.await.unwrap_or_else(broken);
        })
        .step("lease", Duration::from_secs(4), leading.release())
        .step("webhooks", Duration::from_secs(5), async {
            serving.cancel();
            webhooks.stopped().await;
        })
        .step("health and metrics", Duration::from_secs(1), async {
            let _ = health_server.stopped().await;
            let _ = metrics_server.stopped().await;
        })
        .run(STOP_LIMIT)
        .await;
    tracing::info!("stopped");
    ended
}

/// What the controllers are given: a client whose writes are fenced, and all else that is shared.
fn handles(
    config: Config,
    options: &Options,
    metrics: &Metrics,
    clock: &ServerClock,
    leadership: &Arc<dyn Leadership>,
) -> Result<Handles, Error> {
    let fence = || FencingGate::new(Arc::clone(leadership), WRITE_LIMIT);
    let writing = ClientOptions::default()
        .write_limit(WRITE_LIMIT)
        .gate(metrics.calls.clone())
        .gate(clock.clone())
        .gate(fence());
    let tenant_gates: Vec<Arc<dyn CallGate>> = vec![Arc::new(fence())];
    Ok(Handles {
        client: client(config, &writing)?,
        leadership: Arc::clone(leadership),
        metrics: metrics.clone(),
        clock: clock.clone(),
        namespaces: options.namespaces.clone(),
        concurrency: options.settings.max_concurrent_reconciles.get(),
        instance: options.lease.identity.clone(),
        tenant_gates,
        cloud_gates: Vec::new(),
        etcd_gates: Vec::new(),
        settling: SETTLING,
        limits: Arc::clone(&options.limits),
        image: options.image.clone(),
        own_namespace: Some(options.lease.namespace.clone()),
    })
}

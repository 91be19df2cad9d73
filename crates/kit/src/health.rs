//! `/healthz` and `/readyz`, with named checks.
//!
//! A component gets a [`Check`] and reports through it; nothing is called at probe time, so a probe costs nothing and
//! cannot hang. A readiness check starts out failing ("has not reported yet"), a liveness check starts out passing: a
//! process that has just begun is alive but not ready. `?verbose` lists every check; `/readyz/NAME` shows one. The text
//! has the format of Kubernetes' own health endpoints.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, RwLock};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;

/// All checks of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Health {
    alive: Checks,
    ready: Checks,
}

#[derive(Clone, Debug, Default)]
struct Checks(Arc<RwLock<BTreeMap<String, Result<(), String>>>>);

/// A component's end of a check.
#[derive(Clone, Debug)]
pub struct Check {
    name: String,
    checks: Checks,
}

impl Check {
    /// The component is fine.
    pub fn pass(&self) {
        self.checks.set(&self.name, Ok(()));
    }

    /// The component is not fine, and why.
    pub fn fail(&self, why: impl Into<String>) {
        self.checks.set(&self.name, Err(why.into()));
    }
}

impl Health {
    /// No checks yet: alive and ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check of `/healthz`; it passes until told otherwise. A failing one makes Kubernetes restart the
    /// process: only for what a restart cures.
    pub fn liveness(&self, name: &str) -> Check {
        self.alive.add(name, Ok(()))
    }

    /// Adds a check of `/readyz`; it fails until told otherwise.
    pub fn readiness(&self, name: &str) -> Check {
        self.ready.add(name, Err("has not reported yet".to_owned()))
    }

    /// Serves `/healthz`, its alias `/livez`, and `/readyz`.
    pub fn router(&self) -> Router {
        let group = |name: &'static str, checks: &Checks| {
            Router::new()
                .route(&format!("/{name}"), get(all))
                .route(&format!("/{name}/{{check}}"), get(one))
                .with_state((name, checks.clone()))
        };
        group("healthz", &self.alive).merge(group("livez", &self.alive)).merge(group("readyz", &self.ready))
    }
}

impl Checks {
    fn add(&self, name: &str, initial: Result<(), String>) -> Check {
        self.set(name, initial);
        Check { name: name.to_owned(), checks: self.clone() }
    }

    fn set(&self, name: &str, state: Result<(), String>) {
        // A poisoned lock only says that another thread panicked while it held whole values.
        let mut checks = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        checks.insert(name.to_owned(), state);
    }

    fn snapshot(&self) -> BTreeMap<String, Result<(), String>> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

type Group = State<(&'static str, Checks)>;

async fn all(State((group, checks)): Group, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let verbose = query.is_some_and(|query| {
        query.split('&').any(|pair| matches!(pair, "verbose" | "verbose=" | "verbose=true" | "verbose=1"))
    });
    let states = checks.snapshot();
    let passed = states.values().all(Result::is_ok);
    if passed && !verbose {
        return (StatusCode::OK, "ok".to_owned());
    }
    let mut text = String::new();
    for (name, state) in &states {
        // Writing into a String cannot fail.
        let _ = match state {
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(why) => writeln!(text, "[-]{name} failed: {why}"),
        };
    }
    let _ = writeln!(text, "{group} check {}", if passed { "passed" } else { "failed" });
    (if passed { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text)
}

async fn one(State((_, checks)): Group, Path(name): Path<String>) -> (StatusCode, String) {
    match checks.snapshot().remove(&name) {
        Some(Ok(())) => (StatusCode::OK, "ok".to_owned()),
        Some(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, why),
        None => (StatusCode::NOT_FOUND, format!("there is no check {name:?}")),
    }
}

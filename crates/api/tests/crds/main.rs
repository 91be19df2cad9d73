//! The CRDs: as files, as schemas, beside upstream's, and in a real API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test reports by failing")]

mod admission;
mod difference;
mod fields;
mod golden;
mod schema;
mod upstream;

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Generated once: a debug build takes a second for it.
static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(hangar_api::crd::all);

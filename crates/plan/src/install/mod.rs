//! Plans what `hangar install` puts into a management cluster.
//!
//! It is a pure function of the options: `--print` shows the same objects that an installation applies, in the same
//! order. They include only the CRDs, rights and webhooks of the chosen controllers.

mod custom_resources;
mod paths;
mod priority;
pub mod reference;
mod rights;
mod webhooks;
mod workload;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use crate::controllers::Selection;
use crate::namespaces::Namespaces;

pub use custom_resources::{MANAGED_BY, MANAGED_BY_LABEL, converted};
pub use paths::keeping_paths;
pub use priority::{CONTROL_PLANE_CLASS, ETCD_CLASS};
pub use rights::{CONTROLLERS_ROLE, LEASE, is_left_over};
pub use webhooks::{MUTATING_PATH, SCALE, Target, VALIDATING_PATH, WEBHOOK_LABEL, WEBHOOK_SERVICE};
pub(crate) use workload::selector as manager_labels;

/// The name of the Deployment, the ServiceAccount, the roles and the webhook configurations.
pub const NAME: &str = "hangar-manager";

/// The namespace people get unless they ask for another.
pub const DEFAULT_NAMESPACE: &str = "hangar-system";

/// The ports of the manager's container.
pub mod ports {
    pub const METRICS: u16 = 8080;
    /// `/healthz` and `/readyz`
    pub const HEALTH: u16 = 8081;
    /// Admission and conversion.
    pub const WEBHOOK: u16 = 9443;
}

/// What an installation depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Where the manager runs.
    pub namespace: String,
    /// The manager's image.
    pub image: String,
    /// How many managers: one leads, all serve webhooks.
    pub replicas: u16,
    /// Which controllers they run.
    pub controllers: Selection,
    /// Where they look after objects.
    pub namespaces: Namespaces,
    /// Where the API server finds the webhooks.
    pub target: Target,
    /// Where the manager finds the API server, if not by its Service: then it need not wait until kube-proxy has made
    /// that one work.
    pub api_server: Option<SocketAddr>,
    /// What control planes may ask for beyond their namespace, as the operator wrote it; the defaults if empty.
    pub limits: Option<String>,
}

/// An installation that could not be written down.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("an object cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("a CRD cannot be written")]
    CustomResource(#[from] hangar_api::crd::yaml::Error),
    #[error("an object cannot be written as YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// Every object, in the order in which they are applied.
pub fn objects(options: &Options) -> Result<Vec<Value>, Error> {
    let mut objects = vec![document(&workload::namespace(options))?];
    for definition in custom_resources::chosen(options) {
        objects.push(hangar_api::crd::yaml::to_json(&definition)?);
    }
    for class in priority::classes(options) {
        objects.push(document(&class)?);
    }
    objects.push(document(&workload::service_account(options))?);
    objects.push(document(&rights::cluster_role(options))?);
    objects.push(document(&rights::cluster_role_binding(options))?);
    for role in rights::roles(options) {
        objects.push(document(&role)?);
    }
    for binding in rights::role_bindings(options) {
        objects.push(document(&binding)?);
    }
    objects.push(document(&workload::webhook_service(options))?);
    objects.push(document(&workload::metrics_service(options))?);
    if let Some(limits) = workload::limits(options) {
        objects.push(document(&limits)?);
    }
    objects.push(document(&workload::deployment(options))?);
    if let Some(budget) = workload::disruption_budget(options) {
        objects.push(document(&budget)?);
    }
    if let Some(configuration) = webhooks::mutating(options) {
        objects.push(document(&configuration)?);
    }
    if let Some(configuration) = webhooks::validating(options) {
        objects.push(document(&configuration)?);
    }
    Ok(objects)
}

/// The objects as one YAML stream.
pub fn to_yaml(objects: &[Value]) -> Result<String, Error> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object)?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

fn document(object: &impl Serialize) -> Result<Value, Error> {
    Ok(serde_json::to_value(object)?)
}

/// What every object of the installation is labelled with.
fn labels() -> BTreeMap<String, String> {
    [("app.kubernetes.io/name", "hangar"), (MANAGED_BY_LABEL, MANAGED_BY)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// Metadata of an object of the installation; `namespace` is empty for those of the whole cluster.
fn metadata(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels()),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests;

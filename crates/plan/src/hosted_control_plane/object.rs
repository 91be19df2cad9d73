//! Makes the metadata, labels and small objects that all concerns send, with only the fields that we set.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_api::naming;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Resource as _;
use serde_json::Value;

use super::names::{COMPONENT_LABEL, Component, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL};
use super::validate::Validated;
use crate::pieces::{pairs, selecting};

impl Validated<'_> {
    /// Labels that select a component's pods: they never change.
    pub(super) fn selector(&self, component: Component) -> BTreeMap<String, String> {
        pairs([(INSTANCE_LABEL, self.names.identity()), (COMPONENT_LABEL, component.as_str())])
    }

    /// Labels of a component's objects.
    pub(super) fn labels(&self, component: Component) -> BTreeMap<String, String> {
        let mut labels = self.selector(component);
        labels.insert(CLUSTER_NAME_LABEL.to_owned(), naming::label_value(self.names.cluster()));
        labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY.to_owned());
        labels
    }

    /// Metadata of an object of the management cluster: in the control plane's namespace, labelled, and owned by it.
    pub(super) fn metadata(&self, name: impl Into<String>, component: Component) -> ObjectMeta {
        let owner = OwnerReference {
            api_version: HostedControlPlane::api_version(&()).into_owned(),
            kind: HostedControlPlane::kind(&()).into_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some(self.names.namespace().to_owned()),
            labels: Some(self.labels(component)),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        }
    }

    /// A ConfigMap of the management cluster.
    pub(super) fn config_map(
        &self,
        name: impl Into<String>,
        component: Component,
        data: BTreeMap<String, String>,
    ) -> ConfigMap {
        ConfigMap { metadata: self.metadata(name, component), data: Some(data), ..ConfigMap::default() }
    }

    /// A budget that lets one pod go at a time. It lets the only pod go, too: a drain of its node must not hang.
    pub(super) fn disruption_budget(
        &self,
        name: impl Into<String>,
        component: Component,
    ) -> PodDisruptionBudget {
        PodDisruptionBudget {
            metadata: self.metadata(name, component),
            spec: Some(PodDisruptionBudgetSpec {
                max_unavailable: Some(IntOrString::Int(1)),
                selector: Some(selecting(self.selector(component))),
                ..PodDisruptionBudgetSpec::default()
            }),
            ..PodDisruptionBudget::default()
        }
    }
}

/// Metadata of an object of the tenant; `namespace` is empty for those of the whole cluster.
pub(super) fn tenant<const N: usize>(
    namespace: Option<&str>,
    name: &str,
    labels: [(&str, &str); N],
) -> ObjectMeta {
    let mut labels = pairs(labels);
    labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY.to_owned());
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

/// A document for people and programs: YAML, or JSON (which is YAML) should it ever not be writable.
pub(super) fn document(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| format!("{value:#}\n"))
}

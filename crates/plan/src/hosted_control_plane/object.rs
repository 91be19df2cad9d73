//! Objects as they are sent: only what we set, in one shape.

use std::collections::BTreeMap;

use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_api::naming;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{DynamicObject, TypeMeta};
use serde_json::{Value, json};

use super::names::{
    COMPONENT_LABEL, Component, DESIRED_ANNOTATION, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL,
};
use super::validate::Validated;
use crate::inventory;

const OWNER_VERSION: &str = "controlplane.cluster.x-k8s.io/v1alpha1";
const OWNER_KIND: &str = "HostedControlPlane";

impl Validated<'_> {
    /// Labels that select a component's pods: they never change.
    pub(super) fn selector(&self, component: Component) -> BTreeMap<String, String> {
        [(INSTANCE_LABEL, self.names.identity().to_owned()), (COMPONENT_LABEL, component.as_str().to_owned())]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    /// Labels of a component's objects.
    pub(super) fn labels(&self, component: Component) -> BTreeMap<String, String> {
        let mut labels = self.selector(component);
        labels.insert(CLUSTER_NAME_LABEL.to_owned(), naming::label_value(self.names.cluster()));
        labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY.to_owned());
        labels
    }

    /// An object of the management cluster: in the control plane's namespace, labelled, and owned by it. `content` is
    /// everything but its type and metadata.
    pub(super) fn object(
        &self,
        (api_version, kind): (&str, &str),
        name: impl Into<String>,
        component: Component,
        content: Value,
    ) -> DynamicObject {
        let owner = OwnerReference {
            api_version: OWNER_VERSION.to_owned(),
            kind: OWNER_KIND.to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        DynamicObject {
            types: Some(TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() }),
            metadata: ObjectMeta {
                name: Some(name.into()),
                namespace: Some(self.names.namespace().to_owned()),
                labels: Some(self.labels(component)),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            data: content,
        }
    }

    /// A ConfigMap of the management cluster.
    pub(super) fn config_map(
        &self,
        name: impl Into<String>,
        component: Component,
        data: &BTreeMap<String, String>,
    ) -> DynamicObject {
        self.object(("v1", "ConfigMap"), name, component, json!({"data": data}))
    }

    /// A budget that lets one pod go at a time. It lets the only pod go, too: a drain of its node must not hang.
    pub(super) fn disruption_budget(&self, name: impl Into<String>, component: Component) -> DynamicObject {
        let spec = json!({"maxUnavailable": 1, "selector": {"matchLabels": self.selector(component)}});
        self.object(("policy/v1", "PodDisruptionBudget"), name, component, json!({"spec": spec}))
    }
}

/// An object of the tenant. It is marked as ours and carries a hash of itself, by which it is told whether it was applied.
pub(super) fn tenant(
    (api_version, kind): (&str, &str),
    namespace: Option<&str>,
    name: &str,
    labels: &[(&str, &str)],
    content: Value,
) -> DynamicObject {
    let mut labels: BTreeMap<String, String> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY.to_owned());
    let object = DynamicObject {
        types: Some(TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() }),
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        data: content,
    };
    inventory::marked(object, DESIRED_ANNOTATION)
}

/// A document for people and programs: YAML, or JSON (which is YAML) should it ever not be writable.
pub(super) fn document(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| format!("{value:#}\n"))
}

//! `HostedControlPlaneTemplate`: what a cluster class makes control planes from.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostedControlPlaneSettings, settings};

/// A template of hosted control planes.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "HostedControlPlaneTemplate",
    plural = "hostedcontrolplanetemplates",
    namespaced,
    derive = "PartialEq",
    doc = "A template from which hosted control planes are made.",
    shortname = "hcpt",
    category = "cluster-api",
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct HostedControlPlaneTemplateSpec {
    /// The control planes made from this template.
    pub template: HostedControlPlaneTemplateResource,
}

/// What a control plane made from the template looks like. Version and replicas come from the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostedControlPlaneTemplateResource {
    /// Labels and annotations of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of the control plane.
    #[schemars(extend("x-kubernetes-validations" = settings::rules()))]
    pub spec: HostedControlPlaneSettings,
}

/// Labels and annotations of the objects made from a template. Other metadata is accepted and not used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

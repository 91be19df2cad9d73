//! `HostedControlPlaneTemplate`: the template from which a cluster class makes control planes.

use std::collections::BTreeMap;

use hangar_wire::wire;
use kube::CustomResource;

use super::{HostedControlPlaneSettings, settings};

/// A template of hosted control planes.
#[wire]
#[derive(CustomResource)]
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
pub struct HostedControlPlaneTemplateSpec {
    /// The control planes made from this template.
    pub template: HostedControlPlaneTemplateResource,
}

/// Spec of a control plane from this template. Version and replicas come from the Cluster.
#[wire]
pub struct HostedControlPlaneTemplateResource {
    /// Labels and annotations of the control plane.
    pub metadata: Option<TemplateMetadata>,
    /// Spec of the control plane.
    #[schemars(extend("x-kubernetes-validations" = settings::rules()))]
    pub spec: HostedControlPlaneSettings,
}

/// Labels and annotations of the objects made from a template. Other metadata is accepted and not used.
#[wire]
#[serde(default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

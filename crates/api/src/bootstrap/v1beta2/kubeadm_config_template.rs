//! `KubeadmConfigTemplate`: the template from which the `KubeadmConfigs` of many machines are made.
//!
//! Upstream requires at least one field in `template`. Here an empty one is accepted: workers that need no settings are
//! a valid template in the older version, and topologies make copies of it in this one.

use hangar_wire::wire;
use kube::CustomResource;

use super::kubeadm_config::KubeadmConfigSpec;
use crate::cluster::object_meta::ObjectMeta;
use crate::crd::absent_spec::default_when_absent;

/// Metadata and spec of every `KubeadmConfig` that is created from this template.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "bootstrap.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmConfigTemplate",
    plural = "kubeadmconfigtemplates",
    namespaced,
    category = "cluster-api",
    doc = "Template of the KubeadmConfigs of a set of machines.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#,
        description = "ClusterClass that owns this template"
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r#".metadata.ownerReferences[?(@.kind=="Cluster")].name"#,
        description = "Cluster that owns this template"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[serde(remote = "Self")]
#[schemars(rename = "KubeadmConfigTemplateSpec")]
pub struct KubeadmConfigTemplateSpec {
    /// The `KubeadmConfig` to make.
    pub template: KubeadmConfigTemplateResource,
}

default_when_absent!(KubeadmConfigTemplateSpec);

/// A `KubeadmConfig` to make.
#[wire]
pub struct KubeadmConfigTemplateResource {
    /// Labels and annotations of the objects made.
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// Spec of the objects made.
    #[schemars(extend("minProperties" = 1))]
    pub spec: Option<KubeadmConfigSpec>,
}

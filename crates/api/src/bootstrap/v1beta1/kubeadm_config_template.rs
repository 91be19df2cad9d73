//! `KubeadmConfigTemplate`: the template from which the `KubeadmConfigs` of many machines are made.

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
    version = "v1beta1",
    kind = "KubeadmConfigTemplate",
    plural = "kubeadmconfigtemplates",
    namespaced,
    category = "cluster-api",
    doc = "Template of the KubeadmConfigs of a set of machines.",
    derive = "Default",
    derive = "PartialEq",
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
    pub metadata: Option<ObjectMeta>,
    /// Spec of the objects made.
    pub spec: Option<KubeadmConfigSpec>,
}

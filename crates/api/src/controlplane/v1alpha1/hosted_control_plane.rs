//! `HostedControlPlane`: the control plane of one cluster, as pods.

use hangar_wire::wire;
use kube::CustomResource;

use super::{HostedControlPlaneSettings, HostedControlPlaneStatus, settings};

/// API server pods by default: one may fail or be replaced without an interruption.
pub const DEFAULT_REPLICAS: i32 = 2;

/// Spec of a hosted control plane.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "HostedControlPlane",
    plural = "hostedcontrolplanes",
    namespaced,
    status = "HostedControlPlaneStatus",
    derive = "PartialEq",
    doc = "The control plane of one cluster, running as pods of the management cluster.",
    shortname = "hcp",
    category = "cluster-api",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Initialized",
        type_ = "boolean",
        json_path = ".status.initialization.controlPlaneInitialized",
        description = "Whether the API server has ever served"
    ),
    printcolumn(
        name = "API Server Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Whether the API server serves"
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "API server pods wanted"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "API server pods that are ready"
    ),
    printcolumn(
        name = "Updated",
        type_ = "integer",
        json_path = ".status.upToDateReplicas",
        description = "API server pods that are up to date"
    ),
    printcolumn(
        name = "ETCD Size",
        type_ = "string",
        json_path = ".status.etcdVolumeSize",
        description = "Size of etcd's volumes"
    ),
    printcolumn(
        name = "Max ETCD Space Usage",
        type_ = "string",
        json_path = ".status.etcdVolumeUsage",
        description = "Used space of the fullest of etcd's volumes"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = ".metadata.annotations.cluster\\.x-k8s\\.io/paused",
        description = "Whether reconciliation is stopped",
        priority = 1
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.version",
        description = "Kubernetes version wanted"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    ),
    validation = Rule::new(NO_SHRINK_BELOW_GROWN).message("volumes have grown beyond volumeSize, and cannot shrink")
)]
#[schemars(extend("x-kubernetes-validations" = settings::rules()))]
pub struct HostedControlPlaneSpec {
    /// Kubernetes version, also the tag of the images. It cannot be decreased.
    #[schemars(length(min = 1, max = 256), extend(
        "pattern" = r"^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?)?$",
        "x-kubernetes-validations" = [{ "rule": NO_DECREASE, "message": "the version cannot be decreased" }],
    ))]
    pub version: String,
    /// Number of API server pods.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// Everything else.
    #[serde(flatten)]
    pub settings: HostedControlPlaneSettings,
}

fn default_replicas() -> i32 {
    DEFAULT_REPLICAS
}

/// Compares major, minor and patch as one number; what follows them (pre-releases, builds) has no say.
const NO_DECREASE: &str = "[self].map(version, version.findAll('[0-9]+')).all(new, [oldSelf].map(version, version.findAll('[0-9]+')).all(old, int(new[0]) * 1000000 + int(new[1]) * 1000 + (size(new) > 2 ? int(new[2]) : 0) >= int(old[0]) * 1000000 + int(old[1]) * 1000 + (size(old) > 2 ? int(old[2]) : 0)))";

/// Checked when a size is set for the first time, after volumes have grown by themselves. Later changes are compared
/// with the size before, in the rules of etcd.
const NO_SHRINK_BELOW_GROWN: &str = "!has(self.spec.etcd) || !has(self.spec.etcd.volumeSize) || (has(oldSelf.spec.etcd) && has(oldSelf.spec.etcd.volumeSize)) || !has(oldSelf.status) || !has(oldSelf.status.etcdVolumeSize) || quantity(string(self.spec.etcd.volumeSize)).compareTo(quantity(string(oldSelf.status.etcdVolumeSize))) >= 0";

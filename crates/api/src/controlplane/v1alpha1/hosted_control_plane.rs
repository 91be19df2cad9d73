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
        description = "Size of the database in the fullest of etcd's volumes"
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
    validation = Rule::new(NOT_SMALLER).message("spec.etcd.volumeSize cannot be smaller than the volumes that exist: they do not shrink"),
    validation = Rule::new(SAME_CLASS).message("spec.etcd.storageClassName cannot be changed: the volumes exist")
)]
#[schemars(extend("x-kubernetes-validations" = settings::rules()))]
pub struct HostedControlPlaneSpec {
    /// Kubernetes version, also the tag of the images. Minor versions cannot be skipped. It can be set back as long as no
    /// API server of a newer version has served.
    #[schemars(length(min = 1, max = 256), extend(
        "pattern" = r"^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?)?$",
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

/// What is not given is the default. The size that the volumes have can always be written down.
const NOT_SMALLER: &str = "[has(self.spec.etcd) && has(self.spec.etcd.volumeSize) ? quantity(string(self.spec.etcd.volumeSize)) : quantity('8Gi')].all(size, [has(oldSelf.spec.etcd) && has(oldSelf.spec.etcd.volumeSize) ? quantity(string(oldSelf.spec.etcd.volumeSize)) : quantity('8Gi')].all(before, (size.compareTo(before) == 0 && !(has(self.spec.etcd) && has(self.spec.etcd.volumeSize) && has(oldSelf.spec.etcd) && has(oldSelf.spec.etcd.autoGrow) && oldSelf.spec.etcd.autoGrow)) || size.compareTo(has(oldSelf.status) && has(oldSelf.status.etcdVolumeSize) ? quantity(string(oldSelf.status.etcdVolumeSize)) : before) >= 0))";

const SAME_CLASS: &str = "(has(self.spec.etcd) && has(self.spec.etcd.storageClassName) ? self.spec.etcd.storageClassName : '') == (has(oldSelf.spec.etcd) && has(oldSelf.spec.etcd.storageClassName) ? oldSelf.spec.etcd.storageClassName : '')";

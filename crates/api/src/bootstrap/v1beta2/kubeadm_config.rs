//! `KubeadmConfig`: the bootstrap data of one machine.
//!
//! Upstream requires at least one field in a spec that is present. Here an empty spec is accepted, because typed
//! clients cannot write an object without one; sections inside the spec do have that bound.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;

use super::cluster_configuration::ClusterConfiguration;
use super::init_configuration::InitConfiguration;
use super::join_configuration::JoinConfiguration;
use crate::bootstrap::disk_setup::DiskSetup;
use crate::bootstrap::file::File;
use crate::bootstrap::format::Format;
use crate::bootstrap::ignition::{Ignition, newer};
use crate::bootstrap::ntp::Ntp;
use crate::bootstrap::user::User;
use crate::cluster::legacy_condition::LegacyCondition;
use crate::crd::absent_spec::default_when_absent;

/// Content of a machine's bootstrap data: kubeadm's configuration, files, users and commands.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "bootstrap.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmConfig",
    plural = "kubeadmconfigs",
    namespaced,
    category = "cluster-api",
    status = "KubeadmConfigStatus",
    doc = "Bootstrap data of one machine, made with kubeadm.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
        description = "Cluster the machine belongs to"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        description = "Whether reconciliation is paused",
        priority = 10
    ),
    printcolumn(
        name = "Data secret created",
        type_ = "string",
        json_path = ".status.initialization.dataSecretCreated",
        description = "Whether the bootstrap data exists"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[serde(remote = "Self")]
#[schemars(rename = "KubeadmConfigSpec")]
pub struct KubeadmConfigSpec {
    /// Commands that run early at every boot.
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub boot_commands: Option<Vec<String>>,
    /// Cluster-wide settings for kubeadm. Workers do not need them.
    #[schemars(extend("minProperties" = 1))]
    pub cluster_configuration: Option<ClusterConfiguration>,
    /// Partitions and file systems to make at first boot.
    #[schemars(extend("minProperties" = 1))]
    pub disk_setup: Option<DiskSetup>,
    /// Files to write before kubeadm runs.
    #[schemars(length(min = 1, max = 200), extend("x-kubernetes-list-type" = "atomic"))]
    pub files: Option<Vec<File>>,
    /// Format of the bootstrap data; `cloud-config` when empty.
    pub format: Option<Format>,
    /// Settings for machines that boot with Ignition.
    #[schemars(transform = newer)]
    pub ignition: Option<Ignition>,
    /// Settings of `kubeadm init`. Workers do not need them.
    #[schemars(extend("minProperties" = 1))]
    pub init_configuration: Option<InitConfiguration>,
    /// Settings of `kubeadm join`.
    #[schemars(extend("minProperties" = 1))]
    pub join_configuration: Option<JoinConfiguration>,
    /// Mount points to set up, each a list of fstab fields.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 100), inner(length(min = 1, max = 512))), extend("x-kubernetes-list-type" = "atomic"))]
    pub mounts: Option<Vec<Vec<String>>>,
    /// Time synchronization of the machine.
    #[schemars(extend("minProperties" = 1))]
    pub ntp: Option<Ntp>,
    /// Commands that run after kubeadm.
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub post_kubeadm_commands: Option<Vec<String>>,
    /// Commands that run before kubeadm.
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 10240)), extend("x-kubernetes-list-type" = "atomic"))]
    pub pre_kubeadm_commands: Option<Vec<String>>,
    /// User accounts to create.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub users: Option<Vec<User>>,
    /// Verbosity of kubeadm's log, as for its flag `--v`.
    pub verbosity: Option<i32>,
}

default_when_absent!(KubeadmConfigSpec);

/// Observed state of a machine's bootstrap data.
#[wire]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigStatus {
    /// Conditions of the bootstrap data.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Name of the Secret that holds the bootstrap data.
    #[schemars(length(min = 1, max = 253))]
    pub data_secret_name: Option<String>,
    /// Generation of the spec that this status is about.
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Fields of earlier versions.
    pub deprecated: Option<KubeadmConfigDeprecatedStatus>,
    /// Milestones of the machine's bootstrap.
    #[schemars(extend("minProperties" = 1))]
    pub initialization: Option<KubeadmConfigInitializationStatus>,
}

/// Milestones of the machine's bootstrap.
#[wire]
pub struct KubeadmConfigInitializationStatus {
    /// Whether the Secret with the bootstrap data was created.
    pub data_secret_created: Option<bool>,
}

/// Status fields of earlier versions.
#[wire]
pub struct KubeadmConfigDeprecatedStatus {
    /// Status fields of v1beta1.
    pub v1beta1: Option<KubeadmConfigV1Beta1DeprecatedStatus>,
}

/// Status fields that v1beta1 had and this version replaced.
#[wire]
pub struct KubeadmConfigV1Beta1DeprecatedStatus {
    /// Conditions in the format of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Message of a terminal failure to create the bootstrap data.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure to create the bootstrap data, in one word.
    #[schemars(length(min = 1, max = 256))]
    pub failure_reason: Option<String>,
}

//! `KubeadmConfig`: the bootstrap data of one machine.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;

use super::cluster_configuration::ClusterConfiguration;
use super::init_configuration::InitConfiguration;
use super::join_configuration::JoinConfiguration;
use crate::bootstrap::disk_setup::DiskSetup;
use crate::bootstrap::file::File;
use crate::bootstrap::format::Format;
use crate::bootstrap::ignition::Ignition;
use crate::bootstrap::ntp::Ntp;
use crate::bootstrap::user::User;
use crate::cluster::legacy_condition::LegacyCondition;
use crate::crd::absent_spec::default_when_absent;

/// Content of a machine's bootstrap data: kubeadm's configuration, files, users and commands.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "bootstrap.cluster.x-k8s.io",
    version = "v1beta1",
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
    #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
    pub boot_commands: Option<Vec<String>>,
    /// Cluster-wide settings for kubeadm. Workers do not need them.
    pub cluster_configuration: Option<ClusterConfiguration>,
    /// Partitions and file systems to make at first boot.
    pub disk_setup: Option<DiskSetup>,
    /// Files to write before kubeadm runs.
    #[schemars(length(max = 200))]
    pub files: Option<Vec<File>>,
    /// Format of the bootstrap data; `cloud-config` when empty.
    pub format: Option<Format>,
    /// Settings for machines that boot with Ignition.
    pub ignition: Option<Ignition>,
    /// Settings of `kubeadm init`. Workers do not need them.
    pub init_configuration: Option<InitConfiguration>,
    /// Settings of `kubeadm join`.
    pub join_configuration: Option<JoinConfiguration>,
    /// Mount points to set up, each a list of fstab fields.
    #[schemars(length(max = 100), inner(inner(length(min = 1, max = 512))))]
    pub mounts: Option<Vec<Vec<String>>>,
    /// Time synchronization of the machine.
    pub ntp: Option<Ntp>,
    /// Commands that run after kubeadm.
    #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
    pub post_kubeadm_commands: Option<Vec<String>>,
    /// Commands that run before kubeadm.
    #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
    pub pre_kubeadm_commands: Option<Vec<String>>,
    /// Accepted for compatibility; joining is retried by kubeadm itself.
    pub use_experimental_retry_join: Option<bool>,
    /// User accounts to create.
    #[schemars(length(max = 100))]
    pub users: Option<Vec<User>>,
    /// Verbosity of kubeadm's log, as for its flag `--v`.
    pub verbosity: Option<i32>,
}

default_when_absent!(KubeadmConfigSpec);

/// Observed state of a machine's bootstrap data.
#[wire]
pub struct KubeadmConfigStatus {
    /// Conditions of the bootstrap data.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Name of the Secret that holds the bootstrap data.
    #[schemars(length(min = 1, max = 253))]
    pub data_secret_name: Option<String>,
    /// Message of a terminal failure to create the bootstrap data.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure to create the bootstrap data, in one word.
    #[schemars(length(min = 1, max = 256))]
    pub failure_reason: Option<String>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the bootstrap data exists.
    pub ready: Option<bool>,
    /// Conditions in the format of v1beta2.
    pub v1beta2: Option<KubeadmConfigV1Beta2Status>,
}

/// Status fields in the format of v1beta2.
#[wire]
pub struct KubeadmConfigV1Beta2Status {
    /// Conditions of the bootstrap data.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

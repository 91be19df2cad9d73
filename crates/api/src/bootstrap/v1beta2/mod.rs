//! Version v1beta2.

mod arg;
mod cluster_configuration;
mod discovery;
mod etcd;
mod init_configuration;
mod join_configuration;
mod kubeadm_config;
mod kubeadm_config_template;
mod node_registration;
mod timeouts;

pub use arg::Arg;
pub use cluster_configuration::{
    ApiServer, ClusterConfiguration, ControlPlaneComponent, EncryptionAlgorithm,
};
pub use discovery::Discovery;
pub use etcd::{Etcd, LocalEtcd};
pub use init_configuration::{BootstrapToken, InitConfiguration, LocalApiEndpoint};
pub use join_configuration::{JoinConfiguration, JoinControlPlane};
pub use kubeadm_config::{
    KubeadmConfig, KubeadmConfigDeprecatedStatus, KubeadmConfigInitializationStatus, KubeadmConfigSpec,
    KubeadmConfigStatus, KubeadmConfigV1Beta1DeprecatedStatus,
};
pub use kubeadm_config_template::{
    KubeadmConfigTemplate, KubeadmConfigTemplateResource, KubeadmConfigTemplateSpec,
};
pub use node_registration::NodeRegistration;
pub use timeouts::Timeouts;

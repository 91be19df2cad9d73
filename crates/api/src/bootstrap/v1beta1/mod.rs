//! Version v1beta1, deprecated.

mod cluster_configuration;
mod discovery;
mod etcd;
mod init_configuration;
mod join_configuration;
mod kubeadm_config;
mod kubeadm_config_template;
mod node_registration;

pub use cluster_configuration::{ApiServer, ClusterConfiguration, ControlPlaneComponent, Networking};
pub use discovery::Discovery;
pub use etcd::{Etcd, LocalEtcd};
pub use init_configuration::{BootstrapToken, InitConfiguration, LocalApiEndpoint};
pub use join_configuration::{JoinConfiguration, JoinControlPlane};
pub use kubeadm_config::{KubeadmConfig, KubeadmConfigSpec, KubeadmConfigStatus, KubeadmConfigV1Beta2Status};
pub use kubeadm_config_template::{
    KubeadmConfigTemplate, KubeadmConfigTemplateResource, KubeadmConfigTemplateSpec,
};
pub use node_registration::NodeRegistration;

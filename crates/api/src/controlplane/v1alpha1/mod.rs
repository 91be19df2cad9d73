//! Version v1alpha1.

mod audit;
mod audit_policy;
mod authentication;
mod certificates;
mod deployment;
mod etcd;
mod etcd_backup;
mod etcd_restore;
mod exposure;
mod gateway;
mod hosted_control_plane;
mod hosted_control_plane_template;
mod monitoring;
mod mount;
mod placement;
mod pod;
mod settings;
mod status;

pub use audit::{Audit, AuditAuthentication, AuditLog, AuditLogFormat, AuditMode, AuditTarget, AuditWebhook};
pub use audit_policy::{AuditLevel, AuditPolicy, AuditResources, AuditRule, AuditStage};
pub use authentication::{ClaimMappings, ClaimValidationRule, OidcProvider};
pub use certificates::{Certificates, GoDuration};
pub use deployment::{ApiServerPod, CoreDns, Deployment, KubeProxy};
pub use etcd::Etcd;
pub use etcd_backup::{
    EtcdBackup, EtcdBackupEncryption, EtcdBackupFailure, EtcdBackupRetention, EtcdBackupSecret,
    EtcdBackupStatus, EtcdBackupSuccess,
};
pub use etcd_restore::{EtcdRestore, EtcdRestoreFrom};
pub use exposure::{Exposure, ExposureType, LoadBalancerExposure, NodePortExposure};
pub use gateway::GatewayReference;
pub use hosted_control_plane::{DEFAULT_REPLICAS, HostedControlPlane, HostedControlPlaneSpec};
pub use hosted_control_plane_template::{
    HostedControlPlaneTemplate, HostedControlPlaneTemplateResource, HostedControlPlaneTemplateSpec,
    TemplateMetadata,
};
pub use monitoring::{Monitoring, PodMonitors};
pub use mount::Mount;
pub use placement::{Placement, TopologySpread, WhenUnsatisfiable};
pub use pod::{Container, Image, ImagePullPolicy, Pod, ScalablePod};
pub use settings::{HostedControlPlaneSettings, PullSecret};
pub use status::{HostedControlPlaneInitialization, HostedControlPlaneStatus};

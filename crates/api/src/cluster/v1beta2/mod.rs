//! Version v1beta2: the hub, the version that is stored and that controllers use.
//!
//! Every field can be read as absent, also where the schema requires it: one malformed object must not break the watch
//! of its kind.

pub mod cluster;
pub mod cluster_topology;
pub mod health_check;
pub mod machine;
pub mod machine_deployment;
pub mod machine_health_check;
pub mod machine_set;

pub use cluster::{Cluster, ClusterPhase, ClusterSpec, ClusterStatus};
pub use machine::{Machine, MachinePhase, MachineSpec, MachineStatus, MachineTemplateSpec};
pub use machine_deployment::{
    MachineDeployment, MachineDeploymentPhase, MachineDeploymentSpec, MachineDeploymentStatus,
};
pub use machine_health_check::{MachineHealthCheck, MachineHealthCheckSpec, MachineHealthCheckStatus};
pub use machine_set::{MachineSet, MachineSetSpec, MachineSetStatus};

//! Version v1beta1: what most existing manifests are written in.
//!
//! It is served and converted, never stored. Controllers use v1beta2; these types exist for the schema and for
//! conversion. Every field can be read as absent, also where the schema requires it: objects are converted before they
//! are validated when an admission webhook asks for the other version.

pub mod cluster;
pub mod cluster_topology;
pub mod machine;
pub mod machine_deployment;
pub mod machine_health_check;
pub mod machine_set;

pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use machine::{Machine, MachineSpec, MachineStatus};
pub use machine_deployment::{MachineDeployment, MachineDeploymentSpec, MachineDeploymentStatus};
pub use machine_health_check::{MachineHealthCheck, MachineHealthCheckSpec, MachineHealthCheckStatus};
pub use machine_set::{MachineSet, MachineSetSpec, MachineSetStatus};

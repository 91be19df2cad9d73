//! Version v1beta2.

mod cluster_resource_set;
mod cluster_resource_set_binding;

pub use cluster_resource_set::{
    ClusterResourceSet, ClusterResourceSetDeprecatedStatus, ClusterResourceSetSpec, ClusterResourceSetStatus,
    ClusterResourceSetV1Beta1DeprecatedStatus,
};
pub use cluster_resource_set_binding::{ClusterResourceSetBinding, ClusterResourceSetBindingSpec};

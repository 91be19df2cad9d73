//! Version v1beta1, deprecated.

mod cluster_resource_set;
mod cluster_resource_set_binding;

pub use cluster_resource_set::{
    ClusterResourceSet, ClusterResourceSetSpec, ClusterResourceSetStatus, ClusterResourceSetV1Beta2Status,
};
pub use cluster_resource_set_binding::{ClusterResourceSetBinding, ClusterResourceSetBindingSpec};

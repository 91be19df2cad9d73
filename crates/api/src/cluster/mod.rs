//! `cluster.x-k8s.io`: the core kinds of Cluster API.
//!
//! There is a module per version and a file per kind; types that both versions share are files here. v1beta2 is stored,
//! v1beta1 is what most manifests are written in; `convert` connects them.

#![allow(clippy::duplicated_attributes, reason = "each printer column names its type")]

pub mod condition_gate;
mod convert;
pub mod legacy_condition;
pub mod machine_status;
pub mod object_meta;
pub(crate) mod pattern;
pub mod replica_counts;
pub mod rollout;
pub mod v1beta1;
pub mod v1beta2;
mod variable_value;

pub(crate) use convert::CONVERTERS;

use crate::crd::{Kind, absent_spec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The kinds of this group, for CRD generation.
pub fn kinds() -> Vec<Kind> {
    vec![
        kind(v1beta1::Cluster::crd(), v1beta2::Cluster::crd()),
        kind(v1beta1::Machine::crd(), v1beta2::Machine::crd()),
        kind(v1beta1::MachineSet::crd(), v1beta2::MachineSet::crd()),
        kind(v1beta1::MachineDeployment::crd(), v1beta2::MachineDeployment::crd()),
        kind(v1beta1::MachineHealthCheck::crd(), v1beta2::MachineHealthCheck::crd()),
    ]
}

fn kind(older: CustomResourceDefinition, stored: CustomResourceDefinition) -> Kind {
    Kind {
        // In v1beta1 an object needs no spec.
        versions: vec![absent_spec::allow(older), stored],
        stored: "v1beta2",
        contracts: &[("v1beta1", "v1beta1"), ("v1beta2", "v1beta2")],
        provider: "cluster-api",
    }
}

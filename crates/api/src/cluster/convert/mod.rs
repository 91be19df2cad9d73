//! Conversions of this group between v1beta1 and v1beta2.
//!
//! Every function destructures its argument completely, so that a new field does not compile until it is handled here.
//! On the way up, what v1beta2 does not allow (empty strings, empty lists, a port of 0, all of which v1beta1 writers
//! leave behind) becomes absent; the stash brings it back on the way down.

mod cluster;
mod cluster_topology;
mod cluster_variables;
mod health_check;
mod machine;
mod machine_deployment;
mod machine_health_check;
mod machine_set;
mod rollout_strategy;

#[cfg(test)]
mod tests;

use crate::conversion::Converter;

/// The group of all kinds here.
const GROUP: &str = "cluster.x-k8s.io";

/// The kinds of this group that convert.
pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::of::<cluster::Cluster>(),
    Converter::of::<machine::Machine>(),
    Converter::of::<machine_set::MachineSet>(),
    Converter::of::<machine_deployment::MachineDeployment>(),
    Converter::of::<machine_health_check::MachineHealthCheck>(),
];

//! Conversion of the values of a class's variables.

use crate::cluster::v1beta1::cluster_topology as old;
use crate::cluster::v1beta2::cluster_topology as new;
use crate::conversion::absence::{list, set};

pub(super) fn overrides_up(overrides: Option<old::VariableOverrides>) -> Option<new::VariableOverrides> {
    let old::VariableOverrides { overrides } = overrides?;
    set(new::VariableOverrides { overrides: up(overrides) })
}

pub(super) fn overrides_down(overrides: Option<new::VariableOverrides>) -> Option<old::VariableOverrides> {
    let new::VariableOverrides { overrides } = overrides?;
    Some(old::VariableOverrides { overrides: down(overrides) })
}

pub(super) fn up(variables: Option<Vec<old::ClusterVariable>>) -> Option<Vec<new::ClusterVariable>> {
    let variables = variables?.into_iter().map(|variable| {
        let old::ClusterVariable { definition_from: _, name, value } = variable; // no longer used
        new::ClusterVariable { name, value }
    });
    list(Some(variables.collect()))
}

pub(super) fn down(variables: Option<Vec<new::ClusterVariable>>) -> Option<Vec<old::ClusterVariable>> {
    let variables = variables?.into_iter().map(|variable| {
        let new::ClusterVariable { name, value } = variable;
        old::ClusterVariable { definition_from: None, name, value }
    });
    Some(variables.collect())
}

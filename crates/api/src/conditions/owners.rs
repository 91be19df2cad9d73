//! The statuses that have conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::HasConditions;
use crate::{addons, bootstrap, cluster, controlplane};

impl HasConditions for Vec<Condition> {
    fn conditions(&self) -> &[Condition] {
        self
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        self
    }
}

impl HasConditions for controlplane::v1alpha1::HostedControlPlaneStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

/// Statuses of converted kinds tell an absent list from an empty one, so that conversions lose nothing.
macro_rules! optional_conditions {
    ($($status:ty),* $(,)?) => {
        $(impl HasConditions for $status {
            fn conditions(&self) -> &[Condition] {
                self.conditions.as_deref().unwrap_or_default()
            }

            fn conditions_mut(&mut self) -> &mut Vec<Condition> {
                self.conditions.get_or_insert_default()
            }
        })*
    };
}

optional_conditions!(
    addons::v1beta2::ClusterResourceSetStatus,
    bootstrap::v1beta2::KubeadmConfigStatus,
    cluster::v1beta2::ClusterStatus,
    cluster::v1beta2::MachineDeploymentStatus,
    cluster::v1beta2::MachineHealthCheckStatus,
    cluster::v1beta2::MachineSetStatus,
    cluster::v1beta2::MachineStatus,
);

//! The statuses that have conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;

use super::{Conditioned, Finding, HasConditions, Severity, set_severity};
use crate::cluster::legacy_condition::LegacyCondition;
use crate::{addons, bootstrap, cluster, controlplane, infrastructure};

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

    fn observe(&mut self, generation: Option<i64>) {
        self.observed_generation = generation;
    }
}

/// Statuses of converted kinds tell an absent list from an empty one, so that conversions lose nothing. Most have the
/// older shape beside it, in this field.
macro_rules! optional_conditions {
    ($($status:ty $(, $older:ident)?);* $(;)?) => {
        $(impl HasConditions for $status {
            fn conditions(&self) -> &[Condition] {
                self.conditions.as_deref().unwrap_or_default()
            }

            fn conditions_mut(&mut self) -> &mut Vec<Condition> {
                self.conditions.get_or_insert_default()
            }

            fn observe(&mut self, generation: Option<i64>) {
                self.observed_generation = generation;
            }
            $(
                fn older_mut(&mut self) -> Option<&mut Vec<LegacyCondition>> {
                    let older = self.$older.get_or_insert_default().v1beta1.get_or_insert_default();
                    Some(older.conditions.get_or_insert_default())
                }
            )?
        })*
    };
}

optional_conditions!(
    addons::v1beta2::ClusterResourceSetStatus;
    bootstrap::v1beta2::KubeadmConfigStatus;
    cluster::v1beta2::ClusterStatus, deprecated;
    cluster::v1beta2::MachineDeploymentStatus, deprecated;
    cluster::v1beta2::MachineHealthCheckStatus, deprecated;
    cluster::v1beta2::MachineSetStatus, deprecated;
    cluster::v1beta2::MachineStatus, deprecated;
);

/// Statuses of the v1beta1 contract's shape.
macro_rules! older_conditions {
    ($($status:ty),* $(,)?) => {
        $(impl Conditioned for $status {
            fn condition(&self, type_: &str) -> Option<Condition> {
                self.conditions.iter().find(|condition| condition.r#type == type_).map(LegacyCondition::newer)
            }

            fn write(&mut self, finding: &Finding, _: Option<i64>, now: Timestamp) {
                set_severity(&mut self.conditions, finding, Severity::of(finding), now);
            }

            fn forget(&mut self, type_: &str) {
                self.conditions.retain(|condition| condition.r#type != type_);
            }
        })*
    };
}

older_conditions!(
    infrastructure::v1beta1::OpenStackClusterStatus,
    infrastructure::v1beta1::OpenStackMachineStatus,
);

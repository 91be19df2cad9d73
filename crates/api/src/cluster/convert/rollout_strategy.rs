//! Conversion of a `MachineDeployment`'s strategy: one struct in v1beta1, three places in v1beta2.

use crate::cluster::rollout::{DeletionOrder, RolloutStrategyType};
use crate::cluster::v1beta1::machine_deployment as old;
use crate::cluster::v1beta2::machine_deployment as new;
use crate::conversion::absence::set;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What v1beta2 keeps in three places.
#[derive(Default)]
pub(super) struct SplitStrategy {
    /// Goes to `rollout.strategy`.
    pub(super) strategy: Option<new::RolloutStrategy>,
    /// Goes to `deletion.order`.
    pub(super) order: Option<DeletionOrder>,
    /// Goes to `remediation.maxInFlight`.
    pub(super) max_in_flight: Option<IntOrString>,
}

pub(super) fn up(strategy: Option<old::MachineDeploymentStrategy>) -> SplitStrategy {
    let old::MachineDeploymentStrategy { remediation, rolling_update, r#type } = strategy.unwrap_or_default();
    let old::RemediationStrategy { max_in_flight } = remediation.unwrap_or_default();
    let old::RollingUpdate { delete_policy, max_surge, max_unavailable } = rolling_update.unwrap_or_default();
    let rolling_update = set(new::RollingUpdate { max_surge, max_unavailable });
    // v1beta2 requires the type, v1beta1 means a rolling update when there is none.
    let strategy = (r#type.is_some() || rolling_update.is_some()).then(|| new::RolloutStrategy {
        rolling_update,
        r#type: r#type.unwrap_or(RolloutStrategyType::RollingUpdate),
    });
    SplitStrategy { strategy, order: delete_policy, max_in_flight }
}

pub(super) fn down(split: SplitStrategy) -> Option<old::MachineDeploymentStrategy> {
    let SplitStrategy { strategy, order, max_in_flight } = split;
    let (rolling_update, r#type) = match strategy {
        Some(new::RolloutStrategy { rolling_update, r#type }) => (rolling_update, Some(r#type)),
        None => (None, None),
    };
    let new::RollingUpdate { max_surge, max_unavailable } = rolling_update.unwrap_or_default();
    set(old::MachineDeploymentStrategy {
        remediation: set(old::RemediationStrategy { max_in_flight }),
        rolling_update: set(old::RollingUpdate { delete_policy: order, max_surge, max_unavailable }),
        r#type,
    })
}

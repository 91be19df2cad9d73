//! Conversion of `MachineDeployment`.

use super::rollout_strategy::{self, SplitStrategy};
use super::{GROUP, machine};
use crate::cluster::v1beta1::machine_deployment as old;
use crate::cluster::v1beta2::machine_deployment as new;
use crate::cluster::v1beta2::machine_set::MachineSetDeletion;
use crate::conversion::absence::{at_least, set, text};
use crate::conversion::{Context, Convert};

/// The conversion of this kind.
pub(super) enum MachineDeployment {}

impl Convert for MachineDeployment {
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "MachineDeployment";
    type SpokeSpec = old::MachineDeploymentSpec;
    type SpokeStatus = old::MachineDeploymentStatus;
    type HubSpec = new::MachineDeploymentSpec;
    type HubStatus = new::MachineDeploymentStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        let old::MachineDeploymentSpec {
            cluster_name,
            machine_naming_strategy,
            min_ready_seconds,
            paused,
            progress_deadline_seconds: _, // has no effect, no place in v1beta2
            replicas,
            revision_history_limit: _, // has no effect, no place in v1beta2
            rollout_after,
            selector,
            strategy,
            template,
        } = spec;
        let SplitStrategy { strategy, order, max_in_flight } = rollout_strategy::up(strategy);
        new::MachineDeploymentSpec {
            cluster_name,
            deletion: set(MachineSetDeletion { order }),
            machine_naming: machine_naming_strategy.and_then(set),
            paused,
            remediation: set(new::MachineDeploymentRemediation { max_in_flight }),
            replicas,
            rollout: set(new::MachineDeploymentRollout { after: rollout_after, strategy }),
            selector,
            template: machine::template_up(template, min_ready_seconds),
        }
    }

    fn spec_down(spec: Self::HubSpec, context: &Context<'_>) -> Self::SpokeSpec {
        let new::MachineDeploymentSpec {
            cluster_name,
            deletion,
            machine_naming,
            paused,
            remediation,
            replicas,
            rollout,
            selector,
            template,
        } = spec;
        let MachineSetDeletion { order } = deletion.unwrap_or_default();
        let new::MachineDeploymentRemediation { max_in_flight } = remediation.unwrap_or_default();
        let new::MachineDeploymentRollout { after, strategy } = rollout.unwrap_or_default();
        let (template, min_ready_seconds) = machine::template_down(template, context);
        old::MachineDeploymentSpec {
            cluster_name,
            machine_naming_strategy: machine_naming,
            min_ready_seconds,
            paused,
            progress_deadline_seconds: None,
            replicas,
            revision_history_limit: None,
            rollout_after: after,
            selector,
            strategy: rollout_strategy::down(SplitStrategy { strategy, order, max_in_flight }),
            template,
        }
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        let old::MachineDeploymentStatus {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            observed_generation,
            phase,
            ready_replicas: old_ready_replicas,
            replicas,
            selector,
            unavailable_replicas,
            updated_replicas,
            v1beta2,
        } = status;
        let old::MachineDeploymentStatusV1Beta2 {
            available_replicas,
            conditions,
            ready_replicas,
            up_to_date_replicas,
        } = v1beta2.unwrap_or_default();
        let deprecated = set(new::MachineDeploymentStatusV1Beta1 {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            ready_replicas: old_ready_replicas,
            unavailable_replicas,
            updated_replicas,
        });
        new::MachineDeploymentStatus {
            available_replicas,
            conditions,
            deprecated: deprecated
                .map(|v1beta1| new::MachineDeploymentDeprecatedStatus { v1beta1: Some(v1beta1) }),
            observed_generation: at_least(1, observed_generation),
            phase,
            ready_replicas,
            replicas,
            selector: text(selector),
            up_to_date_replicas,
        }
    }

    fn status_down(status: Self::HubStatus, _context: &Context<'_>) -> Self::SpokeStatus {
        let new::MachineDeploymentStatus {
            available_replicas,
            conditions,
            deprecated,
            observed_generation,
            phase,
            ready_replicas,
            replicas,
            selector,
            up_to_date_replicas,
        } = status;
        let new::MachineDeploymentDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let new::MachineDeploymentStatusV1Beta1 {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            ready_replicas: old_ready_replicas,
            unavailable_replicas,
            updated_replicas,
        } = v1beta1.unwrap_or_default();
        old::MachineDeploymentStatus {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            observed_generation,
            phase,
            ready_replicas: old_ready_replicas,
            replicas,
            selector,
            unavailable_replicas,
            updated_replicas,
            v1beta2: set(old::MachineDeploymentStatusV1Beta2 {
                conditions,
                available_replicas,
                ready_replicas,
                up_to_date_replicas,
            }),
        }
    }
}

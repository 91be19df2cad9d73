//! Conversion of `MachineSet`.

use super::{GROUP, machine};
use crate::cluster::v1beta1::machine_set as old;
use crate::cluster::v1beta2::machine_set as new;
use crate::conversion::absence::{at_least, set, text};
use crate::conversion::{Context, Convert};

/// The conversion of this kind.
pub(super) enum MachineSet {}

impl Convert for MachineSet {
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "MachineSet";
    type SpokeSpec = old::MachineSetSpec;
    type SpokeStatus = old::MachineSetStatus;
    type HubSpec = new::MachineSetSpec;
    type HubStatus = new::MachineSetStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        let old::MachineSetSpec {
            cluster_name,
            delete_policy,
            machine_naming_strategy,
            min_ready_seconds,
            replicas,
            selector,
            template,
        } = spec;
        new::MachineSetSpec {
            cluster_name,
            deletion: set(new::MachineSetDeletion { order: delete_policy }),
            machine_naming: machine_naming_strategy.and_then(set),
            replicas,
            selector,
            template: machine::template_up(template.unwrap_or_default(), min_ready_seconds),
        }
    }

    fn spec_down(spec: Self::HubSpec, context: &Context<'_>) -> Self::SpokeSpec {
        let new::MachineSetSpec { cluster_name, deletion, machine_naming, replicas, selector, template } =
            spec;
        let new::MachineSetDeletion { order } = deletion.unwrap_or_default();
        let (template, min_ready_seconds) = machine::template_down(template, context);
        old::MachineSetSpec {
            cluster_name,
            delete_policy: order,
            machine_naming_strategy: machine_naming,
            min_ready_seconds,
            replicas,
            selector,
            template: set(template),
        }
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        let old::MachineSetStatus {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            failure_message,
            failure_reason,
            fully_labeled_replicas,
            observed_generation,
            ready_replicas: old_ready_replicas,
            replicas,
            selector,
            v1beta2,
        } = status;
        let old::MachineSetStatusV1Beta2 {
            available_replicas,
            conditions,
            ready_replicas,
            up_to_date_replicas,
        } = v1beta2.unwrap_or_default();
        let deprecated = set(new::MachineSetStatusV1Beta1 {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            failure_message,
            failure_reason,
            fully_labeled_replicas,
            ready_replicas: old_ready_replicas,
        });
        new::MachineSetStatus {
            available_replicas,
            conditions,
            deprecated: deprecated.map(|v1beta1| new::MachineSetDeprecatedStatus { v1beta1: Some(v1beta1) }),
            observed_generation: at_least(1, observed_generation),
            ready_replicas,
            replicas,
            selector: text(selector),
            up_to_date_replicas,
        }
    }

    fn status_down(status: Self::HubStatus, _context: &Context<'_>) -> Self::SpokeStatus {
        let new::MachineSetStatus {
            available_replicas,
            conditions,
            deprecated,
            observed_generation,
            ready_replicas,
            replicas,
            selector,
            up_to_date_replicas,
        } = status;
        let new::MachineSetDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let new::MachineSetStatusV1Beta1 {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            failure_message,
            failure_reason,
            fully_labeled_replicas,
            ready_replicas: old_ready_replicas,
        } = v1beta1.unwrap_or_default();
        old::MachineSetStatus {
            available_replicas: old_available_replicas,
            conditions: old_conditions,
            failure_message,
            failure_reason,
            fully_labeled_replicas,
            observed_generation,
            ready_replicas: old_ready_replicas,
            replicas,
            selector,
            v1beta2: set(old::MachineSetStatusV1Beta2 {
                conditions,
                available_replicas,
                ready_replicas,
                up_to_date_replicas,
            }),
        }
    }
}

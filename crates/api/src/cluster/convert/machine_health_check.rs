//! Conversion of `MachineHealthCheck`.

use super::{GROUP, health_check};
use crate::cluster::v1beta1::machine_health_check as old;
use crate::cluster::v1beta2::health_check::Remediation;
use crate::cluster::v1beta2::machine_health_check as new;
use crate::conversion::absence::{at_least, set};
use crate::conversion::{Context, Convert};

/// The conversion of this kind.
pub(super) enum MachineHealthCheck {}

impl Convert for MachineHealthCheck {
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "MachineHealthCheck";
    type SpokeSpec = old::MachineHealthCheckSpec;
    type SpokeStatus = old::MachineHealthCheckStatus;
    type HubSpec = new::MachineHealthCheckSpec;
    type HubStatus = new::MachineHealthCheckStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        let old::MachineHealthCheckSpec {
            cluster_name,
            max_unhealthy,
            node_startup_timeout,
            remediation_template,
            selector,
            unhealthy_conditions,
            unhealthy_range,
        } = spec;
        new::MachineHealthCheckSpec {
            checks: health_check::checks_up(node_startup_timeout.as_deref(), unhealthy_conditions),
            cluster_name,
            remediation: health_check::remediation_up(remediation_template, max_unhealthy, unhealthy_range),
            selector,
        }
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        let old::MachineHealthCheckStatus {
            conditions: old_conditions,
            current_healthy,
            expected_machines,
            observed_generation,
            remediations_allowed,
            targets,
            v1beta2,
        } = status;
        let old::MachineHealthCheckStatusV1Beta2 { conditions } = v1beta2.unwrap_or_default();
        let deprecated = set(new::MachineHealthCheckStatusV1Beta1 { conditions: old_conditions });
        new::MachineHealthCheckStatus {
            conditions,
            current_healthy,
            deprecated: deprecated
                .map(|v1beta1| new::MachineHealthCheckDeprecatedStatus { v1beta1: Some(v1beta1) }),
            expected_machines,
            observed_generation: at_least(1, observed_generation),
            remediations_allowed,
            targets,
        }
    }

    fn spec_down(spec: Self::HubSpec, context: &Context<'_>) -> Self::SpokeSpec {
        let new::MachineHealthCheckSpec { checks, cluster_name, remediation, selector } = spec;
        let Remediation { template_ref, trigger_if } = remediation.unwrap_or_default();
        let (node_startup_timeout, unhealthy_conditions) = health_check::checks_down(checks);
        let (max_unhealthy, unhealthy_range) = health_check::trigger_down(trigger_if);
        old::MachineHealthCheckSpec {
            cluster_name,
            max_unhealthy,
            node_startup_timeout,
            remediation_template: health_check::template_down(template_ref, context),
            selector,
            unhealthy_conditions,
            unhealthy_range,
        }
    }

    fn status_down(status: Self::HubStatus, _context: &Context<'_>) -> Self::SpokeStatus {
        let new::MachineHealthCheckStatus {
            conditions,
            current_healthy,
            deprecated,
            expected_machines,
            observed_generation,
            remediations_allowed,
            targets,
        } = status;
        let new::MachineHealthCheckDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let new::MachineHealthCheckStatusV1Beta1 { conditions: old_conditions } = v1beta1.unwrap_or_default();
        old::MachineHealthCheckStatus {
            conditions: old_conditions,
            current_healthy,
            expected_machines,
            observed_generation,
            remediations_allowed,
            targets,
            v1beta2: set(old::MachineHealthCheckStatusV1Beta2 { conditions }),
        }
    }
}

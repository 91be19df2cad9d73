//! Conversion of `Machine`, and of the template of Machines in its owners.

use super::GROUP;
use crate::cluster::v1beta1::machine as old;
use crate::cluster::v1beta2::machine as new;
use crate::conversion::absence::{at_least, list, set, text};
use crate::conversion::{Context, Convert, go_duration};
use crate::reference::{ContractVersionedObjectReference, ObjectReference};

/// The conversion of this kind.
pub(super) enum Machine {}

impl Convert for Machine {
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "Machine";
    type SpokeSpec = old::MachineSpec;
    type SpokeStatus = old::MachineStatus;
    type HubSpec = new::MachineSpec;
    type HubStatus = new::MachineStatus;

    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec {
        spec_up(spec, None)
    }

    fn spec_down(spec: Self::HubSpec, context: &Context<'_>) -> Self::SpokeSpec {
        // A single Machine has no place for minReadySeconds in v1beta1.
        spec_down(spec, context).0
    }

    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus {
        let old::MachineStatus {
            addresses,
            bootstrap_ready,
            certificates_expiry_date,
            conditions: old_conditions,
            deletion,
            failure_message,
            failure_reason,
            infrastructure_ready,
            last_updated,
            node_info,
            node_ref,
            observed_generation,
            phase,
            v1beta2,
        } = status;
        let old::MachineStatusV1Beta2 { conditions } = v1beta2.unwrap_or_default();
        let deprecated =
            set(new::MachineStatusV1Beta1 { conditions: old_conditions, failure_message, failure_reason });
        new::MachineStatus {
            addresses,
            certificates_expiry_date,
            conditions,
            deletion,
            deprecated: deprecated.map(|v1beta1| new::MachineDeprecatedStatus { v1beta1: Some(v1beta1) }),
            initialization: set(new::MachineInitialization {
                bootstrap_data_secret_created: bootstrap_ready,
                infrastructure_provisioned: infrastructure_ready,
            }),
            last_updated,
            node_info,
            node_ref: node_ref.and_then(node_up),
            observed_generation: at_least(1, observed_generation),
            phase: phase.map(phase_up),
        }
    }

    fn status_down(status: Self::HubStatus, _context: &Context<'_>) -> Self::SpokeStatus {
        let new::MachineStatus {
            addresses,
            certificates_expiry_date,
            conditions,
            deletion,
            deprecated,
            initialization,
            last_updated,
            node_info,
            node_ref,
            observed_generation,
            phase,
        } = status;
        let new::MachineDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let new::MachineStatusV1Beta1 { conditions: old_conditions, failure_message, failure_reason } =
            v1beta1.unwrap_or_default();
        let new::MachineInitialization { bootstrap_data_secret_created, infrastructure_provisioned } =
            initialization.unwrap_or_default();
        old::MachineStatus {
            addresses,
            bootstrap_ready: bootstrap_data_secret_created,
            certificates_expiry_date,
            conditions: old_conditions,
            deletion,
            failure_message,
            failure_reason,
            infrastructure_ready: infrastructure_provisioned,
            last_updated,
            node_info,
            node_ref: node_ref.map(node_down),
            observed_generation,
            phase: phase.map(phase_down),
            v1beta2: set(old::MachineStatusV1Beta2 { conditions }),
        }
    }
}

/// v1beta1 keeps `minReadySeconds` beside the template, v1beta2 in it.
fn spec_up(spec: old::MachineSpec, min_ready_seconds: Option<i32>) -> new::MachineSpec {
    let old::MachineSpec {
        bootstrap,
        cluster_name,
        failure_domain,
        infrastructure_ref,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        provider_id,
        readiness_gates,
        version,
    } = spec;
    let old::Bootstrap { config_ref, data_secret_name } = bootstrap;
    new::MachineSpec {
        bootstrap: new::Bootstrap { config_ref: reference_up(config_ref), data_secret_name },
        cluster_name,
        deletion: deletion_up(
            node_deletion_timeout.as_deref(),
            node_drain_timeout.as_deref(),
            node_volume_detach_timeout.as_deref(),
        ),
        failure_domain: text(failure_domain),
        infrastructure_ref: infrastructure_ref.up(),
        min_ready_seconds: at_least(0, min_ready_seconds),
        provider_id: text(provider_id),
        readiness_gates: list(readiness_gates),
        taints: None,
        version: text(version),
    }
}

fn spec_down(spec: new::MachineSpec, context: &Context<'_>) -> (old::MachineSpec, Option<i32>) {
    let new::MachineSpec {
        bootstrap,
        cluster_name,
        deletion,
        failure_domain,
        infrastructure_ref,
        min_ready_seconds,
        provider_id,
        readiness_gates,
        taints: _, // no place in v1beta1
        version,
    } = spec;
    let new::Bootstrap { config_ref, data_secret_name } = bootstrap;
    let (node_deletion_timeout, node_drain_timeout, node_volume_detach_timeout) = deletion_down(deletion);
    let spec = old::MachineSpec {
        bootstrap: old::Bootstrap {
            config_ref: config_ref.map(|reference| reference.down(context)),
            data_secret_name,
        },
        cluster_name,
        failure_domain,
        infrastructure_ref: infrastructure_ref.down(context),
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        provider_id,
        readiness_gates,
        version,
    };
    (spec, min_ready_seconds)
}

pub(super) fn template_up(
    template: old::MachineTemplateSpec,
    min_ready_seconds: Option<i32>,
) -> new::MachineTemplateSpec {
    let old::MachineTemplateSpec { metadata, spec } = template;
    new::MachineTemplateSpec {
        metadata: metadata.and_then(set),
        spec: spec_up(spec.unwrap_or_default(), min_ready_seconds),
    }
}

pub(super) fn template_down(
    template: new::MachineTemplateSpec,
    context: &Context<'_>,
) -> (old::MachineTemplateSpec, Option<i32>) {
    let new::MachineTemplateSpec { metadata, spec } = template;
    let (spec, min_ready_seconds) = spec_down(spec, context);
    (old::MachineTemplateSpec { metadata, spec: set(spec) }, min_ready_seconds)
}

/// An optional reference; one that names nothing is none.
pub(super) fn reference_up(reference: Option<ObjectReference>) -> Option<ContractVersionedObjectReference> {
    reference.map(ObjectReference::up).and_then(set)
}

pub(super) fn deletion_up(
    node_deletion_timeout: Option<&str>,
    node_drain_timeout: Option<&str>,
    node_volume_detach_timeout: Option<&str>,
) -> Option<new::MachineDeletion> {
    set(new::MachineDeletion {
        node_deletion_timeout_seconds: go_duration::to_seconds(node_deletion_timeout),
        node_drain_timeout_seconds: go_duration::to_seconds(node_drain_timeout),
        node_volume_detach_timeout_seconds: go_duration::to_seconds(node_volume_detach_timeout),
    })
}

/// Timeouts of Node deletion, drain and volume detachment.
pub(super) fn deletion_down(
    deletion: Option<new::MachineDeletion>,
) -> (Option<String>, Option<String>, Option<String>) {
    let new::MachineDeletion {
        node_deletion_timeout_seconds,
        node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds,
    } = deletion.unwrap_or_default();
    (
        go_duration::from_seconds(node_deletion_timeout_seconds),
        go_duration::from_seconds(node_drain_timeout_seconds),
        go_duration::from_seconds(node_volume_detach_timeout_seconds),
    )
}

fn node_up(reference: ObjectReference) -> Option<new::NodeReference> {
    let ObjectReference {
        api_version: _,
        field_path: _,
        kind: _,
        name,
        namespace: _,
        resource_version: _,
        uid: _,
    } = reference;
    text(name).map(|name| new::NodeReference { name })
}

fn node_down(reference: new::NodeReference) -> ObjectReference {
    let new::NodeReference { name } = reference;
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: text(Some(name)),
        field_path: None,
        namespace: None,
        resource_version: None,
        uid: None,
    }
}

fn phase_up(phase: old::MachinePhase) -> new::MachinePhase {
    match phase {
        old::MachinePhase::Pending => new::MachinePhase::Pending,
        old::MachinePhase::Provisioning => new::MachinePhase::Provisioning,
        old::MachinePhase::Provisioned => new::MachinePhase::Provisioned,
        old::MachinePhase::Running => new::MachinePhase::Running,
        old::MachinePhase::Deleting => new::MachinePhase::Deleting,
        old::MachinePhase::Deleted => new::MachinePhase::Deleted,
        old::MachinePhase::Failed => new::MachinePhase::Failed,
        old::MachinePhase::Unknown => new::MachinePhase::Unknown,
    }
}

fn phase_down(phase: new::MachinePhase) -> old::MachinePhase {
    match phase {
        new::MachinePhase::Pending => old::MachinePhase::Pending,
        new::MachinePhase::Provisioning => old::MachinePhase::Provisioning,
        new::MachinePhase::Provisioned => old::MachinePhase::Provisioned,
        // A machine that is changed in place has its Node: v1beta1 has no closer word.
        new::MachinePhase::Running | new::MachinePhase::Updating => old::MachinePhase::Running,
        new::MachinePhase::Deleting => old::MachinePhase::Deleting,
        new::MachinePhase::Deleted => old::MachinePhase::Deleted,
        new::MachinePhase::Failed => old::MachinePhase::Failed,
        new::MachinePhase::Unknown => old::MachinePhase::Unknown,
    }
}

//! Conversion of health checks: flat in v1beta1, grouped in v1beta2.

use crate::cluster::v1beta1::machine_health_check::UnhealthyCondition;
use crate::cluster::v1beta2::health_check as new;
use crate::conversion::absence::{list, set, text};
use crate::conversion::{Context, go_duration};
use crate::reference::ObjectReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub(super) fn checks_up(
    node_startup_timeout: Option<&str>,
    unhealthy_conditions: Option<Vec<UnhealthyCondition>>,
) -> Option<new::HealthChecks> {
    let conditions =
        unhealthy_conditions.map(|conditions| conditions.into_iter().filter_map(condition_up).collect());
    set(new::HealthChecks {
        node_startup_timeout_seconds: go_duration::to_seconds(node_startup_timeout),
        unhealthy_machine_conditions: None,
        unhealthy_node_conditions: list(conditions),
    })
}

/// A condition with an unreadable timeout is left out: any other value would remediate machines at a moment that the
/// user did not choose. A negative timeout has always passed, like zero.
fn condition_up(condition: UnhealthyCondition) -> Option<new::UnhealthyNodeCondition> {
    let UnhealthyCondition { status, timeout, r#type } = condition;
    go_duration::parse(&timeout)?;
    let timeout_seconds = go_duration::to_seconds(Some(&timeout)).unwrap_or(0);
    Some(new::UnhealthyNodeCondition { status, timeout_seconds, r#type })
}

pub(super) fn checks_down(
    checks: Option<new::HealthChecks>,
) -> (Option<String>, Option<Vec<UnhealthyCondition>>) {
    let new::HealthChecks {
        node_startup_timeout_seconds,
        unhealthy_machine_conditions: _, // no place in v1beta1
        unhealthy_node_conditions,
    } = checks.unwrap_or_default();
    let conditions =
        unhealthy_node_conditions.map(|conditions| conditions.into_iter().map(condition_down).collect());
    (go_duration::from_seconds(node_startup_timeout_seconds), conditions)
}

fn condition_down(condition: new::UnhealthyNodeCondition) -> UnhealthyCondition {
    let new::UnhealthyNodeCondition { status, timeout_seconds, r#type } = condition;
    let timeout = go_duration::from_seconds(Some(timeout_seconds)).unwrap_or_default();
    UnhealthyCondition { status, timeout, r#type }
}

pub(super) fn trigger_up(
    max_unhealthy: Option<IntOrString>,
    unhealthy_range: Option<String>,
) -> Option<new::RemediationTrigger> {
    set(new::RemediationTrigger {
        unhealthy_in_range: text(unhealthy_range),
        unhealthy_less_than_or_equal_to: max_unhealthy,
    })
}

pub(super) fn trigger_down(
    trigger: Option<new::RemediationTrigger>,
) -> (Option<IntOrString>, Option<String>) {
    let new::RemediationTrigger { unhealthy_in_range, unhealthy_less_than_or_equal_to } =
        trigger.unwrap_or_default();
    (unhealthy_less_than_or_equal_to, unhealthy_in_range)
}

/// This one reference names its API version in v1beta2, too.
pub(super) fn template_up(reference: Option<ObjectReference>) -> Option<new::RemediationTemplateReference> {
    let ObjectReference { api_version, field_path: _, kind, name, namespace: _, resource_version: _, uid: _ } =
        reference?;
    set(new::RemediationTemplateReference {
        api_version: api_version.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        name: name.unwrap_or_default(),
    })
}

pub(super) fn template_down(
    reference: Option<new::RemediationTemplateReference>,
    context: &Context<'_>,
) -> Option<ObjectReference> {
    let new::RemediationTemplateReference { api_version, kind, name } = reference?;
    Some(ObjectReference {
        api_version: text(Some(api_version)),
        kind: text(Some(kind)),
        name: text(Some(name)),
        namespace: context.namespace().map(str::to_owned),
        field_path: None,
        resource_version: None,
        uid: None,
    })
}

pub(super) fn remediation_up(
    template: Option<ObjectReference>,
    max_unhealthy: Option<IntOrString>,
    unhealthy_range: Option<String>,
) -> Option<new::Remediation> {
    set(new::Remediation {
        template_ref: template_up(template),
        trigger_if: trigger_up(max_unhealthy, unhealthy_range),
    })
}

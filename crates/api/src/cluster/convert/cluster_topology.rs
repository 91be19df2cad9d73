//! Conversion of the topology of a `Cluster` that is an instance of a class.

use super::rollout_strategy::{self, SplitStrategy};
use super::{cluster_variables, health_check, machine};
use crate::cluster::v1beta1::cluster_topology as old;
use crate::cluster::v1beta2::cluster_topology as new;
use crate::cluster::v1beta2::health_check::Remediation;
use crate::cluster::v1beta2::machine::MachineDeletion;
use crate::conversion::Context;
use crate::conversion::absence::{at_least, list, set, text};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub(super) fn up(topology: old::Topology) -> new::Topology {
    let old::Topology {
        class,
        class_namespace,
        control_plane,
        rollout_after: _, // has no effect, no place in v1beta2
        variables,
        version,
        workers,
    } = topology;
    new::Topology {
        class_ref: new::ClassReference { name: class, namespace: text(class_namespace) },
        control_plane: control_plane.and_then(control_plane_up),
        variables: cluster_variables::up(variables),
        version,
        workers: workers.and_then(workers_up),
    }
}

pub(super) fn down(topology: new::Topology, context: &Context<'_>) -> old::Topology {
    let new::Topology { class_ref, control_plane, variables, version, workers } = topology;
    let new::ClassReference { name, namespace } = class_ref;
    old::Topology {
        class: name,
        class_namespace: namespace,
        control_plane: control_plane.map(|control_plane| control_plane_down(control_plane, context)),
        rollout_after: None,
        variables: cluster_variables::down(variables),
        version,
        workers: workers.map(|workers| workers_down(workers, context)),
    }
}

fn control_plane_up(control_plane: old::ControlPlaneTopology) -> Option<new::ControlPlaneTopology> {
    let old::ControlPlaneTopology {
        machine_health_check,
        metadata,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        readiness_gates,
        replicas,
        variables,
    } = control_plane;
    set(new::ControlPlaneTopology {
        deletion: machine::deletion_up(
            node_deletion_timeout.as_deref(),
            node_drain_timeout.as_deref(),
            node_volume_detach_timeout.as_deref(),
        ),
        health_check: machine_health_check.and_then(control_plane_health_check_up),
        metadata: metadata.and_then(set),
        readiness_gates: list(readiness_gates),
        replicas,
        variables: cluster_variables::overrides_up(variables),
    })
}

fn control_plane_down(
    control_plane: new::ControlPlaneTopology,
    context: &Context<'_>,
) -> old::ControlPlaneTopology {
    let new::ControlPlaneTopology { deletion, health_check, metadata, readiness_gates, replicas, variables } =
        control_plane;
    let (node_deletion_timeout, node_drain_timeout, node_volume_detach_timeout) =
        machine::deletion_down(deletion);
    old::ControlPlaneTopology {
        machine_health_check: health_check.map(|check| control_plane_health_check_down(check, context)),
        metadata,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        readiness_gates,
        replicas,
        variables: cluster_variables::overrides_down(variables),
    }
}

fn control_plane_health_check_up(check: old::HealthCheckTopology) -> Option<new::ControlPlaneHealthCheck> {
    let old::HealthCheckTopology {
        enable,
        max_unhealthy,
        node_startup_timeout,
        remediation_template,
        unhealthy_conditions,
        unhealthy_range,
    } = check;
    set(new::ControlPlaneHealthCheck {
        checks: health_check::checks_up(node_startup_timeout.as_deref(), unhealthy_conditions),
        enabled: enable,
        remediation: health_check::remediation_up(remediation_template, max_unhealthy, unhealthy_range),
    })
}

fn control_plane_health_check_down(
    check: new::ControlPlaneHealthCheck,
    context: &Context<'_>,
) -> old::HealthCheckTopology {
    let new::ControlPlaneHealthCheck { checks, enabled, remediation } = check;
    let Remediation { template_ref, trigger_if } = remediation.unwrap_or_default();
    let (node_startup_timeout, unhealthy_conditions) = health_check::checks_down(checks);
    let (max_unhealthy, unhealthy_range) = health_check::trigger_down(trigger_if);
    old::HealthCheckTopology {
        enable: enabled,
        max_unhealthy,
        node_startup_timeout,
        remediation_template: health_check::template_down(template_ref, context),
        unhealthy_conditions,
        unhealthy_range,
    }
}

fn workers_up(workers: old::WorkersTopology) -> Option<new::WorkersTopology> {
    let old::WorkersTopology { machine_deployments, machine_pools } = workers;
    set(new::WorkersTopology {
        machine_deployments: list(
            machine_deployments.map(|items| items.into_iter().map(machine_deployment_up).collect()),
        ),
        machine_pools: list(machine_pools.map(|items| items.into_iter().map(machine_pool_up).collect())),
    })
}

fn workers_down(workers: new::WorkersTopology, context: &Context<'_>) -> old::WorkersTopology {
    let new::WorkersTopology { machine_deployments, machine_pools } = workers;
    old::WorkersTopology {
        machine_deployments: machine_deployments
            .map(|items| items.into_iter().map(|item| machine_deployment_down(item, context)).collect()),
        machine_pools: machine_pools.map(|items| items.into_iter().map(machine_pool_down).collect()),
    }
}

fn machine_deployment_up(topology: old::MachineDeploymentTopology) -> new::MachineDeploymentTopology {
    let old::MachineDeploymentTopology {
        class,
        failure_domain,
        machine_health_check,
        metadata,
        min_ready_seconds,
        name,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        readiness_gates,
        replicas,
        strategy,
        variables,
    } = topology;
    let SplitStrategy { strategy, order, max_in_flight } = rollout_strategy::up(strategy);
    let MachineDeletion {
        node_deletion_timeout_seconds,
        node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds,
    } = machine::deletion_up(
        node_deletion_timeout.as_deref(),
        node_drain_timeout.as_deref(),
        node_volume_detach_timeout.as_deref(),
    )
    .unwrap_or_default();
    new::MachineDeploymentTopology {
        class,
        deletion: set(new::MachineDeploymentTopologyDeletion {
            node_deletion_timeout_seconds,
            node_drain_timeout_seconds,
            node_volume_detach_timeout_seconds,
            order,
        }),
        failure_domain: text(failure_domain),
        health_check: machine_deployment_health_check_up(machine_health_check, max_in_flight),
        metadata: metadata.and_then(set),
        min_ready_seconds: at_least(0, min_ready_seconds),
        name,
        readiness_gates: list(readiness_gates),
        replicas,
        rollout: set(new::MachineDeploymentTopologyRollout { strategy }),
        variables: cluster_variables::overrides_up(variables),
    }
}

fn machine_deployment_down(
    topology: new::MachineDeploymentTopology,
    context: &Context<'_>,
) -> old::MachineDeploymentTopology {
    let new::MachineDeploymentTopology {
        class,
        deletion,
        failure_domain,
        health_check,
        metadata,
        min_ready_seconds,
        name,
        readiness_gates,
        replicas,
        rollout,
        variables,
    } = topology;
    let new::MachineDeploymentTopologyDeletion {
        node_deletion_timeout_seconds,
        node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds,
        order,
    } = deletion.unwrap_or_default();
    let (node_deletion_timeout, node_drain_timeout, node_volume_detach_timeout) =
        machine::deletion_down(Some(MachineDeletion {
            node_deletion_timeout_seconds,
            node_drain_timeout_seconds,
            node_volume_detach_timeout_seconds,
        }));
    let new::MachineDeploymentTopologyRollout { strategy } = rollout.unwrap_or_default();
    let (machine_health_check, max_in_flight) = machine_deployment_health_check_down(health_check, context);
    old::MachineDeploymentTopology {
        class,
        failure_domain,
        machine_health_check,
        metadata,
        min_ready_seconds,
        name,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        readiness_gates,
        replicas,
        strategy: rollout_strategy::down(SplitStrategy { strategy, order, max_in_flight }),
        variables: cluster_variables::overrides_down(variables),
    }
}

/// v1beta1 keeps the limit of remediations in flight with the strategy, v1beta2 with the health check.
fn machine_deployment_health_check_up(
    check: Option<old::HealthCheckTopology>,
    max_in_flight: Option<IntOrString>,
) -> Option<new::MachineDeploymentHealthCheck> {
    let old::HealthCheckTopology {
        enable,
        max_unhealthy,
        node_startup_timeout,
        remediation_template,
        unhealthy_conditions,
        unhealthy_range,
    } = check.unwrap_or_default();
    set(new::MachineDeploymentHealthCheck {
        checks: health_check::checks_up(node_startup_timeout.as_deref(), unhealthy_conditions),
        enabled: enable,
        remediation: set(new::MachineDeploymentRemediation {
            max_in_flight,
            template_ref: health_check::template_up(remediation_template),
            trigger_if: health_check::trigger_up(max_unhealthy, unhealthy_range),
        }),
    })
}

fn machine_deployment_health_check_down(
    check: Option<new::MachineDeploymentHealthCheck>,
    context: &Context<'_>,
) -> (Option<old::HealthCheckTopology>, Option<IntOrString>) {
    let new::MachineDeploymentHealthCheck { checks, enabled, remediation } = check.unwrap_or_default();
    let new::MachineDeploymentRemediation { max_in_flight, template_ref, trigger_if } =
        remediation.unwrap_or_default();
    let (node_startup_timeout, unhealthy_conditions) = health_check::checks_down(checks);
    let (max_unhealthy, unhealthy_range) = health_check::trigger_down(trigger_if);
    let check = set(old::HealthCheckTopology {
        enable: enabled,
        max_unhealthy,
        node_startup_timeout,
        remediation_template: health_check::template_down(template_ref, context),
        unhealthy_conditions,
        unhealthy_range,
    });
    (check, max_in_flight)
}

fn machine_pool_up(topology: old::MachinePoolTopology) -> new::MachinePoolTopology {
    let old::MachinePoolTopology {
        class,
        failure_domains,
        metadata,
        min_ready_seconds,
        name,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        replicas,
        variables,
    } = topology;
    new::MachinePoolTopology {
        class,
        deletion: machine::deletion_up(
            node_deletion_timeout.as_deref(),
            node_drain_timeout.as_deref(),
            node_volume_detach_timeout.as_deref(),
        ),
        failure_domains: list(failure_domains),
        metadata: metadata.and_then(set),
        min_ready_seconds: at_least(0, min_ready_seconds),
        name,
        replicas,
        variables: cluster_variables::overrides_up(variables),
    }
}

fn machine_pool_down(topology: new::MachinePoolTopology) -> old::MachinePoolTopology {
    let new::MachinePoolTopology {
        class,
        deletion,
        failure_domains,
        metadata,
        min_ready_seconds,
        name,
        replicas,
        variables,
    } = topology;
    let (node_deletion_timeout, node_drain_timeout, node_volume_detach_timeout) =
        machine::deletion_down(deletion);
    old::MachinePoolTopology {
        class,
        failure_domains,
        metadata,
        min_ready_seconds,
        name,
        node_deletion_timeout,
        node_drain_timeout,
        node_volume_detach_timeout,
        replicas,
        variables: cluster_variables::overrides_down(variables),
    }
}

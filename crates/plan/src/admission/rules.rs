//! The table of kinds with admission rules, and the functions that each kind has.

use serde_json::Value;

use super::{
    Judgement, Lookup, Request, cluster, cluster_resource_set, hosted_control_plane, machine,
    machine_collection, openstack_cluster, template,
};

type Check = fn(&Request<'_>, &dyn Lookup) -> Judgement;

/// A kind with rules of its own: what is defaulted, what is checked when it is written, deleted or scaled.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub group: &'static str,
    pub kind: &'static str,
    /// Plural name, for the webhook configuration.
    pub plural: &'static str,
    pub(super) default: Option<fn(&mut Value)>,
    pub(super) validate: Option<Check>,
    pub(super) delete: Option<Check>,
    pub(super) scale: Option<Check>,
}

impl Rules {
    const fn of(group: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { group, kind, plural, default: None, validate: None, delete: None, scale: None }
    }

    /// Whether objects of this kind are changed on the way in.
    pub fn has_defaults(&self) -> bool {
        self.default.is_some()
    }

    /// Whether writes of this kind are checked.
    pub fn has_checks(&self) -> bool {
        self.validate.is_some()
    }

    /// Whether deletions of this kind are checked.
    pub fn has_delete_checks(&self) -> bool {
        self.delete.is_some()
    }

    /// Whether numbers of replicas are checked that come by the scale subresource.
    pub fn has_scale_checks(&self) -> bool {
        self.scale.is_some()
    }
}

const CORE: &str = "cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// Every kind with rules.
pub const RULES: &[Rules] = &[
    Rules { validate: Some(cluster::validate), ..Rules::of(CORE, "Cluster", "clusters") },
    Rules {
        default: Some(machine::default),
        validate: Some(machine::validate),
        ..Rules::of(CORE, "Machine", "machines")
    },
    Rules {
        default: Some(machine_collection::default_machine_set),
        validate: Some(machine_collection::validate),
        ..Rules::of(CORE, "MachineSet", "machinesets")
    },
    Rules {
        default: Some(machine_collection::default_machine_deployment),
        validate: Some(machine_collection::validate),
        ..Rules::of(CORE, "MachineDeployment", "machinedeployments")
    },
    Rules { validate: Some(unattended), ..Rules::of(CORE, "MachineHealthCheck", "machinehealthchecks") },
    Rules {
        validate: Some(cluster_resource_set::validate),
        ..Rules::of("addons.cluster.x-k8s.io", "ClusterResourceSet", "clusterresourcesets")
    },
    Rules {
        validate: Some(hosted_control_plane::validate),
        delete: Some(hosted_control_plane::delete),
        scale: Some(hosted_control_plane::scale),
        ..Rules::of(CONTROL_PLANE, "HostedControlPlane", "hostedcontrolplanes")
    },
    Rules {
        validate: Some(hosted_control_plane::validate_template),
        ..Rules::of(CONTROL_PLANE, "HostedControlPlaneTemplate", "hostedcontrolplanetemplates")
    },
    Rules {
        validate: Some(openstack_cluster::validate),
        ..Rules::of(INFRASTRUCTURE, "OpenStackCluster", "openstackclusters")
    },
    Rules {
        validate: Some(openstack_cluster::validate_template),
        ..Rules::of(INFRASTRUCTURE, "OpenStackClusterTemplate", "openstackclustertemplates")
    },
    Rules {
        validate: Some(template::validate_machine_template),
        ..Rules::of(INFRASTRUCTURE, "OpenStackMachineTemplate", "openstackmachinetemplates")
    },
];

/// A kind that is installed and kept, while nothing acts on it.
pub(super) fn unattended(request: &Request<'_>, _: &dyn Lookup) -> Judgement {
    let mut judgement = Judgement::default();
    if request.is_new("/spec") {
        judgement.warn(format!("no controller acts on a {} yet: it has no effect", request.kind));
    }
    judgement
}

//! What is changed and what is refused when somebody writes an object.
//!
//! The schema and the CEL rules of the CRDs say most of it; here is what they cannot say: defaults that depend on the
//! object's own name, rules across fields that old API servers cannot evaluate. The functions see the raw object in
//! the version it was written in, because defaulting runs before the schema is checked: a MachineDeployment without a
//! selector is not yet a valid one.
//!
//! The transport is the webhook server in `hangar-kit`; it knows nothing about kinds.

mod cluster;
mod field;
mod machine;
mod machine_collection;
mod network;
mod openstack_cluster;

use serde_json::Value;

pub use field::FieldError;

/// The object somebody wants to write.
#[derive(Debug, Clone, Copy)]
pub struct Request<'request> {
    /// API group.
    pub group: &'request str,
    /// Kind.
    pub kind: &'request str,
    /// The object as it would be written; on a delete there is none.
    pub object: &'request Value,
    /// The object as it is, on an update.
    pub old: Option<&'request Value>,
}

/// A kind with rules of its own: what is defaulted and what is validated.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// API group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name, for the webhook configuration.
    pub plural: &'static str,
    default: Option<fn(&mut Value)>,
    validate: Option<fn(&Request<'_>) -> Vec<FieldError>>,
}

impl Rules {
    /// Whether objects of this kind are changed on the way in.
    pub fn has_defaults(&self) -> bool {
        self.default.is_some()
    }

    /// Whether objects of this kind may be refused.
    pub fn has_checks(&self) -> bool {
        self.validate.is_some()
    }
}

/// Every kind with rules.
pub const RULES: &[Rules] = &[
    Rules {
        group: "cluster.x-k8s.io",
        kind: "Cluster",
        plural: "clusters",
        default: None,
        validate: Some(cluster::validate),
    },
    Rules {
        group: "cluster.x-k8s.io",
        kind: "Machine",
        plural: "machines",
        default: Some(machine::default),
        validate: None,
    },
    Rules {
        group: "cluster.x-k8s.io",
        kind: "MachineSet",
        plural: "machinesets",
        default: Some(machine_collection::default_machine_set),
        validate: Some(machine_collection::validate),
    },
    Rules {
        group: "cluster.x-k8s.io",
        kind: "MachineDeployment",
        plural: "machinedeployments",
        default: Some(machine_collection::default_machine_deployment),
        validate: Some(machine_collection::validate),
    },
    Rules {
        group: "infrastructure.cluster.x-k8s.io",
        kind: "OpenStackCluster",
        plural: "openstackclusters",
        default: None,
        validate: Some(openstack_cluster::validate),
    },
    Rules {
        group: "infrastructure.cluster.x-k8s.io",
        kind: "OpenStackClusterTemplate",
        plural: "openstackclustertemplates",
        default: None,
        validate: Some(openstack_cluster::validate_template),
    },
];

fn rules_of(group: &str, kind: &str) -> Option<&'static Rules> {
    RULES.iter().find(|rules| rules.group == group && rules.kind == kind)
}

/// The object with its defaults. Applying it twice changes nothing more.
pub fn defaulted(request: &Request<'_>) -> Value {
    let mut object = request.object.clone();
    if let Some(default) = rules_of(request.group, request.kind).and_then(|rules| rules.default) {
        default(&mut object);
    }
    object
}

/// Everything that is wrong with the object, all at once, so that people fix it in one go.
pub fn validate(request: &Request<'_>) -> Vec<FieldError> {
    match rules_of(request.group, request.kind).and_then(|rules| rules.validate) {
        Some(validate) => validate(request),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

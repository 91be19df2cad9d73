//! The rights of the manager: those that its chosen controllers need, and no more.
//!
//! Rights on the kinds themselves are cluster-wide. What only concerns the manager (its lease, its certificate) is
//! granted in its own namespace. All rules are in this file, so that a reviewer sees the whole grant at once.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::{NAME, Options, custom_resources, metadata, webhooks};
use crate::admission::RULES;
use crate::controllers::Controller;
use crate::pieces::{only, rule};

/// The Secret with the webhook certificate; `hangar-kit` issues it.
const CERTIFICATE_SECRET: &str = "hangar-webhook-certificate";
/// The lease that managers compete for.
pub const LEASE: &str = "hangar-manager";

pub(super) fn cluster_role(options: &Options) -> ClusterRole {
    let definitions = |verbs: &[&str]| rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], verbs);
    let mut rules = vec![
        // Which versions of which kinds implement a contract stands on the labels of everybody's CRDs.
        definitions(&["get", "list", "watch"]),
        rule(&["events.k8s.io"], &["events"], &["create", "patch"]),
    ];
    // The conversion webhook's address and authority.
    let converted = custom_resources::converted(options);
    if !converted.is_empty() {
        rules.push(only(definitions(&["patch"]), converted));
    }
    // The leader looks for configurations that carry our label, also where there can be none.
    let configurations = |verbs: &[&str]| {
        let kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
        rule(&["admissionregistration.k8s.io"], &kinds, verbs)
    };
    rules.push(configurations(&["get", "list", "watch"]));
    if RULES.iter().any(|rules| webhooks::is_chosen(rules, options)) {
        rules.push(only(configurations(&["patch"]), [NAME.to_owned()]));
    }
    for controller in options.controllers.iter() {
        rules.extend(own_kinds(controller));
        rules.extend(beyond_own_kinds(controller));
    }
    ClusterRole { metadata: metadata(NAME, None), rules: Some(rules), ..ClusterRole::default() }
}

/// A controller reads its templates, and reads and writes what is made from them.
fn own_kinds(controller: Controller) -> Vec<PolicyRule> {
    let (group, plurals) = controller.kinds();
    let (templates, kinds): (Vec<&str>, Vec<&str>) =
        plurals.iter().partition(|plural| plural.ends_with("templates"));
    let subresource = |name: &str, verbs: &[&str]| {
        let names: Vec<String> = kinds.iter().map(|plural| format!("{plural}/{name}")).collect();
        rule(&[group], &names.iter().map(String::as_str).collect::<Vec<_>>(), verbs)
    };
    let mut rules = vec![
        rule(&[group], &kinds, &["get", "list", "watch", "patch"]),
        subresource("status", &["patch"]),
        // To own objects with blockOwnerDeletion where that admission check is on.
        subresource("finalizers", &["update"]),
    ];
    if !templates.is_empty() {
        rules.push(rule(&[group], &templates, &["get", "list", "watch"]));
    }
    rules
}

const READ: &[&str] = &["get", "list", "watch"];
/// Server-side apply creates with `create` and `patch`.
const WRITE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// What a controller needs of kinds that are not its own.
fn beyond_own_kinds(controller: Controller) -> Vec<PolicyRule> {
    let core = "cluster.x-k8s.io";
    // References name kinds of any provider, so whole groups are granted.
    let providers: &[&str] =
        &["infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"];
    match controller {
        Controller::HostedControlPlane => vec![
            rule(&[core], &["clusters"], READ),
            rule(&["infrastructure.cluster.x-k8s.io"], &["*"], &["get", "list", "watch", "patch"]),
            rule(&[""], &["secrets", "configmaps", "services"], WRITE),
            // An annotation on a running pod makes its kubelet bring renewed certificates at once.
            rule(&[""], &["pods"], &["get", "list", "watch", "patch"]),
            rule(&["apps"], &["deployments", "statefulsets"], WRITE),
            rule(&["policy"], &["poddisruptionbudgets"], WRITE),
            rule(&["networking.k8s.io"], &["networkpolicies"], WRITE),
        ],
        Controller::Cluster => vec![
            rule(
                &[core],
                &["machines", "machinesets", "machinedeployments"],
                &["get", "list", "watch", "delete"],
            ),
            rule(providers, &["*"], &["get", "list", "watch", "patch", "delete"]),
            // Kubeconfigs of tenants.
            rule(&[""], &["secrets"], READ),
        ],
        Controller::Machine => vec![
            rule(&[core], &["clusters", "machinesets", "machinedeployments"], READ),
            rule(providers, &["*"], &["get", "list", "watch", "patch", "delete"]),
            // Kubeconfigs of tenants.
            rule(&[""], &["secrets"], READ),
        ],
        Controller::MachineSet => vec![
            rule(&[core], &["clusters", "machines", "machinedeployments"], READ),
            rule(&[core], &["machines"], &["create", "patch", "delete"]),
            // What is cloned belongs to its Machine from the first moment.
            rule(&[core], &["machines/finalizers"], &["update"]),
            // Templates get the Cluster as an owner.
            rule(providers, &["*"], &["get", "list", "watch", "create", "patch"]),
        ],
        Controller::MachineDeployment => vec![
            rule(&[core], &["clusters", "machines", "machinesets"], READ),
            rule(&[core], &["machinesets"], &["create", "patch", "delete"]),
        ],
        Controller::KubeadmBootstrap => vec![
            rule(&[core], &["clusters", "machines"], READ),
            rule(&[""], &["secrets"], &["get", "list", "watch", "create", "patch"]),
        ],
        Controller::OpenStackCluster => vec![
            rule(&[core], &["clusters"], READ),
            // Whether a control plane needs an address from us stands on the control plane object.
            rule(&["controlplane.cluster.x-k8s.io"], &["*"], READ),
            rule(&["infrastructure.cluster.x-k8s.io"], &["openstackmachines"], READ),
            rule(&[""], &["secrets"], &["get"]),
        ],
        Controller::OpenStackMachine => vec![
            rule(&[core], &["clusters", "machines"], READ),
            rule(&["infrastructure.cluster.x-k8s.io"], &["openstackclusters"], READ),
            rule(&[""], &["secrets"], &["get"]),
        ],
        Controller::MachineHealthCheck | Controller::ClusterResourceSet => Vec::new(),
    }
}

pub(super) fn role(options: &Options) -> Role {
    let lease = rule(&["coordination.k8s.io"], &["leases"], &["get", "patch"]);
    let secret = rule(&[""], &["secrets"], &["list", "watch", "patch"]);
    let rules = vec![
        // A create cannot be limited to a name.
        rule(&["coordination.k8s.io"], &["leases"], &["create"]),
        only(lease, [LEASE.to_owned()]),
        rule(&[""], &["secrets"], &["create"]),
        only(secret, [CERTIFICATE_SECRET.to_owned()]),
    ];
    Role { metadata: metadata(NAME, Some(&options.namespace)), rules: Some(rules) }
}

fn subjects(options: &Options) -> Vec<Subject> {
    vec![Subject {
        kind: "ServiceAccount".to_owned(),
        name: NAME.to_owned(),
        namespace: Some(options.namespace.clone()),
        ..Subject::default()
    }]
}

fn reference(kind: &str) -> RoleRef {
    RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: NAME.to_owned(),
    }
}

pub(super) fn cluster_role_binding(options: &Options) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: metadata(NAME, None),
        role_ref: reference("ClusterRole"),
        subjects: Some(subjects(options)),
    }
}

pub(super) fn role_binding(options: &Options) -> RoleBinding {
    RoleBinding {
        metadata: metadata(NAME, Some(&options.namespace)),
        role_ref: reference("Role"),
        subjects: Some(subjects(options)),
    }
}

//! The rights of the manager: those that its chosen controllers need, and no more.
//!
//! - What the controllers do is granted in the namespaces that are looked after: by a Role in each of them, or by the
//!   ClusterRole where that is all of them.
//! - What has no namespace (CRDs, webhook configurations) is granted by the ClusterRole, by name. A list or a watch can be
//!   limited to a name if the request selects that name, so the manager watches these objects one by one.
//! - What concerns the manager alone (its lease, its certificate) is granted in its own namespace.
//!
//! All rules are in this file, each with its reason, so that a reviewer sees the whole grant at once; `reference` makes a
//! page of them. A whole life of a Cluster under these rights shows that none is missing and none is too many.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{NAME, Options, custom_resources, metadata};
use crate::controllers::{Controller, Selection};
use crate::namespaces::Namespaces;
use crate::neighbours::Neighbour;
use crate::pieces::{only, rule};

/// The Secret with the webhook certificate; `hangar-kit` issues it.
const CERTIFICATE_SECRET: &str = "hangar-webhook-certificate";
/// The lease that managers compete for.
pub const LEASE: &str = "hangar-manager";
/// The Role with the controllers' rights, and its binding, in each namespace that is looked after. Not the name of the
/// Role in the manager's own namespace, which may be one of them.
pub const CONTROLLERS_ROLE: &str = "hangar-controllers";

const CORE: &str = "cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const GATEWAYS: &str = "gateway.networking.k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
/// References name kinds of any provider, so these groups are granted whole: what a Cluster refers to, and a Machine.
const OF_CLUSTERS: &[&str] = &[INFRASTRUCTURE, CONTROL_PLANE];
const OF_MACHINES: &[&str] = &[INFRASTRUCTURE, BOOTSTRAP];

/// What a store needs.
const WATCH: &[&str] = &["list", "watch"];
/// The verbs of who makes objects and keeps them as they should be.
const MAKE: &[&str] = &["get", "list", "watch", "create", "patch"];
/// A store, and a live read where a decision must not come from an old view.
const READ: &[&str] = &["get", "list", "watch"];

/// A rule with its reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grant {
    pub(super) rule: PolicyRule,
    pub(super) why: &'static str,
}

fn grant(groups: &[&str], resources: &[&str], verbs: &[&str], why: &'static str) -> Grant {
    Grant { rule: rule(groups, resources, verbs), why }
}

impl Grant {
    fn only(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { rule: only(self.rule, names), ..self }
    }
}

fn rules(grants: impl IntoIterator<Item = Grant>) -> Vec<PolicyRule> {
    grants.into_iter().map(|grant| grant.rule).collect()
}

/// Of objects that have no namespace.
pub(super) fn cluster_wide(options: &Options) -> Vec<Grant> {
    let definitions =
        |verbs, why| grant(&["apiextensions.k8s.io"], &["customresourcedefinitions"], verbs, why);
    let configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let mut grants = vec![match options.namespaces {
        Namespaces::All => {
            let why =
                "The labels of every provider's CRDs say which version of a kind implements a contract.";
            definitions(WATCH, why)
        }
        Namespaces::Only(_) => {
            let why = "Which of these CRDs were installed by Hangar shows on their labels, and whether a kind of Cilium or Prometheus Operator is there.";
            let neighbours = Neighbour::ALL.map(Neighbour::definition);
            let names = custom_resources::converted(&Selection::all()).into_iter().chain(neighbours);
            definitions(WATCH, why).only(names)
        }
    }];
    let converted = custom_resources::converted(&options.controllers);
    if !converted.is_empty() {
        let why = "The leader keeps the conversion webhook's address and authority.";
        grants.push(definitions(&["get", "patch"], why).only(converted));
    }
    if options.namespaces == Namespaces::All
        && options.controllers.iter().any(|one| one == Controller::HostedControlPlane)
    {
        let why =
            "Which versions of Gateways and of their routes are served, to write routes in one of them.";
        let named = ["gateways", "tlsroutes"].map(|plural| format!("{plural}.{GATEWAYS}"));
        grants.push(definitions(&["get"], why).only(named));
        grants.extend(of_ways_in());
    }
    let why = "The leader keeps the admission webhooks' address and authority.";
    let verbs = &["get", "list", "watch", "patch"];
    let named = grant(&["admissionregistration.k8s.io"], &configurations, verbs, why).only([NAME.to_owned()]);
    grants.push(named);
    grants
}

/// Of the manager itself, in its own namespace.
pub(super) fn of_the_manager() -> Vec<Grant> {
    let leases = |verbs, why| grant(&["coordination.k8s.io"], &["leases"], verbs, why);
    let secrets = |verbs, why| grant(&[""], &["secrets"], verbs, why);
    vec![
        leases(&["create"], "The first manager creates the lease; a create cannot be limited to a name."),
        leases(&["get", "patch"], "Managers compete for the lease.").only([LEASE.to_owned()]),
        secrets(
            &["create"],
            "The first manager creates the webhook certificate; a create cannot be limited to a name.",
        ),
        secrets(
            &["list", "watch", "patch"],
            "Managers serve with the webhook certificate, the leader renews it.",
        )
        .only([CERTIFICATE_SECRET.to_owned()]),
    ]
}

/// Of whatever controller there is.
pub(super) fn of_every_controller() -> Vec<Grant> {
    vec![grant(
        &["events.k8s.io"],
        &["events"],
        &["create", "patch"],
        "What happened to an object, for people.",
    )]
}

/// Of one controller.
pub(super) fn of_controller(controller: Controller) -> Vec<Grant> {
    let mut grants = beyond_own_kinds(controller);
    // Nothing acts on the kinds of the others yet.
    if !grants.is_empty() {
        grants.splice(0..0, own_kind(controller));
    }
    grants
}

/// A controller reads and writes its kind. Templates are read by those that make something from them.
fn own_kind(controller: Controller) -> Vec<Grant> {
    let (group, plurals) = controller.kinds();
    let kinds: Vec<&str> = plurals.iter().copied().filter(|plural| !plural.ends_with("templates")).collect();
    let subresource = |name: &str, verbs: &[&str], why| {
        let names: Vec<String> = kinds.iter().map(|plural| format!("{plural}/{name}")).collect();
        grant(&[group], &names.iter().map(String::as_str).collect::<Vec<_>>(), verbs, why)
    };
    let own = match controller {
        Controller::KubeadmBootstrap => grant(&[group], &kinds, WATCH, "Its own kind."),
        Controller::MachineSet | Controller::MachineDeployment => {
            let verbs = &["list", "watch", "patch", "delete"];
            let why = "Its own kind: finalizer, annotations, what it fills in. Its Cluster becomes its owner, and some clusters let nobody change owners who may not delete (OwnerReferencesPermissionEnforcement).";
            grant(&[group], &kinds, verbs, why)
        }
        _ => {
            let verbs = &["list", "watch", "patch"];
            grant(&[group], &kinds, verbs, "Its own kind: finalizer, annotations, what it fills in.")
        }
    };
    let mut grants = vec![own, subresource("status", &["patch"], "Conditions and status.")];
    if owns_what_it_makes(controller) {
        let why = "It owns what it makes, with blockOwnerDeletion; some clusters check that (OwnerReferencesPermissionEnforcement).";
        grants.push(subresource("finalizers", &["update"], why));
    }
    grants
}

fn owns_what_it_makes(controller: Controller) -> bool {
    // What a Cluster claims may have other owners, and does not block its deletion.
    let does_not = [Controller::Cluster, Controller::OpenStackCluster, Controller::OpenStackMachine];
    !does_not.contains(&controller)
}

/// What a controller needs of kinds that are not its own; nothing where no controller runs.
fn beyond_own_kinds(controller: Controller) -> Vec<Grant> {
    let kubeconfigs = || grant(&[""], &["secrets"], READ, "Kubeconfigs, with which it connects to tenants.");
    let minted = || {
        let why = "Whether a kubeconfig is as Hangar minted it shows on the control plane.";
        grant(&[CONTROL_PLANE], &["hostedcontrolplanes"], WATCH, why)
    };
    let served = || {
        let why = "Machines wait for a control plane that serves their version.";
        grant(&[CONTROL_PLANE], &["hostedcontrolplanes"], WATCH, why)
    };
    let of_a_cluster = || {
        let why = "The Cluster that it belongs to; admission warns if there is none.";
        grant(&[CORE], &["clusters"], READ, why)
    };
    match controller {
        Controller::HostedControlPlane => of_control_planes(),
        Controller::Cluster => of_clusters(kubeconfigs(), minted()),
        Controller::Machine => vec![
            grant(
                &[CORE],
                &["machinesets", "machinedeployments"],
                WATCH,
                "Labels and timeouts of the set and the deployment that a Machine belongs to.",
            ),
            of_a_cluster(),
            grant(
                OF_MACHINES,
                &["*"],
                &["list", "watch", "patch", "delete"],
                "What a Machine refers to is claimed, followed and deleted with it; it can be of any provider.",
            ),
            kubeconfigs(),
            minted(),
        ],
        Controller::MachineSet => of_machine_sets(of_a_cluster(), served()),
        Controller::MachineDeployment => vec![
            of_a_cluster(),
            served(),
            grant(&[CORE], &["machines"], WATCH, "The Machines of its sets."),
            grant(
                &[CORE],
                &["machinesets"],
                &["get", "list", "watch", "create", "patch", "delete"],
                "One set for each revision of the template.",
            ),
        ],
        Controller::KubeadmBootstrap => vec![
            grant(
                &[CORE],
                &["clusters", "machines"],
                WATCH,
                "For whom the join data is, and whether it is time.",
            ),
            grant(
                &[""],
                &["secrets"],
                MAKE,
                "Join data; kubeconfigs, with which it connects to tenants; Secrets that files refer to.",
            ),
            minted(),
        ],
        Controller::OpenStackCluster => vec![
            grant(&[CORE], &["clusters"], WATCH, "The Cluster of the infrastructure."),
            grant(
                &[CONTROL_PLANE],
                &["*"],
                WATCH,
                "Whether a control plane needs an address from us shows on the control plane, which can be of any provider.",
            ),
            grant(&[INFRASTRUCTURE], &["openstackmachines"], WATCH, "Nothing is deleted under a server."),
            grant(&[""], &["secrets"], &["get"], "Credentials of the cloud."),
        ],
        Controller::OpenStackMachine => vec![
            grant(
                &[CORE],
                &["clusters", "machines"],
                WATCH,
                "For whom the server is, and whether it is time.",
            ),
            grant(
                &[INFRASTRUCTURE],
                &["openstackclusters"],
                WATCH,
                "Networks and security groups of the server.",
            ),
            grant(&[""], &["secrets"], &["get"], "Credentials of the cloud, and join data."),
        ],
        Controller::MachineHealthCheck | Controller::ClusterResourceSet => Vec::new(),
    }
}

fn of_clusters(kubeconfigs: Grant, minted: Grant) -> Vec<Grant> {
    vec![
        grant(
            &[CORE],
            &["machines", "machinesets", "machinedeployments"],
            &["list", "watch", "delete"],
            "The workers of a Cluster are counted, and deleted with it.",
        ),
        grant(
            OF_CLUSTERS,
            &["*"],
            &["get", "list", "watch", "patch", "delete"],
            "What a Cluster refers to is claimed, followed and deleted with it; it can be of any provider. Admission warns of references to what does not exist.",
        ),
        kubeconfigs,
        minted,
    ]
}

fn of_control_planes() -> Vec<Grant> {
    vec![
        grant(
            &[CORE],
            &["clusters"],
            READ,
            "Ranges, endpoint and deletion; whether the Cluster lives is read when somebody deletes its control plane.",
        ),
        grant(
            &[INFRASTRUCTURE],
            &["*"],
            &["list", "watch", "patch"],
            "The endpoint is written to the infrastructure object, which can be of any provider.",
        ),
        grant(
            &[""],
            &["secrets"],
            &["get", "list", "watch", "create", "patch", "delete"],
            "Keys, certificates and kubeconfigs; whether those that users mount are there, and changed.",
        ),
        grant(
            &[""],
            &["services"],
            &["get", "list", "watch", "create", "patch", "delete"],
            "How a control plane is reached.",
        ),
        grant(
            &[""],
            &["configmaps"],
            MAKE,
            "Configuration and trust bundles; whether those that users mount are there, and changed.",
        ),
        grant(
            &[""],
            &["pods"],
            &["list", "watch", "patch"],
            "What runs; an annotation on a pod makes its kubelet bring renewed certificates at once.",
        ),
        grant(
            &[""],
            &["pods/eviction"],
            &["create"],
            "Members of etcd get another version by a restart, one after the other, as far as their disruption budget allows it.",
        ),
        grant(
            &[""],
            &["persistentvolumeclaims"],
            &["list", "watch", "patch", "delete"],
            "The volumes of etcd grow when more is asked for. They are deleted with their control plane, and when their member was removed or lost its data.",
        ),
        grant(
            &["apps"],
            &["deployments", "statefulsets"],
            &["get", "list", "watch", "create", "patch", "delete"],
            "etcd, API server, controller manager and scheduler.",
        ),
        grant(
            &["policy"],
            &["poddisruptionbudgets"],
            MAKE,
            "Drains of the management cluster keep a control plane serving.",
        ),
        grant(
            &["networking.k8s.io"],
            &["networkpolicies"],
            &["get", "list", "watch", "create", "patch", "delete"],
            "Who reaches the pods of a control plane, and whom they reach. They are deleted where CiliumNetworkPolicies take their place.",
        ),
        neighbour(
            Neighbour::CiliumNetworkPolicies,
            "The same in a management cluster with Cilium. Those of a deleted control plane are garbage collected.",
            MAKE,
        ),
        neighbour(
            Neighbour::PodMonitors,
            "What a Prometheus collects, for control planes that ask for it (spec.monitoring.podMonitors).",
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
    ]
}

/// How control planes are reached, beyond their namespaces: a manager of some namespaces does without.
fn of_ways_in() -> Vec<Grant> {
    vec![
        grant(
            &[GATEWAYS],
            &["gatewayclasses", "gateways"],
            WATCH,
            "The Gateway that a control plane is reached through, in whatever namespace, and whether it works.",
        ),
        grant(
            &[GATEWAYS],
            &["tlsroutes"],
            &["get", "list", "watch", "create", "patch", "delete"],
            "Routes to a control plane at a Gateway.",
        ),
        grant(
            &[""],
            &["namespaces"],
            WATCH,
            "A Gateway may admit routes by the labels of their namespace; metadata only.",
        ),
        grant(&[""], &["nodes"], WATCH, "Addresses of control planes that are reached by node ports."),
    ]
}

fn neighbour(kind: Neighbour, why: &'static str, verbs: &[&str]) -> Grant {
    grant(&[kind.group()], &[kind.plural()], verbs, why)
}

fn of_machine_sets(cluster: Grant, served: Grant) -> Vec<Grant> {
    vec![
        cluster,
        served,
        grant(&[CORE], &["machinedeployments"], WATCH, "The deployment of a set."),
        grant(
            &[CORE],
            &["machines"],
            &["get", "list", "watch", "create", "patch", "delete"],
            "The Machines of a set.",
        ),
        grant(
            &[CORE],
            &["machines/finalizers"],
            &["update"],
            "What is cloned belongs to its Machine from the start, with blockOwnerDeletion.",
        ),
        grant(
            OF_MACHINES,
            &["*"],
            &["get", "list", "watch", "create", "patch", "delete"],
            "Bootstrap configurations and servers are made from templates of any provider, and templates get an owner; some clusters let nobody change owners who may not delete.",
        ),
    ]
}

fn of_controllers(options: &Options) -> Vec<Grant> {
    of_every_controller().into_iter().chain(options.controllers.iter().flat_map(of_controller)).collect()
}

pub(super) fn cluster_role(options: &Options) -> ClusterRole {
    let mut grants = cluster_wide(options);
    if options.namespaces == Namespaces::All {
        grants.extend(of_controllers(options));
    }
    ClusterRole { metadata: metadata(NAME, None), rules: Some(rules(grants)), ..ClusterRole::default() }
}

/// The Roles: that of the manager in its own namespace, and that of the controllers in each that is looked after.
pub(super) fn roles(options: &Options) -> Vec<Role> {
    let role = |name: &str, namespace: &str, grants: Vec<Grant>| Role {
        metadata: metadata(name, Some(namespace)),
        rules: Some(rules(grants)),
    };
    let controllers = options.namespaces.names().into_iter().flatten();
    let controllers = controllers.map(|one| role(CONTROLLERS_ROLE, one, of_controllers(options)));
    std::iter::once(role(NAME, &options.namespace, of_the_manager())).chain(controllers).collect()
}

fn subjects(options: &Options) -> Vec<Subject> {
    vec![Subject {
        kind: "ServiceAccount".to_owned(),
        name: NAME.to_owned(),
        namespace: Some(options.namespace.clone()),
        ..Subject::default()
    }]
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn cluster_role_binding(options: &Options) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: metadata(NAME, None),
        role_ref: reference("ClusterRole", NAME),
        subjects: Some(subjects(options)),
    }
}

/// A binding for each of [`roles`].
pub(super) fn role_bindings(options: &Options) -> Vec<RoleBinding> {
    let bound = |metadata: ObjectMeta| RoleBinding {
        role_ref: reference("Role", metadata.name.as_deref().unwrap_or_default()),
        subjects: Some(subjects(options)),
        metadata,
    };
    roles(options).into_iter().map(|role| bound(role.metadata)).collect()
}

/// Whether a binding of [`CONTROLLERS_ROLE`] is of an earlier installation of this manager, in a namespace that is no
/// longer looked after by a Role of its own: its rights must end.
#[must_use]
pub fn is_left_over(options: &Options, binding: &RoleBinding) -> bool {
    let is_wanted =
        |namespace: &String| options.namespaces.names().is_some_and(|names| names.contains(namespace));
    binding.metadata.name.as_deref() == Some(CONTROLLERS_ROLE)
        && binding.subjects.as_ref() == Some(&subjects(options))
        && binding.metadata.namespace.as_ref().is_some_and(|namespace| !is_wanted(namespace))
}

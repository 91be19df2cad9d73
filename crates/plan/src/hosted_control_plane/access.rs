//! Plans Hangar's own rights in a tenant: one user with one role, which allows exactly what plans do in a tenant, and one
//! for the namespace of add-ons, whose pods it reads.
//!
//! The user's certificate lives for a day. The user cannot write its own roles and bindings. So these steps are run as
//! `system:masters`, with a certificate that is made for them, lives for minutes and is stored nowhere: when a control
//! plane is new, and whenever somebody has taken the rights away.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::core::DynamicObject;

use super::epoch::Epoch;
use super::names::{ADDONS_NAMESPACE, DESIRED_ANNOTATION};
use super::observed::{ObjectIdentity, Observed, TenantFacts};
use super::rights::{cluster_role, cluster_role_binding, role, role_binding, subject_user};
use super::step::TenantStep;
use super::tenant::{Need, needed};
use super::tenant_rbac::METRICS;
use super::tenant_rights;
use crate::flow::{Read, dynamic};
use crate::inventory;
use crate::pieces::{only, rule, texts};

/// The user, its roles and their bindings.
pub(super) const USER: &str = "hangar:control-plane";

/// Roles that are bound in the tenant.
const BOUND: [&str; 10] = [
    "cluster-admin",
    METRICS,
    "kubeadm:get-nodes",
    "system:auth-delegator",
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    "system:coredns",
    "system:kubelet-api-admin",
    "system:node-bootstrapper",
    "system:node-proxier",
];
/// Roles that are written in the tenant.
const WRITTEN: [&str; 3] = [METRICS, "kubeadm:get-nodes", "system:coredns"];
/// Roles that are written and bound in namespaces of the tenant.
const NAMESPACED: [&str; 5] = [
    "konnectivity-agent",
    "kubeadm:bootstrap-signer-clusterinfo",
    "kubeadm:kubelet-config",
    "kubeadm:nodes-kubeadm-config",
    "system:konnectivity-server",
];

const RBAC: &[&str] = &["rbac.authorization.k8s.io"];

/// The roles and their bindings.
pub(super) fn objects(Epoch::One: Epoch) -> Vec<DynamicObject> {
    let objects = [
        dynamic(&cluster_role(USER, rules())),
        dynamic(&cluster_role_binding(USER, USER, subject_user(USER))),
        dynamic(&role(ADDONS_NAMESPACE, USER, addon_rules())),
        dynamic(&role_binding(ADDONS_NAMESPACE, USER, vec![subject_user(USER)])),
    ];
    objects.map(|object| inventory::marked(object, DESIRED_ANNOTATION)).into()
}

/// To see whether add-ons run, and why not, and to read what Hangar wrote by few lists.
fn addon_rules() -> Vec<PolicyRule> {
    vec![
        rule(&["apps"], &["daemonsets", "deployments"], &["list", "watch"]),
        rule(&[""], &["configmaps", "pods", "serviceaccounts"], &["list"]),
        rule(RBAC, &["rolebindings", "roles"], &["list"]),
    ]
}

fn rules() -> Vec<PolicyRule> {
    let keep = ["get", "create", "patch"];
    vec![
        rule(&[""], &["nodes"], &["list", "watch"]),
        rule(&[""], &["configmaps", "endpoints", "serviceaccounts", "services"], &keep),
        rule(&["apps"], &["daemonsets", "deployments"], &keep),
        rule(&["discovery.k8s.io"], &["endpointslices"], &keep),
        rule(RBAC, &["clusterrolebindings", "clusterroles", "rolebindings", "roles"], &keep),
        rule(RBAC, &["clusterrolebindings", "clusterroles"], &["list"]),
        // What is no longer wanted.
        rule(&[""], &["configmaps", "services"], &["delete"]),
        rule(&["apps"], &["daemonsets", "deployments"], &["delete"]),
        rule(RBAC, &["clusterrolebindings"], &["delete"]),
        // Rights that it gives and does not have.
        only(rule(RBAC, &["clusterroles"], &["bind"]), texts(&BOUND)),
        only(rule(RBAC, &["clusterroles"], &["escalate"]), texts(&WRITTEN)),
        only(rule(RBAC, &["roles"], &["bind", "escalate"]), texts(&NAMESPACED)),
    ]
}

impl TenantStep {
    /// Whether it writes Hangar's own rights, for which nobody but `system:masters` has the right.
    pub fn is_of_rights(&self) -> bool {
        matches!(self, Self::Apply { object, .. } if is_of_rights(&ObjectIdentity::of(object)))
    }
}

fn is_of_rights(object: &ObjectIdentity) -> bool {
    object.name == USER && (object.namespace.is_empty() || object.namespace == ADDONS_NAMESPACE)
}

impl TenantFacts {
    /// Whether all of these objects are there as they should be.
    pub fn has(&self, desired: &[DynamicObject]) -> bool {
        let is_there = |object: &DynamicObject| {
            matches!(needed(self, &ObjectIdentity::of(object), object), Need::Nothing)
        };
        desired.iter().all(is_there)
    }
}

impl Observed {
    /// Asks the tenant again, once rights that were missing are all written.
    pub(super) fn after_rights(&mut self, written: &ObjectIdentity) {
        let Read::One(tenant) = &self.tenant else { return };
        if tenant.lacks_rights && is_of_rights(written) && tenant.has(&tenant_rights(self)) {
            self.tenant = Read::unknown(super::NOT_ASKED);
        }
    }
}

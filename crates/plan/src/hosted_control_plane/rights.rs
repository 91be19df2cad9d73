//! Makes the ServiceAccounts, roles and bindings of the tenant for all other modules.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::object::tenant;

const GROUP: &str = "rbac.authorization.k8s.io";

/// A ServiceAccount.
pub fn account(namespace: &str, name: &str) -> ServiceAccount {
    ServiceAccount { metadata: tenant(Some(namespace), name, []), ..ServiceAccount::default() }
}

/// A role in all namespaces.
pub fn cluster_role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole { metadata: tenant(None, name, []), rules: Some(rules), ..ClusterRole::default() }
}

pub(super) fn role(namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Role {
    Role { metadata: tenant(Some(namespace), name, []), rules: Some(rules) }
}

pub fn cluster_role_binding(name: &str, role: &str, subject: Subject) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: tenant(None, name, []),
        role_ref: reference("ClusterRole", role),
        subjects: Some(vec![subject]),
    }
}

/// Binds the role of the same name.
pub(super) fn role_binding(namespace: &str, name: &str, subjects: Vec<Subject>) -> RoleBinding {
    RoleBinding {
        metadata: tenant(Some(namespace), name, []),
        role_ref: reference("Role", name),
        subjects: Some(subjects),
    }
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: GROUP.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}

/// A ServiceAccount, in a binding.
pub fn subject_account(namespace: &str, name: &str) -> Subject {
    Subject { namespace: Some(namespace.to_owned()), api_group: None, ..subject("ServiceAccount", name) }
}

/// A user that is known by certificate, in a binding.
pub fn subject_user(name: &str) -> Subject {
    subject("User", name)
}

pub(super) fn subject_group(name: &str) -> Subject {
    subject("Group", name)
}

fn subject(kind: &str, name: &str) -> Subject {
    Subject {
        api_group: Some(GROUP.to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: None,
    }
}

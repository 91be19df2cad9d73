//! Users and projects of the cloud. All of them are in the domain `Default`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The only domain.
pub(crate) const DOMAIN_ID: &str = "default";
pub(crate) const DOMAIN_NAME: &str = "Default";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    pub id: String,
    pub name: String,
}

#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub id: String,
    pub name: String,
    pub password: String,
    /// Ids of their projects; the first is the default.
    pub projects: Vec<String>,
    /// Their roles in each.
    pub roles: BTreeSet<String>,
}

impl std::fmt::Debug for User {
    /// Without the password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("User").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct ApplicationCredential {
    pub id: String,
    pub name: String,
    pub secret: String,
    /// Id of its user.
    pub user: String,
    /// Id of its project.
    pub project: String,
}

impl std::fmt::Debug for ApplicationCredential {
    /// Without the secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ApplicationCredential")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Who makes a call, as its token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Id of the user.
    pub user: String,
    /// Id of the project; empty for an unscoped token.
    pub project: String,
    /// Whether they see and may do everything.
    pub is_admin: bool,
}

//! Tokens: how they are issued, and how long they are valid.
//!
//! They are kept in the state file, as real tokens outlive a restart of Keystone. Refusals do not say whether user,
//! password or project was wrong, as Keystone's do not.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::identity::{DOMAIN_ID, DOMAIN_NAME};
use super::{Caller, Draw, Model, Refusal, User};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Id of the user.
    pub user: String,
    /// Id of the project, where it is scoped.
    pub project: Option<String>,
    /// How it was had.
    pub methods: Vec<String>,
    pub issued: Timestamp,
    pub expires: Timestamp,
    /// Names the token in logs without giving it away.
    pub audit: String,
    /// The application credential it was had with.
    pub application_credential: Option<String>,
}

/// A thing named by id, or by name within a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub id: Option<String>,
    pub name: Option<String>,
    /// Domain of the name, by id or name.
    pub domain: Option<String>,
}

impl Named {
    fn means(&self, id: &str, name: &str) -> bool {
        let domain_fits =
            self.domain.as_deref().is_none_or(|domain| domain == DOMAIN_ID || domain == DOMAIN_NAME);
        match (&self.id, &self.name) {
            (Some(wanted), _) => wanted == id,
            // A name means nothing without its domain.
            (None, Some(wanted)) => wanted == name && self.domain.is_some() && domain_fits,
            (None, None) => false,
        }
    }
}

/// Credentials of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    Password(Named, String),
    /// An application credential, by id or by name and user, and its secret.
    ApplicationCredential(Option<String>, Option<String>, Named, String),
    Token(String),
}

/// What the token shall be good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whatever fits: the user's default project.
    Default,
    Unscoped,
    Project(Named),
}

pub(crate) fn unauthorized() -> Refusal {
    Refusal::new(401, "Unauthorized", "The request you have made requires authentication.")
}

impl Model {
    /// Issues a token and returns its secret.
    pub fn issue_token(
        &mut self,
        proof: &Proof,
        scope: &Scope,
        lifetime: SignedDuration,
        draw: &mut Draw,
    ) -> Result<String, Refusal> {
        self.tokens.retain(|_, token| token.expires > draw.now);
        let mut expires = draw.now + lifetime;
        let (user, method, credential) = match proof {
            Proof::Password(named, password) => {
                let user = self.find_user(named).filter(|user| user.password == *password);
                (user.ok_or_else(unauthorized)?, "password", None)
            }
            Proof::ApplicationCredential(id, name, user, secret) => {
                let user_id = self.find_user(user).map(|user| &user.id);
                let credential = self
                    .application_credentials
                    .values()
                    .find(|credential| match (id, name) {
                        (Some(id), _) => credential.id == *id,
                        (None, Some(name)) => credential.name == *name && user_id == Some(&credential.user),
                        (None, None) => false,
                    })
                    .filter(|credential| credential.secret == *secret)
                    .ok_or_else(unauthorized)?;
                if matches!(scope, Scope::Project(_)) {
                    let words = "Error authenticating with application credential: Application credentials cannot request a scope.";
                    return Err(Refusal::new(401, "Unauthorized", words));
                }
                let user = self.users.get(&credential.user).ok_or_else(unauthorized)?;
                (user, "application_credential", Some(credential))
            }
            Proof::Token(secret) => {
                let token = self.token(secret, draw.now).ok_or_else(unauthorized)?;
                // A token that was had with a token lives no longer than that one.
                expires = expires.min(token.expires);
                (self.users.get(&token.user).ok_or_else(unauthorized)?, "token", None)
            }
        };
        let project = match (credential, scope) {
            (Some(credential), _) => Some(credential.project.clone()),
            (None, Scope::Unscoped) => None,
            (None, Scope::Default) => user.projects.first().cloned(),
            (None, Scope::Project(named)) => {
                let project = self.projects.values().find(|project| named.means(&project.id, &project.name));
                let project = project.filter(|project| user.projects.contains(&project.id));
                Some(project.ok_or_else(unauthorized)?.id.clone())
            }
        };
        let token = Token {
            user: user.id.clone(),
            project,
            methods: vec![method.into()],
            issued: draw.now,
            expires,
            audit: draw.id().simple().to_string(),
            application_credential: credential.map(|credential| credential.id.clone()),
        };
        let secret = draw.secret();
        self.tokens.insert(secret.clone(), token);
        Ok(secret)
    }

    fn find_user(&self, named: &Named) -> Option<&User> {
        self.users.values().find(|user| named.means(&user.id, &user.name))
    }

    /// A token that is still good.
    pub fn token(&self, secret: &str, now: Timestamp) -> Option<&Token> {
        self.tokens.get(secret).filter(|token| token.expires > now && self.users.contains_key(&token.user))
    }

    /// Who a token speaks for.
    pub fn caller(&self, secret: &str, now: Timestamp) -> Option<Caller> {
        let token = self.token(secret, now)?;
        let user = self.users.get(&token.user)?;
        Some(Caller {
            user: user.id.clone(),
            project: token.project.clone().unwrap_or_default(),
            is_admin: user.roles.contains("admin"),
        })
    }
}

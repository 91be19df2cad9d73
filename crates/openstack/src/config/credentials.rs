//! Ways to log in, and the body Keystone wants for each.

use std::fmt;

use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::ConfigError;

/// A domain, by whichever the file gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Id(String),
    Name(String),
}

impl Domain {
    fn body(&self) -> Value {
        match self {
            Self::Id(id) => json!({ "id": id }),
            Self::Name(name) => json!({ "name": name }),
        }
    }
}

/// A user, by whichever the file gives. Names are only unique in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Id(String),
    Name { name: String, domain: Domain },
}

impl User {
    fn body(&self) -> Value {
        match self {
            Self::Id(id) => json!({ "id": id }),
            Self::Name { name, domain } => json!({ "name": name, "domain": domain.body() }),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApplicationCredential {
    Id(String),
    Name { name: String, user: User },
}

/// How to log in.
#[derive(Clone)]
pub(crate) enum Credentials {
    Password { user: User, password: SecretString },
    ApplicationCredential { credential: ApplicationCredential, secret: SecretString },
    Token(SecretString),
}

/// As whom to act once logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Whatever the credential says; application credentials carry their project.
    Unspecified,
    ProjectId(String),
    ProjectName {
        name: String,
        domain: Domain,
    },
    Domain(Domain),
}

impl Credentials {
    pub(super) fn secret(&self) -> &SecretString {
        match self {
            Self::Password { password: secret, .. }
            | Self::ApplicationCredential { secret, .. }
            | Self::Token(secret) => secret,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, .. } => write!(formatter, "Password({user:?})"),
            Self::ApplicationCredential { credential, .. } => {
                write!(formatter, "ApplicationCredential({credential:?})")
            }
            Self::Token(_) => formatter.write_str("Token"),
        }
    }
}

/// The body of `POST /v3/auth/tokens`.
pub(super) fn login(credentials: &Credentials, scope: &Scope) -> Value {
    let identity = match credentials {
        Credentials::Password { user, password } => {
            let mut user = user.body();
            user["password"] = json!(password.expose_secret());
            json!({ "methods": ["password"], "password": { "user": user } })
        }
        Credentials::ApplicationCredential { credential, secret } => {
            let mut body = match credential {
                ApplicationCredential::Id(id) => json!({ "id": id }),
                ApplicationCredential::Name { name, user } => json!({ "name": name, "user": user.body() }),
            };
            body["secret"] = json!(secret.expose_secret());
            json!({ "methods": ["application_credential"], "application_credential": body })
        }
        Credentials::Token(token) => {
            json!({ "methods": ["token"], "token": { "id": token.expose_secret() } })
        }
    };
    let scope = match scope {
        Scope::Unspecified => return json!({ "auth": { "identity": identity } }),
        Scope::ProjectId(id) => json!({ "project": { "id": id } }),
        Scope::ProjectName { name, domain } => {
            json!({ "project": { "name": name, "domain": domain.body() } })
        }
        Scope::Domain(domain) => json!({ "domain": domain.body() }),
    };
    json!({ "auth": { "identity": identity, "scope": scope } })
}

/// At least one certificate, all of them readable.
pub(super) fn check_pem(pem: &[u8]) -> Result<(), ConfigError> {
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        certificate.map_err(|_| ConfigError::NoCertificate)?;
        count += 1;
    }
    if count == 0 { Err(ConfigError::NoCertificate) } else { Ok(()) }
}

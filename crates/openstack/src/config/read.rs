//! The format of the file, and how its keys become a configuration.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

use super::{
    CloudConfig, ConfigError, Interface,
    credentials::{ApplicationCredential, Credentials, Domain, Scope, User, check_pem},
    versioned,
};

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    clouds: BTreeMap<String, Cloud>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Cloud {
    auth: Auth,
    auth_type: Option<String>,
    region_name: Option<String>,
    regions: Vec<Region>,
    endpoint_type: Option<String>,
    interface: Option<String>,
    verify: Option<Flag>,
    cacert: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Auth {
    #[serde(rename = "auth_url")]
    url: Option<String>,
    username: Option<String>,
    user_id: Option<String>,
    password: Option<SecretString>,
    token: Option<SecretString>,
    project_name: Option<String>,
    project_id: Option<String>,
    tenant_name: Option<String>,
    tenant_id: Option<String>,
    domain_name: Option<String>,
    domain_id: Option<String>,
    user_domain_name: Option<String>,
    user_domain_id: Option<String>,
    project_domain_name: Option<String>,
    project_domain_id: Option<String>,
    default_domain: Option<String>,
    application_credential_id: Option<String>,
    application_credential_name: Option<String>,
    application_credential_secret: Option<SecretString>,
}

/// `regions` lists names, or objects with settings of their own.
#[derive(Deserialize)]
#[serde(untagged)]
enum Region {
    Name(String),
    Settings { name: String },
}

/// A boolean, or one in quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Text(String),
}

pub(super) fn cloud(clouds_yaml: &[u8], name: &str) -> Result<Cloud, ConfigError> {
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    // The error's own text quotes the file, which is full of secrets: only its place is kept.
    let mut file: File = serde_saphyr::from_slice_with_options(clouds_yaml, options).map_err(|error| {
        let (line, column) = error.location().map_or((0, 0), |location| (location.line(), location.column()));
        ConfigError::NotYaml { line, column }
    })?;
    file.clouds.remove(name).ok_or_else(|| {
        let names: Vec<_> = file.clouds.keys().map(String::as_str).filter(|name| is_name(name)).collect();
        let known = match names.as_slice() {
            [] => "none".to_owned(),
            [shown @ .., _] if shown.len() >= SHOWN_NAMES => {
                format!("{} and {} more", names[..SHOWN_NAMES].join(", "), names.len() - SHOWN_NAMES)
            }
            all => all.join(", "),
        };
        ConfigError::NoCloud { wanted: name.to_owned(), known }
    })
}

/// Of so many clouds the names are told.
const SHOWN_NAMES: usize = 10;

/// In a file whose lines are indented wrongly, anything may stand where names of clouds do.
fn is_name(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=63).contains(&key.len()) && key.bytes().all(is_plain)
}

impl Cloud {
    pub(super) fn into_config(self) -> Result<CloudConfig, ConfigError> {
        let auth_url =
            versioned(filled(self.auth.url.as_ref()).ok_or(ConfigError::Missing("auth.auth_url"))?)?;
        let (credentials, scope) = self.auth.credentials(self.auth_type.as_deref())?;
        let region = filled(self.region_name.as_ref()).or_else(|| {
            self.regions.first().map(|region| match region {
                Region::Name(name) | Region::Settings { name } => name.as_str(),
            })
        });
        let cacert = match self.cacert.as_deref() {
            Some(text) if text.trim_start().starts_with("-----BEGIN") => {
                check_pem(text.as_bytes())?;
                Some(text.as_bytes().to_vec())
            }
            _ => None,
        };
        Ok(CloudConfig {
            auth_url,
            credentials,
            scope,
            region: region.map(str::to_owned),
            interface: interface(
                filled(self.interface.as_ref()).or_else(|| filled(self.endpoint_type.as_ref())),
            )?,
            is_verified: is_verified(self.verify.as_ref())?,
            cacert,
        })
    }
}

impl Auth {
    fn credentials(&self, auth_type: Option<&str>) -> Result<(Credentials, Scope), ConfigError> {
        match auth_type.map(str::trim).unwrap_or_default() {
            "v3applicationcredential" => self.application_credential(),
            "" if self.application_credential_secret.is_some() => self.application_credential(),
            "" if self.password.is_none() && self.token.is_some() => self.token(),
            "" | "password" | "v3password" => self.password(),
            "token" | "v3token" => self.token(),
            other => Err(ConfigError::AuthType(other.to_owned())),
        }
    }

    fn password(&self) -> Result<(Credentials, Scope), ConfigError> {
        let password = self.password.clone().ok_or(ConfigError::Missing("auth.password"))?;
        let user = self.user().ok_or(ConfigError::Missing("auth.username"))?;
        Ok((Credentials::Password { user, password }, self.scope()))
    }

    fn token(&self) -> Result<(Credentials, Scope), ConfigError> {
        let token = self.token.clone().ok_or(ConfigError::Missing("auth.token"))?;
        Ok((Credentials::Token(token), self.scope()))
    }

    fn application_credential(&self) -> Result<(Credentials, Scope), ConfigError> {
        let secret = self
            .application_credential_secret
            .clone()
            .ok_or(ConfigError::Missing("auth.application_credential_secret"))?;
        let credential = match (
            filled(self.application_credential_id.as_ref()),
            filled(self.application_credential_name.as_ref()),
        ) {
            (Some(id), _) => ApplicationCredential::Id(id.to_owned()),
            (None, Some(name)) => ApplicationCredential::Name {
                name: name.to_owned(),
                user: self.user().ok_or(ConfigError::Missing("auth.username"))?,
            },
            (None, None) => return Err(ConfigError::Missing("auth.application_credential_id")),
        };
        // It carries its project: Keystone refuses any other.
        Ok((Credentials::ApplicationCredential { credential, secret }, Scope::Unspecified))
    }

    fn user(&self) -> Option<User> {
        if let Some(id) = filled(self.user_id.as_ref()) {
            return Some(User::Id(id.to_owned()));
        }
        let name = filled(self.username.as_ref())?.to_owned();
        Some(User::Name {
            name,
            domain: self.domain(self.user_domain_id.as_ref(), self.user_domain_name.as_ref()),
        })
    }

    fn scope(&self) -> Scope {
        if let Some(id) = filled(self.project_id.as_ref()).or_else(|| filled(self.tenant_id.as_ref())) {
            return Scope::ProjectId(id.to_owned());
        }
        if let Some(name) = filled(self.project_name.as_ref()).or_else(|| filled(self.tenant_name.as_ref())) {
            let domain = self.domain(self.project_domain_id.as_ref(), self.project_domain_name.as_ref());
            return Scope::ProjectName { name: name.to_owned(), domain };
        }
        match either(self.domain_id.as_ref(), self.domain_name.as_ref()) {
            Some(domain) => Scope::Domain(domain),
            None => Scope::Unspecified,
        }
    }

    /// Its own keys, else the common ones, else the default that every Keystone is born with.
    fn domain(&self, id: Option<&String>, name: Option<&String>) -> Domain {
        either(id, name)
            .or_else(|| either(self.domain_id.as_ref(), self.domain_name.as_ref()))
            .or_else(|| filled(self.default_domain.as_ref()).map(|id| Domain::Id(id.to_owned())))
            .unwrap_or_else(|| Domain::Id("default".to_owned()))
    }
}

fn either(id: Option<&String>, name: Option<&String>) -> Option<Domain> {
    filled(id)
        .map(|id| Domain::Id(id.to_owned()))
        .or_else(|| filled(name).map(|name| Domain::Name(name.to_owned())))
}

/// A key that is there and not empty: templates leave empty strings behind.
fn filled(value: Option<&String>) -> Option<&str> {
    value.map(|text| text.trim()).filter(|text| !text.is_empty())
}

fn interface(text: Option<&str>) -> Result<Interface, ConfigError> {
    match text.map(|text| text.strip_suffix("URL").unwrap_or(text)) {
        None | Some("public") => Ok(Interface::Public),
        Some("internal") => Ok(Interface::Internal),
        Some("admin") => Ok(Interface::Admin),
        Some(_) => Err(ConfigError::Invalid { key: "interface", why: "public, internal or admin is needed" }),
    }
}

fn is_verified(flag: Option<&Flag>) -> Result<bool, ConfigError> {
    match flag {
        None => Ok(true),
        Some(Flag::Bool(value)) => Ok(*value),
        Some(Flag::Text(text)) => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(ConfigError::Invalid { key: "verify", why: "true or false is needed" }),
        },
    }
}

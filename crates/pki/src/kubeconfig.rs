//! Renders kubeconfigs.
//!
//! Each has one cluster, one user and one context; a component or a user needs no more here. The text is YAML for users
//! and JSON for programs (JSON is YAML, so every Kubernetes program takes either).

mod read;

use base64::Engine;
use serde::Serialize;

use crate::{Error, KeyPairPem, SecretText};

/// A kubeconfig with one cluster and one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    /// Name of the cluster entry.
    pub cluster: String,
    /// Name of the user entry; the context is called `user@cluster`.
    pub user: String,
    /// URL of the API server.
    pub server: String,
    /// How the server's certificate is checked.
    pub trust: Trust,
    /// The name to expect in the server's certificate, where it differs from the URL's host.
    pub tls_server_name: Option<String>,
    /// How the user authenticates.
    pub credentials: Credentials,
    /// Namespace of the context.
    pub namespace: Option<String>,
}

/// Where the authorities for the server's certificate come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The machine's own authorities.
    System,
    Embedded(String),
    /// Path of a PEM bundle.
    File(String),
}

/// How the user authenticates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Not at all, as in `cluster-info`.
    Anonymous,
    /// Client certificate and key, embedded.
    Certificate(KeyPairPem),
    /// Paths of a client certificate and its key, which the client rereads when they change.
    CertificateFiles {
        /// Path of the certificate.
        certificate: String,
        /// Path of the key.
        key: String,
    },
    Token(SecretText),
    /// Path of a bearer token, which the client rereads when it changes.
    TokenFile(String),
}

impl Kubeconfig {
    /// Reads what others wrote: the current context's server, whom to trust and how to authenticate, all of it data in
    /// the text. A field that would open a file, start a program or lead elsewhere is an error that names it.
    pub fn read(text: &str) -> Result<Self, Error> {
        read::read(text)
    }

    /// The kubeconfig as YAML. The text holds the credentials.
    pub fn to_yaml(&self) -> Result<String, Error> {
        serde_saphyr::to_string(&self.document()).map_err(|error| Error::Rendering(error.to_string()))
    }

    /// The kubeconfig as JSON. The text holds the credentials.
    pub fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(&self.document()).map_err(|error| Error::Rendering(error.to_string()))
    }

    fn document(&self) -> Document {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let mut cluster = Cluster {
            server: self.server.clone(),
            tls_server_name: self.tls_server_name.clone(),
            ..Cluster::default()
        };
        match &self.trust {
            Trust::System => {}
            Trust::Embedded(pem) => cluster.certificate_authority_data = Some(encode(pem)),
            Trust::File(path) => cluster.certificate_authority = Some(path.clone()),
        }
        let mut user = User::default();
        match &self.credentials {
            Credentials::Anonymous => {}
            Credentials::Certificate(pair) => {
                user.client_certificate_data = Some(encode(&pair.certificate));
                user.client_key_data = Some(encode(pair.key.expose()));
            }
            Credentials::CertificateFiles { certificate, key } => {
                user.client_certificate = Some(certificate.clone());
                user.client_key = Some(key.clone());
            }
            Credentials::Token(token) => user.token = Some(token.expose().to_owned()),
            Credentials::TokenFile(path) => user.token_file = Some(path.clone()),
        }
        let context = format!("{}@{}", self.user, self.cluster);
        Document {
            api_version: "v1",
            kind: "Config",
            clusters: [NamedCluster { name: self.cluster.clone(), cluster }],
            users: [NamedUser { name: self.user.clone(), user }],
            contexts: [NamedContext {
                name: context.clone(),
                context: Context {
                    cluster: self.cluster.clone(),
                    user: self.user.clone(),
                    namespace: self.namespace.clone(),
                },
            }],
            current_context: context,
        }
    }
}

#[derive(Serialize)]
struct Document {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    clusters: [NamedCluster; 1],
    users: [NamedUser; 1],
    contexts: [NamedContext; 1],
    #[serde(rename = "current-context")]
    current_context: String,
}

#[derive(Serialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
}

#[derive(Serialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    // The one key that is not in kebab case.
    #[serde(rename = "tokenFile", skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
}

#[derive(Serialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Serialize)]
struct Context {
    cluster: String,
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

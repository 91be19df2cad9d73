//! Makes a connection from a kubeconfig. Nothing is taken from the environment, where kube would look for a proxy.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_pki::{Credentials, Kubeconfig, Trust};
use kube::Config;
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// How to connect to the server of a kubeconfig whose data are all in it.
pub fn connection(kubeconfig: &Kubeconfig) -> Result<Config> {
    let malformed = |problem: &str| Error::Malformed {
        what: format!("the kubeconfig of {}", kubeconfig.cluster),
        problem: problem.to_owned(),
    };
    let server = kubeconfig.server.parse().map_err(|_| malformed("its server is no address"))?;
    let mut config = Config::new(server);
    config.tls_server_name.clone_from(&kubeconfig.tls_server_name);
    config.root_cert = match &kubeconfig.trust {
        Trust::System => None,
        Trust::Embedded(pem) => {
            let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
            let certificates: Result<Vec<_>, _> =
                certificates.map(|one| one.map(|der| der.as_ref().to_vec())).collect();
            Some(certificates.map_err(|_| malformed("its authorities are not in PEM"))?)
        }
        Trust::File(_) => return Err(malformed("its authorities are in a file")),
    };
    let user = match &kubeconfig.credentials {
        Credentials::Anonymous => Value::Null,
        Credentials::Certificate(pair) => json!({
            "client-certificate-data": STANDARD.encode(&pair.certificate),
            "client-key-data": STANDARD.encode(pair.key.expose()),
        }),
        Credentials::Token(token) => json!({"token": token.expose()}),
        Credentials::CertificateFiles { .. } | Credentials::TokenFile(_) => {
            return Err(malformed("its credentials are in files"));
        }
    };
    if !user.is_null() {
        let user = serde_json::from_value::<AuthInfo>(user);
        config.auth_info = user.map_err(|_| malformed("its credentials cannot be used"))?;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use hangar_pki::SecretText;

    use super::*;

    #[test]
    fn a_connection_has_what_the_kubeconfig_has_and_nothing_of_ours() {
        let kubeconfig = Kubeconfig {
            cluster: "demo".to_owned(),
            user: "admin".to_owned(),
            server: "https://192.0.2.1:6443/path".to_owned(),
            trust: Trust::System,
            tls_server_name: Some("api.example.com".to_owned()),
            credentials: Credentials::Token(SecretText::new("abc")),
            namespace: None,
        };
        let config = connection(&kubeconfig).unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://192.0.2.1:6443/path");
        assert_eq!(config.tls_server_name.as_deref(), Some("api.example.com"));
        assert!(
            config.proxy_url.is_none() && !config.accept_invalid_certs && config.root_cert_file.is_none()
        );
        assert!(config.auth_info.token.is_some() && config.auth_info.token_file.is_none());
        for credentials in [
            Credentials::TokenFile("/token".to_owned()),
            Credentials::CertificateFiles { certificate: "/c".to_owned(), key: "/k".to_owned() },
        ] {
            assert!(connection(&Kubeconfig { credentials, ..kubeconfig.clone() }).is_err());
        }
    }
}

//! The address at which API servers reach the webhooks.

use std::net::IpAddr;

use base64::Engine;
use hangar_pki::{Intent, Usage};
use http::Uri;
use serde_json::{Value, json};

use super::Error;

/// The address at which API servers reach the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookTarget {
    /// A Service in the cluster.
    Service {
        /// Name of the Service.
        name: String,
        namespace: String,
        port: u16,
    },
    /// An address that the API server can reach, such as `https://192.0.2.1:9443`; handlers' paths are appended.
    Url(String),
}

impl WebhookTarget {
    /// What the server's certificate must be.
    pub(super) fn intent(&self, lifetime: std::time::Duration) -> Result<Intent, Error> {
        let intent = Intent::new("hangar-webhook", Usage::Server, lifetime);
        match self {
            // API servers ask for the second; the others are for people who try it by hand.
            Self::Service { name, namespace, .. } => Ok(intent.dns_names([
                format!("{name}.{namespace}"),
                format!("{name}.{namespace}.svc"),
                format!("{name}.{namespace}.svc.cluster.local"),
            ])),
            Self::Url(base) => {
                let refuse = || Error::Target(base.clone());
                let uri: Uri = base.parse().map_err(|_| refuse())?;
                let host = uri.host().ok_or_else(refuse)?;
                if uri.scheme_str() != Some("https") || uri.query().is_some() {
                    return Err(refuse());
                }
                Ok(match host.trim_matches(['[', ']']).parse::<IpAddr>() {
                    Ok(address) => intent.ip_addresses([address]),
                    Err(_) => intent.dns_names([host]),
                })
            }
        }
    }

    /// A complete `clientConfig` for `path`: nothing of another target is left in it.
    pub(super) fn client_config(&self, path: &str, bundle: &str) -> Value {
        let bundle = base64::engine::general_purpose::STANDARD.encode(bundle);
        match self {
            Self::Service { name, namespace, port } => json!({
                "caBundle": bundle,
                "service": { "name": name, "namespace": namespace, "port": port, "path": path },
            }),
            Self::Url(base) => json!({
                "caBundle": bundle,
                "url": format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/')),
            }),
        }
    }

    /// The handler's path in an existing `clientConfig`, whichever target it names: the last segment, after a token or
    /// the path of a base.
    pub(super) fn handler_of(client_config: &Value) -> Option<String> {
        let last = |path: &str| path.rsplit('/').next().map(|segment| format!("/{segment}"));
        if let Some(path) = client_config.pointer("/service/path").and_then(Value::as_str) {
            return last(path);
        }
        let uri: Uri = client_config.get("url")?.as_str()?.parse().ok()?;
        last(uri.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: std::time::Duration = std::time::Duration::from_hours(24);

    #[test]
    fn certificates_name_what_the_api_server_dials() {
        let service = WebhookTarget::Service { name: "hooks".into(), namespace: "system".into(), port: 443 };
        assert!(service.intent(DAY).expect("an intent").dns_names.contains(&"hooks.system.svc".to_owned()));
        let address = |url: &str| WebhookTarget::Url(url.into()).intent(DAY);
        let loopback = address("https://127.0.0.1:9443").expect("an intent");
        assert_eq!(loopback.ip_addresses, ["127.0.0.1".parse::<IpAddr>().expect("an address")]);
        assert!(loopback.dns_names.is_empty());
        let six = address("https://[fd00::1]:9443").expect("an intent");
        assert_eq!(six.ip_addresses, ["fd00::1".parse::<IpAddr>().expect("an address")]);
        assert_eq!(address("https://hooks.test/base").expect("an intent").dns_names, ["hooks.test"]);
        for wrong in ["http://hooks.test", "hooks.test", "", "https://hooks.test/?a"] {
            assert!(matches!(address(wrong), Err(Error::Target(_))), "{wrong}");
        }
    }

    #[test]
    fn a_path_survives_the_change_of_target() {
        let service = WebhookTarget::Service { name: "hooks".into(), namespace: "system".into(), port: 443 };
        let url = WebhookTarget::Url("https://127.0.0.1:9443".into());
        let from_service = url.client_config("/convert", "x");
        assert_eq!(from_service["url"], "https://127.0.0.1:9443/convert");
        assert_eq!(WebhookTarget::handler_of(&from_service).as_deref(), Some("/convert"));
        let back = service.client_config("/0123456789abcdef/convert", "x");
        assert_eq!(WebhookTarget::handler_of(&back).as_deref(), Some("/convert"));
        assert!(back.get("url").is_none());
        assert_eq!(WebhookTarget::handler_of(&json!({"service": {"name": "a"}})), None);
    }
}

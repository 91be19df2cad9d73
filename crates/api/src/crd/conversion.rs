//! Writes the address of the conversion webhook into a CRD.
//!
//! The address is known only at installation: a Service when the manager runs in the cluster, a URL when it runs beside
//! it (tests, one host, interop). Generated CRDs carry a placeholder without a CA: the API server accepts it, and any
//! conversion fails with an error that names the placeholder until [`with_conversion`] has filled it in.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};

/// Path under which the manager serves `ConversionReview`.
pub const CONVERSION_PATH: &str = "/convert";
/// Namespace and Service name in generated CRDs; the installer's defaults are the same.
pub const PLACEHOLDER_NAMESPACE: &str = "hangar-system";
/// See [`PLACEHOLDER_NAMESPACE`].
pub const PLACEHOLDER_SERVICE: &str = "hangar-webhook";

/// Where the webhook is. Whom to trust there is written by the manager, which issues its own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversionTarget {
    /// A Service of the cluster that stores the CRDs.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// Port of the Service.
        port: u16,
    },
    /// Any HTTPS address that the API server reaches, without the path.
    Url {
        /// Such as `https://100.72.0.1:9443`.
        base: String,
    },
}

/// The CRD with its conversion webhook at `target`; unchanged when it has one version only.
#[must_use]
pub fn with_conversion(
    mut definition: CustomResourceDefinition,
    target: &ConversionTarget,
) -> CustomResourceDefinition {
    if super::is_converted(&definition) {
        definition.spec.conversion = Some(webhook(client_config(target)));
    }
    definition
}

/// The form that is generated and checked in.
pub(super) fn with_placeholder(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    definition.spec.conversion = super::is_converted(&definition).then(|| {
        webhook(WebhookClientConfig {
            service: Some(service(PLACEHOLDER_NAMESPACE, PLACEHOLDER_SERVICE, None)),
            ..WebhookClientConfig::default()
        })
    });
    definition
}

fn client_config(target: &ConversionTarget) -> WebhookClientConfig {
    match target {
        ConversionTarget::Service { namespace, name, port } => WebhookClientConfig {
            ca_bundle: None,
            service: Some(service(namespace, name, Some(i32::from(*port)))),
            url: None,
        },
        ConversionTarget::Url { base } => WebhookClientConfig {
            ca_bundle: None,
            service: None,
            url: Some(format!("{}{CONVERSION_PATH}", base.trim_end_matches('/'))),
        },
    }
}

fn service(namespace: &str, name: &str, port: Option<i32>) -> ServiceReference {
    ServiceReference {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        path: Some(CONVERSION_PATH.to_owned()),
        port,
    }
}

fn webhook(client_config: WebhookClientConfig) -> CustomResourceConversion {
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(client_config),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

//! The webhook server of a manager, and the certificate that it serves with.

use std::net::SocketAddr;

use hangar_api::conversion::{self, VersionLookup};
use hangar_api::crd::CONVERSION_PATH;
use hangar_kit::call::ServerClock;
use hangar_kit::metrics::{Metrics, WebhookMetrics};
use hangar_kit::settings::WebhookCertificateSource;
use hangar_kit::webhook::{
    CertificateDirectory, CertificateSlot, IssuedCertificate, WebhookServer, Webhooks,
};
use hangar_plan::admission::Lookup;
use hangar_plan::controllers::Selection;
use hangar_plan::install::{self, MUTATING_PATH, VALIDATING_PATH};
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::contracts::Contracts;
use crate::{Error, admission};

/// Everything that is answered, and what it is answered from.
pub fn handlers(
    metrics: WebhookMetrics,
    versions: impl VersionLookup + Send + Sync + 'static,
    others: impl Lookup + Send + Sync + 'static,
) -> Webhooks {
    Webhooks::new(metrics)
        .admission(MUTATING_PATH, admission::mutate)
        .admission(VALIDATING_PATH, move |review| admission::validate(review, &others))
        .conversion(CONVERSION_PATH, move |object, version| {
            conversion::convert(object, version, &versions).map_err(|error| error.to_string())
        })
}

/// The running server.
pub(super) struct Serving {
    server: WebhookServer,
    slot: CertificateSlot,
    issued: Option<IssuedCertificate>,
    follower: JoinHandle<()>,
}

impl Serving {
    /// Binds the port and starts to look after the certificate; requests are answered once there is one.
    pub(super) fn start(
        client: &Client,
        options: &Options,
        metrics: &Metrics,
        contracts: Contracts,
        clock: &ServerClock,
        others: admission::Others,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let handlers = handlers(metrics.webhook.clone(), contracts, others);
        let slot = CertificateSlot::new();
        let server = WebhookServer::start(options.settings.webhook_address, handlers, &slot, stop.clone())?;
        let (issued, follower) = match &options.settings.webhook_certificate {
            WebhookCertificateSource::Issued => {
                let namespace = options.settings.controller_namespace.clone();
                let issued = IssuedCertificate::new(client.clone(), namespace, options.target.clone())?
                    // Those that were installed carry our label, whichever controllers run in this manager.
                    .with_objects(install::NAME, install::converted(&Selection::all()))
                    .with_conversion_path(CONVERSION_PATH)
                    .with_server_clock(clock.clone())
                    .with_metrics(metrics.certificates.clone());
                let (follower, slot, stop) = (issued.clone(), slot.clone(), stop.clone());
                (Some(issued), tokio::spawn(async move { follower.follow(&slot, &stop).await }))
            }
            WebhookCertificateSource::Directory(path) => {
                let directory = CertificateDirectory::new(path);
                let (slot, metrics, stop) = (slot.clone(), metrics.certificates.clone(), stop.clone());
                let follow = async move {
                    if let Err(error) = directory.follow(&slot, &metrics, &stop).await {
                        let error: &(dyn std::error::Error + 'static) = &error;
                        tracing::error!(error, "webhooks are not served");
                    }
                };
                (None, tokio::spawn(follow))
            }
        };
        Ok(Self { server, slot, issued, follower })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Where the certificate is.
    pub(super) fn slot(&self) -> &CertificateSlot {
        &self.slot
    }

    /// The certificate in our own care, if it is: then the leader renews and injects it.
    pub(super) fn issued(&self) -> Option<&IssuedCertificate> {
        self.issued.as_ref()
    }

    /// Returns when the last request is answered. Cancel the token given at the start first.
    pub(super) async fn stopped(self) {
        let _ = self.follower.await;
        if let Err(error) = self.server.stopped().await {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(error, "the webhook server");
        }
    }
}

#[cfg(test)]
mod tests {
    use hangar_api::conversion::NoVersions;
    use hangar_plan::flow::Read;
    use hangar_plan::limits::Limits;
    use serde_json::Value;

    use super::*;

    struct Nothing(Limits);

    impl Lookup for Nothing {
        fn seen(&self, _: &str, _: &str, _: &str, _: &str) -> Read<Value> {
            Read::Absent
        }

        fn now(&self, _: &str, _: &str, _: &str, _: &str) -> Read<Value> {
            Read::Absent
        }

        fn manager(&self) -> Option<String> {
            None
        }

        fn limits(&self) -> &Limits {
            &self.0
        }
    }

    /// A Cluster with a variable of that depth, written as text: what is deep must not be made by recursion here.
    fn cluster(version: &str, levels: usize) -> String {
        let value = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let class = if version == "v1beta1" { r#""class":"c""# } else { r#""classRef":{"name":"c"}"# };
        format!(
            r#"{{"apiVersion":"cluster.x-k8s.io/{version}","kind":"Cluster","metadata":{{"name":"deep","namespace":"a"}},"spec":{{"topology":{{{class},"version":"v1.34.0","variables":[{{"name":"v","value":{value}}}]}}}}}}"#
        )
    }

    fn conversion(object: &str) -> String {
        format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"cluster.x-k8s.io/v1beta1","objects":[{object},{}]}}}}"#,
            cluster("v1beta2", 1)
        )
    }

    fn admission(operation: &str, object: &str, old: &str) -> String {
        let kind = r#"{"group":"cluster.x-k8s.io","version":"v1beta2","kind":"Cluster"}"#;
        let resource = r#"{"group":"cluster.x-k8s.io","version":"v1beta2","resource":"clusters"}"#;
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{kind},"resource":{resource},"name":"deep","namespace":"a","operation":"{operation}","userInfo":{{}},"object":{object},"oldObject":{old},"dryRun":false}}}}"#
        )
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn reviews_of_any_depth_are_answered() {
        let webhooks = handlers(Metrics::default().webhook.clone(), NoVersions, Nothing(Limits::default()));
        let ask = async |path: &str, body: String| {
            let (status, answer) = webhooks.answer(path, body.into_bytes()).await;
            (status, String::from_utf8(answer).unwrap())
        };
        // The most that an API server reads, of which the value has all but the levels around it.
        let deep = cluster("v1beta2", 9_990);
        let (status, converted) = ask(CONVERSION_PATH, conversion(&deep)).await;
        assert_eq!(status, 200);
        assert!(converted.contains(r#""status":"Success""#) && converted.contains(&"[".repeat(9_990)));
        assert_eq!(converted.matches(r#""class":"c""#).count(), 2, "the other object is converted too");

        for path in [MUTATING_PATH, VALIDATING_PATH] {
            let (status, answer) = ask(path, admission("UPDATE", &cluster("v1beta2", 1), &deep)).await;
            assert_eq!(status, 200, "{answer}");
            assert!(answer.contains(r#""allowed":true"#), "it can be mended: {answer}");
        }
        let (status, answer) = ask(VALIDATING_PATH, admission("UPDATE", &deep, &deep)).await;
        assert_eq!(status, 200);
        assert!(
            answer.contains("spec.topology.variables[0].value[0]: Forbidden: nested more than"),
            "{answer}"
        );

        // All that fits into three MiB.
        for body in [conversion(&cluster("v1beta2", 1_500_000)), "[".repeat(3 << 20)] {
            for path in [CONVERSION_PATH, MUTATING_PATH, VALIDATING_PATH] {
                let (status, answer) = ask(path, body.clone()).await;
                assert_eq!(status, 400, "{path}");
                assert!(answer.contains("levels deep: no API server sends more than 10000"), "{answer}");
            }
        }
    }
}

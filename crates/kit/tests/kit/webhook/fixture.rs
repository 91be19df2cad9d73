//! A webhook server with its certificate, and a CRD of two versions that uses it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use hangar_kit::metrics::Metrics;
use hangar_kit::webhook::{
    CERTIFICATE_SECRET, CertificateSlot, IssuedCertificate, RenewalPolicy, Verdict, WEBHOOK_LABEL,
    WebhookServer, WebhookTarget, Webhooks,
};
use hangar_pki::Certificate;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::admission::AdmissionRequest;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Nothing here takes this long; it only keeps a broken test from hanging.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

/// Asks until the answer is some.
pub(super) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(tokio::time::Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) struct Fixture {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) metrics: Metrics,
    pub(super) address: SocketAddr,
    pub(super) issued: IssuedCertificate,
    /// Requests the admission handler saw: operation and whether it was a dry run.
    pub(super) admitted: Arc<Mutex<Vec<(String, bool)>>>,
    /// Seconds between the machine's clock and the certificates'.
    offset: Arc<AtomicI64>,
    stop: CancellationToken,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Fixture {
    /// With certificates that were made `age` days ago.
    pub(super) async fn start(name: &str, policy: RenewalPolicy, age_days: i64) -> Self {
        let bed = hangar_testbed::shared();
        let (client, namespace) = (bed.client(), bed.namespace(name));
        let (metrics, stop) = (Metrics::new(), CancellationToken::new());
        let (slot, admitted) = (CertificateSlot::new(), Arc::default());
        let webhooks = Webhooks::new(metrics.webhook.clone())
            .conversion("/convert", convert)
            .admission("/mutate", mutate)
            .admission("/validate", validate(&admitted));
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = WebhookServer::start(loopback, webhooks, &slot, stop.clone()).expect("listening");
        let address = server.address();

        let offset = Arc::new(AtomicI64::new(-age_days * 24 * 60 * 60));
        let clock = {
            let offset = offset.clone();
            move || Timestamp::now() + jiff::SignedDuration::from_secs(offset.load(Ordering::SeqCst))
        };
        let issued = IssuedCertificate::new(
            client.clone(),
            &namespace,
            WebhookTarget::Url(format!("https://{address}")),
        )
        .expect("a target")
        .with_policy(policy)
        .with_clock(clock)
        .with_objects(&namespace, [format!("widgets.{namespace}.test")])
        .with_metrics(metrics.certificates.clone());
        tokio::spawn({
            let (issued, slot, stop) = (issued.clone(), slot.clone(), stop.clone());
            async move { issued.follow(&slot, &stop).await }
        });
        tokio::time::timeout(PATIENCE, slot.filled()).await.expect("a certificate");
        Self { client, namespace, metrics, address, issued, admitted, offset, stop }
    }

    /// Does the leader's part from now on.
    pub(super) fn lead(&self) {
        let (issued, stop) = (self.issued.clone(), self.stop.clone());
        tokio::spawn(async move { issued.keep(&stop).await });
    }

    /// Sets the certificates' clock to the machine's, that many days later.
    pub(super) async fn set_clock(&self, days: i64) {
        self.offset.store(days * 24 * 60 * 60, Ordering::SeqCst);
        // Somebody touches the Secret, which makes the leader look at it.
        let touch = json!({ "metadata": { "annotations": { "touched": days.to_string() } } });
        self.patch_secret(touch).await;
    }

    pub(super) async fn patch_secret(&self, patch: Value) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        secrets
            .patch(CERTIFICATE_SECRET, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }

    /// The Secret's text under a key.
    pub(super) async fn secret(&self, key: &str) -> String {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let secret = secrets.get(CERTIFICATE_SECRET).await.expect("the certificate");
        String::from_utf8(secret.data.expect("data")[key].0.clone()).expect("text")
    }

    /// Authorities that are trusted now.
    pub(super) async fn authorities(&self) -> Vec<Certificate> {
        Certificate::parse_bundle(&self.secret("ca.crt").await).expect("a bundle")
    }

    pub(super) async fn bundle(&self) -> String {
        base64::engine::general_purpose::STANDARD.encode(self.secret("ca.crt").await)
    }

    /// The path that API servers are told to call for a handler.
    pub(super) async fn path(&self, handler: &str) -> String {
        let tokens = self.secret("path-tokens").await;
        format!("/{}/{handler}", tokens.lines().next().expect("a token"))
    }

    pub(super) fn group(&self) -> String {
        format!("{}.test", self.namespace)
    }

    pub(super) fn definitions(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }

    pub(super) fn definition_name(&self) -> String {
        format!("widgets.{}", self.group())
    }

    /// The CRD as it would be installed, without an address or an authority.
    pub(super) async fn install_definition(&self) {
        let version = |name: &str, storage: bool| {
            json!({
                "name": name, "served": true, "storage": storage,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            })
        };
        let definition = serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": self.definition_name(), "labels": { WEBHOOK_LABEL: self.namespace },
            },
            "spec": {
                "group": self.group(), "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
                "versions": [version("v1", false), version("v2", true)],
                "conversion": { "strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": { "service": { "name": "hangar", "namespace": "elsewhere", "path": "/convert" } },
                } },
            },
        }))
        .expect("a definition");
        self.definitions().create(&PostParams::default(), &definition).await.expect("created");
    }

    pub(super) fn widgets(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(&self.group(), version, "Widget");
        Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::from_gvk(&kind))
    }

    pub(super) fn widget(&self, name: &str, version: &str, spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": format!("{}/{version}", self.group()), "kind": "Widget",
            "metadata": { "name": name }, "spec": spec,
        }))
        .expect("a widget")
    }

    /// Waits until the API server converts, which it does some time after it was told where to.
    pub(super) async fn converting(&self) {
        let probe = self.widget("probe", "v1", &json!({ "size": "1" }));
        eventually("a conversion", async || {
            match self.widgets("v1").create(&PostParams::default(), &probe).await {
                Ok(_) => Some(()),
                Err(kube::Error::Api(status)) if status.code == 409 => Some(()),
                Err(_) => None,
            }
        })
        .await;
    }
}

/// `v1` says `size: "3"`, `v2` says `amount: 3`.
fn convert(mut object: Value, wanted: &str) -> Result<Value, String> {
    match object["metadata"]["name"].as_str() {
        Some("poison") => return Err("the poison widget has no other version".to_owned()),
        Some("bomb") => panic!("the bomb widget went off"),
        _ => {}
    }
    object["apiVersion"] = json!(wanted);
    let spec = object["spec"].clone();
    if wanted.ends_with("/v2") && spec.get("size").is_some() {
        let size = spec["size"].as_str().and_then(|size| size.parse::<i64>().ok()).ok_or("no number")?;
        object["spec"] = json!({ "amount": size });
    } else if wanted.ends_with("/v1") && spec.get("amount").is_some() {
        object["spec"] = json!({ "size": spec["amount"].to_string() });
    }
    Ok(object)
}

/// Gives widgets a colour.
fn mutate(request: &AdmissionRequest<DynamicObject>) -> Verdict {
    let Some(object) = &request.object else {
        return Verdict::allow();
    };
    let before = serde_json::to_value(object).expect("a value");
    let mut after = before.clone();
    if after["spec"].get("colour").is_none() {
        after["spec"]["colour"] = json!("grey");
    }
    Verdict::change(&before, &after)
}

/// Refuses red widgets, warns of blue ones, and goes off at black ones.
fn validate(
    admitted: &Arc<Mutex<Vec<(String, bool)>>>,
) -> impl Fn(&AdmissionRequest<DynamicObject>) -> Verdict + Send + Sync + 'static {
    let admitted = admitted.clone();
    move |request| {
        admitted.lock().expect("a lock").push((format!("{:?}", request.operation), request.dry_run));
        let colour = request.object.as_ref().map(|object| object.data["spec"]["colour"].clone());
        match colour.as_ref().and_then(Value::as_str) {
            Some("red") => Verdict::deny("spec.colour: red is not a colour for widgets"),
            Some("blue") => Verdict::allow().warn("spec.colour: blue fades"),
            Some("black") => panic!("the black widget went off"),
            _ => Verdict::allow(),
        }
    }
}

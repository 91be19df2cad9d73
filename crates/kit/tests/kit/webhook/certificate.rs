//! The certificate we issue: agreement of replicas, change of authority under load, repair.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hangar_kit::webhook::{CertificateSlot, IssuedCertificate, RenewalPolicy, WebhookTarget};
use hangar_pki::{Authority, Certificate, Intent};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::directory::served;
use super::fixture::{Fixture, PATIENCE, eventually};

const DAY: Duration = Duration::from_hours(24);

const TRUST_PROPAGATION: Duration = Duration::from_secs(5);

/// The authority is due after 67 days of its 100, the serving certificate after 60 of its 90.
fn short_policy() -> RenewalPolicy {
    RenewalPolicy {
        authority_lifetime: 100 * DAY,
        serving_lifetime: 90 * DAY,
        trust_propagation: TRUST_PROPAGATION,
    }
}

async fn injected_bundle(fixture: &Fixture) -> Option<Value> {
    let definition = fixture.definitions().get(&fixture.definition_name()).await.ok()?;
    let value = serde_json::to_value(definition).ok()?;
    value.pointer("/spec/conversion/webhook/clientConfig/caBundle").cloned()
}

/// What an API server that starts now would trust.
async fn injected_authorities(fixture: &Fixture) -> String {
    let encoded = injected_bundle(fixture).await.expect("a bundle");
    let encoded = encoded.as_str().expect("text");
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).expect("base64");
    String::from_utf8(bytes).expect("text")
}

/// Shakes hands as API servers would that have just started, with trust of every allowed age; returns how often.
///
/// API servers keep connections, so the load alone would not notice an untrusted certificate. And they learn of a new
/// authority late: whoever knows only what was written up to [`TRUST_PROPAGATION`] ago must be served too. So samples of
/// what is written are kept that long, and the oldest and the newest are tried in turn.
async fn handshakes(fixture: Arc<Fixture>, stop: CancellationToken) -> usize {
    let mut samples = VecDeque::new();
    let mut count = 0;
    while !stop.is_cancelled() {
        // Before it is read, so that the sample is never younger than it says.
        let asked = tokio::time::Instant::now();
        samples.push_back((asked, injected_authorities(&fixture).await));
        while samples.front().is_some_and(|(asked, _)| asked.elapsed() >= TRUST_PROPAGATION * 4 / 5) {
            samples.pop_front();
        }
        for (asked, trusted) in samples.front().into_iter().chain(samples.back()) {
            match served(fixture.address, trusted).await {
                Ok(_) => count += 1,
                // A shake that took so long that its trust is older than allowed says nothing.
                Err(error) => assert!(asked.elapsed() >= TRUST_PROPAGATION, "{error}"),
            }
        }
    }
    count
}

async fn injected(fixture: &Fixture) {
    eventually("the injection", async || {
        (injected_bundle(fixture).await? == json!(fixture.bundle().await)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_together_agree_on_one_certificate() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("replicas"));
    let stop = CancellationToken::new();
    let slots: Vec<_> = (0..4)
        .map(|_| {
            let target = WebhookTarget::Url("https://127.0.0.1:9443".into());
            let issued = IssuedCertificate::new(client.clone(), &namespace, target).expect("a target");
            let (slot, stop) = (CertificateSlot::new(), stop.clone());
            let filled = slot.clone();
            tokio::spawn(async move { issued.follow(&slot, &stop).await });
            filled
        })
        .collect();
    for slot in &slots {
        tokio::time::timeout(PATIENCE, slot.filled()).await.expect("a certificate");
    }
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let secrets = secrets.list(&ListParams::default()).await.expect("a list");
    assert_eq!(secrets.items.len(), 1);
    assert_eq!(secrets.items[0].name_any(), "hangar-webhook-certificate");
    assert_eq!(secrets.items[0].type_.as_deref(), Some("kubernetes.io/tls"));
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_authority_fails_no_request() {
    // Seventy days old: still valid, and due.
    let fixture = Arc::new(Fixture::start("rotation", short_policy(), 70).await);
    fixture.install_definition().await;
    fixture.lead();
    fixture.converting().await;
    injected(&fixture).await;
    let before = fixture.authorities().await;
    let first_serving = fixture.secret("tls.crt").await;
    assert_eq!(before.len(), 1);

    // Reads and writes that need a conversion each, from several clients, all the time.
    let (stop, counted) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = (0..3)
        .map(|number| {
            let (fixture, stop, counted) = (fixture.clone(), stop.clone(), counted.clone());
            tokio::spawn(async move {
                let (old, new) = (fixture.widgets("v1"), fixture.widgets("v2"));
                let name = format!("load-{number}");
                let widget = fixture.widget(&name, "v1", &json!({ "size": "1" }));
                old.create(&PostParams::default(), &widget).await.expect("created");
                while !stop.is_cancelled() {
                    old.get(&name).await.expect("converted on read");
                    let patch = Patch::Merge(
                        json!({ "spec": { "size": counted.load(Ordering::SeqCst).to_string() } }),
                    );
                    old.patch(&name, &PatchParams::default(), &patch).await.expect("converted on write");
                    new.get(&name).await.expect("read");
                    counted.fetch_add(3, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let fresh = tokio::spawn(handshakes(fixture.clone(), stop.clone()));
    let worked_on = async |what: &str| {
        let target = counted.load(Ordering::SeqCst) + 60;
        eventually(what, async || (counted.load(Ordering::SeqCst) >= target).then_some(())).await;
    };
    worked_on("requests before the change").await;

    fixture.set_clock(0).await;
    let both = eventually("two authorities", async || {
        let now = fixture.authorities().await;
        (now.len() == 2).then_some(now)
    })
    .await;
    assert_eq!(both[1], before[0], "the old one is still trusted");
    eventually("a certificate by the new authority", async || {
        let serving = Certificate::parse(&fixture.secret("tls.crt").await).ok()?;
        serving.is_signed_by(&both[0]).then_some(())
    })
    .await;
    assert_ne!(fixture.secret("tls.crt").await, first_serving);
    worked_on("requests with the new certificate").await;

    stop.cancel();
    for task in load {
        task.await.expect("no request failed");
    }
    assert!(counted.load(Ordering::SeqCst) >= 120);
    assert!(fresh.await.expect("no handshake failed") > 10);
    assert!(
        fixture
            .metrics
            .encode()
            .contains(r#"hangar_certificate_expiry_timestamp_seconds{certificate="webhook"}"#)
    );
}

#[tokio::test]
async fn an_address_or_authority_that_somebody_breaks_is_repaired() {
    let fixture = Fixture::start("repair", RenewalPolicy::default(), 0).await;
    fixture.install_definition().await;
    fixture.lead();
    fixture.converting().await;
    injected(&fixture).await;

    let stranger = Authority::self_signed(&Intent::authority("stranger", DAY), jiff::Timestamp::now())
        .expect("an authority");
    let wrong =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &stranger.pair().certificate);
    let damages = [
        json!({ "caBundle": wrong }),
        json!({ "caBundle": null }),
        json!({ "url": null, "service": { "name": "hangar", "namespace": "elsewhere", "path": "/convert" } }),
    ];
    for damage in damages {
        let patch = json!({ "spec": { "conversion": { "webhook": { "clientConfig": damage } } } });
        fixture
            .definitions()
            .patch(&fixture.definition_name(), &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("broken");
        let wanted = json!({
            "caBundle": fixture.bundle().await,
            "url": format!("https://{}{}", fixture.address, fixture.path("convert").await),
        });
        eventually("a repair", async || {
            let definition = fixture.definitions().get(&fixture.definition_name()).await.ok()?;
            let value = serde_json::to_value(definition).ok()?;
            (*value.pointer("/spec/conversion/webhook/clientConfig")? == wanted).then_some(())
        })
        .await;
    }
    eventually("conversions again", async || fixture.widgets("v1").get("probe").await.ok()).await;
}

#[tokio::test]
async fn a_secret_that_somebody_breaks_or_deletes_is_made_again() {
    let fixture = Fixture::start("secret", RenewalPolicy::default(), 0).await;
    fixture.install_definition().await;
    fixture.lead();
    fixture.converting().await;
    let first = fixture.authorities().await;

    fixture.patch_secret(json!({ "data": { "tls.key": "bm9uc2Vuc2U=" } })).await;
    let repaired = eventually("another authority", async || {
        let now = fixture.authorities().await;
        (now.len() == 2).then_some(now)
    })
    .await;
    assert_eq!(repaired[1], first[0], "what was trusted stays trusted until it is out of use");
    injected(&fixture).await;

    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    secrets.delete("hangar-webhook-certificate", &kube::api::DeleteParams::default()).await.expect("deleted");
    eventually("a new Secret", async || secrets.get_opt("hangar-webhook-certificate").await.ok().flatten())
        .await;
    injected(&fixture).await;
    eventually("conversions again", async || fixture.widgets("v1").get("probe").await.ok()).await;
    // Not what an API server kept a connection with: that may be older.
    let (address, bundle) = (fixture.address, fixture.secret("ca.crt").await);
    eventually("what is served matches what is trusted", async || served(address, &bundle).await.ok()).await;
}

#[tokio::test]
async fn a_follower_serves_but_changes_nothing() {
    let fixture = Fixture::start("follower", short_policy(), 70).await;
    fixture.install_definition().await;
    let before = fixture.secret("ca.crt").await;
    fixture.set_clock(0).await;
    assert!(served(fixture.address, &before).await.is_ok());
    assert_eq!(injected_bundle(&fixture).await, None);
    assert_eq!(fixture.secret("ca.crt").await, before);
}

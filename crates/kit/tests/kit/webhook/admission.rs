//! Admission: refusals, changes, warnings, dry runs.

use hangar_kit::webhook::{RenewalPolicy, WEBHOOK_LABEL};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::fixture::{Fixture, eventually};

/// A configuration as it would be installed, without an address or an authority.
fn configuration(fixture: &Fixture, kind: &str, path: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": { "name": fixture.namespace, "labels": { WEBHOOK_LABEL: fixture.namespace } },
        "webhooks": [{
            "name": "widgets.hangar.test",
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": { "service": { "name": "hangar", "namespace": "elsewhere", "path": path } },
            "rules": [{
                "apiGroups": [fixture.group()], "apiVersions": ["*"], "resources": ["widgets"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
            }],
        }],
    })
}

async fn admitting(name: &str) -> Fixture {
    let fixture = Fixture::start(name, RenewalPolicy::default(), 0).await;
    fixture.install_definition().await;
    fixture.lead();
    fixture.converting().await;
    let (validating, mutating): (Api<ValidatingWebhookConfiguration>, Api<MutatingWebhookConfiguration>) =
        (Api::all(fixture.client.clone()), Api::all(fixture.client.clone()));
    let validate = configuration(&fixture, "ValidatingWebhookConfiguration", "/validate");
    let mutate = configuration(&fixture, "MutatingWebhookConfiguration", "/mutate");
    let create = PostParams::default();
    validating.create(&create, &serde_json::from_value(validate).expect("typed")).await.expect("created");
    mutating.create(&create, &serde_json::from_value(mutate).expect("typed")).await.expect("created");

    // Both are in force when a widget comes back with a colour after the validator has seen it.
    eventually("an admission", async || {
        let widget = fixture.widget("admitted", "v2", &json!({}));
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let answer = fixture.widgets("v2").create(&dry, &widget).await.ok()?;
        let seen = !fixture.admitted.lock().expect("a lock").is_empty();
        (seen && answer.data["spec"]["colour"] == "grey").then_some(())
    })
    .await;
    fixture.admitted.lock().expect("a lock").clear();
    fixture
}

#[tokio::test]
async fn refusals_changes_and_dry_runs_arrive() {
    let fixture = admitting("admission").await;
    let widgets = fixture.widgets("v2");
    let create = PostParams::default();

    let red = fixture.widget("red", "v2", &json!({ "colour": "red" }));
    let refusal = widgets.create(&create, &red).await.expect_err("refused");
    let kube::Error::Api(status) = &refusal else { panic!("{refusal}") };
    assert!(status.message.contains("spec.colour: red is not a colour for widgets"), "{status}");
    assert_eq!(status.code, 422);

    let plain = fixture.widget("plain", "v2", &json!({ "amount": 1 }));
    let created = widgets.create(&create, &plain).await.expect("created");
    assert_eq!(created.data["spec"], json!({ "amount": 1, "colour": "grey" }));

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let green = fixture.widget("green", "v2", &json!({ "colour": "green" }));
    let shown = widgets.create(&dry, &green).await.expect("a dry run");
    assert_eq!(shown.data["spec"], json!({ "colour": "green" }), "nothing to change");
    assert!(widgets.get_opt("green").await.expect("an answer").is_none());

    widgets.delete("plain", &DeleteParams::default()).await.expect("deleted");
    let admitted = fixture.admitted.lock().expect("a lock").clone();
    let expected = [("Create", false), ("Create", false), ("Create", true), ("Delete", false)];
    assert_eq!(admitted, expected.map(|(operation, dry)| (operation.to_owned(), dry)));

    let text = fixture.metrics.encode();
    for outcome in ["allowed", "denied"] {
        assert!(text.contains(&format!(r#"path="/validate",outcome="{outcome}""#)), "{text}");
    }
}

#[tokio::test]
async fn warnings_reach_the_client_and_a_panic_is_told() {
    let fixture = admitting("admission-warning").await;
    let blue = fixture.widget("blue", "v2", &json!({ "colour": "blue" }));
    let uri = format!("/apis/{}/v2/namespaces/{}/widgets", fixture.group(), fixture.namespace);
    let request = http::Request::post(uri)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(serde_json::to_vec(&blue).expect("JSON")))
        .expect("a request");
    let answer = fixture.client.send(request).await.expect("an answer");
    assert_eq!(answer.status(), 201);
    let warning = answer.headers().get("warning").expect("a warning").to_str().expect("text");
    assert!(warning.contains("spec.colour: blue fades"), "{warning}");

    let black = fixture.widget("black", "v2", &json!({ "colour": "black" }));
    let refusal = fixture.widgets("v2").create(&PostParams::default(), &black).await.expect_err("refused");
    assert!(refusal.to_string().contains("the webhook panicked"), "{refusal}");
    assert!(fixture.widgets("v2").get("blue").await.is_ok(), "the server goes on");
}

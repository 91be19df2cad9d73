//! Conversion between the versions of a CRD.

use hangar_kit::webhook::RenewalPolicy;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use super::fixture::Fixture;

#[tokio::test]
async fn an_object_is_read_and_listed_in_either_version() {
    let fixture = Fixture::start("conversion", RenewalPolicy::default(), 0).await;
    fixture.install_definition().await;
    fixture.lead();
    fixture.converting().await;

    let (old, new) = (fixture.widgets("v1"), fixture.widgets("v2"));
    let create = PostParams::default();
    old.create(&create, &fixture.widget("three", "v1", &json!({ "size": "3" }))).await.expect("created");
    new.create(&create, &fixture.widget("four", "v2", &json!({ "amount": 4 }))).await.expect("created");
    assert_eq!(new.get("three").await.expect("converted").data["spec"], json!({ "amount": 3 }));
    assert_eq!(old.get("four").await.expect("converted").data["spec"], json!({ "size": "4" }));
    assert_eq!(old.list(&ListParams::default()).await.expect("converted").items.len(), 3);
    assert!(fixture.metrics.encode().contains(r#"path="/convert",outcome="converted""#));
}

#[tokio::test]
async fn what_the_handler_says_reaches_the_person_who_asked() {
    let fixture = Fixture::start("conversion-failure", RenewalPolicy::default(), 0).await;
    fixture.install_definition().await;
    fixture.lead();
    fixture.converting().await;

    for (name, expected) in
        [("poison", "the poison widget has no other version"), ("bomb", "the webhook panicked")]
    {
        let widget = fixture.widget(name, "v1", &json!({ "size": "1" }));
        let refusal =
            fixture.widgets("v1").create(&PostParams::default(), &widget).await.expect_err("refused");
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
    // A panic is one request's, not the server's.
    assert!(fixture.widgets("v1").get("probe").await.is_ok());
    assert!(fixture.metrics.encode().contains(r#"path="/convert",outcome="failed""#));
}

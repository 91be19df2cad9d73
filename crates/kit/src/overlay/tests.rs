use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};

use super::*;

fn overlay() -> Overlay {
    Overlay::offline([], Timestamp::UNIX_EPOCH, Arc::new(|_| {}))
}

fn map(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "one", "namespace": "default", "labels": { "of": "us" } }, "data": data,
    })
}

#[tokio::test]
async fn what_is_written_is_read_again_and_is_the_difference() {
    let overlay = overlay();
    overlay.give(map(&json!({ "a": "1" }))).await.unwrap();
    overlay.settle();
    assert!(overlay.written().is_empty(), "what was given was there before");
    let api: Api<ConfigMap> = Api::namespaced(overlay.client(), "default");
    let applied = map(&json!({ "b": "2" }));
    api.patch("one", &PatchParams::apply("hangar-test").force(), &Patch::Apply(&applied)).await.unwrap();
    let shown = api.list(&ListParams::default().labels("of=us")).await.unwrap();
    assert_eq!(shown.items[0].data.as_ref().unwrap().len(), 2);
    assert!(api.list(&ListParams::default().labels("of=them")).await.unwrap().items.is_empty());
    // What is no longer applied goes; what others gave stays.
    let applied = map(&json!({ "c": "3" }));
    api.patch("one", &PatchParams::apply("hangar-test").force(), &Patch::Apply(&applied)).await.unwrap();
    let [written] = overlay.written().try_into().unwrap();
    assert_eq!(written.before.unwrap()["data"], json!({ "a": "1" }));
    assert_eq!(written.after.unwrap()["data"], json!({ "a": "1", "c": "3" }));
}

#[tokio::test]
async fn names_that_are_taken_and_objects_that_are_gone_are_refused_as_by_an_api_server() {
    let overlay = overlay();
    let api: Api<ConfigMap> = Api::namespaced(overlay.client(), "default");
    let object: ConfigMap = serde_json::from_value(map(&json!({}))).unwrap();
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    let code = |error: kube::Error| match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    };
    assert_eq!(code(api.create(&PostParams::default(), &object).await.unwrap_err()), 409);
    let stale = json!({ "metadata": { "resourceVersion": "1" } });
    assert_eq!(
        code(api.patch("one", &PatchParams::default(), &Patch::Merge(&stale)).await.unwrap_err()),
        409
    );
    let again = self::overlay();
    let api_again: Api<ConfigMap> = Api::namespaced(again.client(), "default");
    let same = api_again.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(made.metadata.uid, same.metadata.uid, "the same name has the same id in every run");
    api.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(api.get("one").await.unwrap_err()), 404);
}

#[test]
fn a_field_that_was_applied_before_goes_and_the_server_s_own_stay() {
    let mut live = json!({
        "spec": {
            "dnsPolicy": "ClusterFirst",
            "containers": [
                { "name": "a", "image": "old", "args": ["--x"], "imagePullPolicy": "Always",
                  "resources": { "requests": { "cpu": "1" } } },
                { "name": "b" },
            ],
        },
    });
    let owned = json!({ "f:spec": { "f:containers": {
        r#"k:{"name":"a"}"#: { ".": {}, "f:name": {}, "f:image": {}, "f:args": {} },
        r#"k:{"name":"b"}"#: { ".": {}, "f:name": {} },
    } } });
    let desired = json!({ "spec": { "containers": [
        { "name": "a", "image": "new", "resources": { "requests": { "cpu": "1000m" } } },
    ] } });
    fields::apply(&mut live, &desired, &owned);
    assert_eq!(
        live,
        json!({
            "spec": {
                "dnsPolicy": "ClusterFirst",
                "containers": [
                    { "name": "a", "image": "new", "imagePullPolicy": "Always",
                      "resources": { "requests": { "cpu": "1" } } },
                ],
            },
        })
    );
}
